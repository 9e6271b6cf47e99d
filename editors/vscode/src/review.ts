// A change in the diff editor before it is approved: what is proposed stands on the right, can be edited, and each
// change of it can be left out.

import { basename } from 'node:path';
import * as vscode from 'vscode';
import { currentText, openText } from './files.ts';
import { applyPlaces, compose, hunksOf, linesOf, type Hunk, type Place } from './hunks.ts';

export const PROPOSED = 'treadle-proposed';

/** What becomes of a change that was looked at: the texts are those that were compared, and that are wanted. */
export interface Reviewed { oldText: string; newText: string }

/** One file of a change: its text before, as it is proposed, and the changed places. */
interface ReviewedFile {
  path: string;
  uri: vscode.Uri;
  base: string;
  proposed: string;
  hunks: Hunk[];
  isNew: boolean;
}

/** A change that waits. */
export class Review {
  readonly id: string;
  readonly files: ReviewedFile[];
  readonly editable: boolean;
  private readonly texts: ProposedTexts;
  keeping: Promise<void> = Promise.resolve();

  constructor(id: string, files: ReviewedFile[], editable: boolean, texts: ProposedTexts) {
    this.id = id;
    this.files = files;
    this.editable = editable && files.length === 1;
    this.texts = texts;
  }

  /** The text that is wanted now: what stands on the right side of the diff editor, saved there or not. */
  get text(): string {
    const file = this.files[0]!;
    const document = openText(file.uri);
    return document ? document.getText() : this.texts.text(file.uri);
  }

  /** Which of the changes are in the text, in whatever way it came to that; undefined where it was edited otherwise. */
  get kept(): boolean[] | undefined {
    const { base, proposed, hunks } = this.files[0]!;
    const text = this.text;
    const now = hunksOf(base, text);
    const kept = hunks.map((hunk) => now.some((one) => one.start === hunk.start && one.end === hunk.end));
    return compose(base, proposed, hunks, kept) === text ? kept : undefined;
  }

  /** What was made of the change; undefined where it is wanted as it was proposed. */
  get result(): Reviewed | undefined {
    if (!this.editable) return undefined;
    const { base, proposed } = this.files[0]!;
    const newText = this.text;
    return newText === proposed ? undefined : { oldText: base, newText };
  }

  /** The changes of the file for the card in the chat. */
  get cards(): { header: string; lines: string; kept: boolean }[] {
    if (!this.editable) return [];
    const { base, proposed, hunks } = this.files[0]!;
    const [old, made] = [linesOf(base), linesOf(proposed)];
    const kept = this.kept;
    return hunks.map((hunk, number) => ({
      header: hunk.newEnd - hunk.newStart > 1 ? `Lines ${hunk.newStart + 1}–${hunk.newEnd}` : `Line ${hunk.newStart + 1}`,
      lines: [
        ...old.slice(hunk.start, hunk.end).map((line) => `-${line.trimEnd()}`),
        ...made.slice(hunk.newStart, hunk.newEnd).map((line) => `+${line.trimEnd()}`),
      ].join('\n'),
      kept: kept?.[number] ?? true,
    }));
  }

  /** Keep one of the changes, or leave it out: each is done when those before are, and `keeping` when all are. */
  keep = (number: number, kept: boolean): Promise<void> => (this.keeping = this.keeping.then(() => this.leave(number, kept)).catch(() => undefined));

  private async leave(number: number, kept: boolean): Promise<void> {
    const now = this.editable ? this.kept : undefined;
    if (!now || number >= now.length) return;
    now[number] = kept;
    const { base, proposed, hunks, uri } = this.files[0]!;
    await this.texts.replace(uri, compose(base, proposed, hunks, now));
  }

  /** Show it in the diff editor; more than one file together. */
  async open(): Promise<void> {
    const left = (file: ReviewedFile): vscode.Uri => (file.isNew ? this.texts.empty : vscode.Uri.file(file.path));
    const [first] = this.files;
    if (this.files.length === 1 && first) {
      const title = `${basename(first.path)} (proposed by Treadle)`;
      await vscode.commands.executeCommand('vscode.diff', left(first), first.uri, title, { preview: false });
    } else {
      const rows = this.files.map((file) => [vscode.Uri.file(file.path), left(file), file.uri]);
      await vscode.commands.executeCommand('vscode.changes', `${rows.length} files (proposed by Treadle)`, rows);
    }
  }

  /** Close its editors, and forget its texts. */
  close = (): Promise<void> => this.texts.close(this.files.map((file) => file.uri));
}

/** The texts that are proposed, as a file system in memory, and what can be done with each change of them. */
export class ProposedTexts implements vscode.FileSystemProvider {
  private readonly kept = new Map<string, { data: Uint8Array; at: number }>();
  private readonly reviews = new Map<string, Review>();
  private readonly changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  private readonly looked = new vscode.EventEmitter<Review>();
  private numbers = Date.now(); // a window that is loaded again may still show those of before
  readonly onDidChangeFile = this.changes.event;
  /** Something of a review is another: what is kept of it, or its text. */
  readonly onDidChangeReview = this.looked.event;
  readonly empty = vscode.Uri.from({ scheme: PROPOSED, path: '/nothing' });

  register(context: vscode.ExtensionContext): void {
    context.subscriptions.push(
      vscode.workspace.registerFileSystemProvider(PROPOSED, this, { isCaseSensitive: true }),
      vscode.workspace.onDidChangeTextDocument((event) => {
        const review = this.reviews.get(event.document.uri.toString());
        if (review) this.looked.fire(review);
      }),
      vscode.window.tabGroups.onDidChangeTabs((event) => this.closeLeft(event.opened)),
    );
    void this.closeLeft(allTabs());
  }

  /** Read a change of files; undefined for one that its files do not fit, or that no text is known of. */
  async review(id: string, places: readonly Place[], editable: boolean): Promise<Review | undefined> {
    const files: ReviewedFile[] = [];
    const number = ++this.numbers;
    for (const path of new Set(places.map((place) => place.path))) {
      const own = places.filter((place) => place.path === path);
      const isNew = own.every((place) => place.oldText === null || place.oldText === undefined);
      const base = isNew ? '' : await currentText(path);
      const proposed = applyPlaces(base, own);
      if (proposed === null) return undefined;
      const uri = vscode.Uri.from({ scheme: PROPOSED, path, query: String(number) });
      files.push({ path, uri, base, proposed, hunks: hunksOf(base, proposed), isNew });
    }
    if (!files.length) return undefined;
    const review = new Review(id, files, editable, this);
    for (const file of files) {
      this.kept.set(file.uri.toString(), { data: new TextEncoder().encode(file.proposed), at: Date.now() });
      this.reviews.set(file.uri.toString(), review);
    }
    return review;
  }

  /** Find the review whose editor has the focus. */
  get active(): Review | undefined {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    const uri = input instanceof vscode.TabInputTextDiff ? input.modified : vscode.window.activeTextEditor?.document.uri;
    return uri && this.reviews.get(uri.toString());
  }

  text = (uri: vscode.Uri): string => new TextDecoder().decode(this.kept.get(uri.toString())?.data);

  /** Close the editors of these texts, and forget them; saved first, also where a window loaded again has no document yet. */
  async close(uris: vscode.Uri[]): Promise<void> {
    const own = new Set(uris.map(String));
    const tabs = allTabs().filter((tab) => textsIn(tab).some((uri) => own.has(String(uri))));
    for (const uri of tabs.flatMap(textsIn)) if (own.has(String(uri))) await (await vscode.workspace.openTextDocument(uri)).save();
    if (tabs.length) await vscode.window.tabGroups.close(tabs, true).then(undefined, () => false); // one is closed already
    for (const uri of own) this.reviews.delete(uri), this.kept.delete(uri);
  }

  /** Close diff editors that nobody asks about: a window that is loaded again shows those again that it had. */
  private async closeLeft(tabs: readonly vscode.Tab[]): Promise<void> {
    const left = tabs.flatMap(textsIn).filter((uri) => uri.scheme === PROPOSED && uri.query && !this.reviews.has(String(uri)));
    if (left.length) await this.close(left);
  }

  /** Put another text in its place, in the editor too where it is open. */
  async replace(uri: vscode.Uri, text: string): Promise<void> {
    const document = openText(uri);
    if (document) {
      const edit = new vscode.WorkspaceEdit();
      edit.replace(uri, new vscode.Range(document.positionAt(0), document.positionAt(document.getText().length)), text);
      await vscode.workspace.applyEdit(edit);
      await document.save();
    } else {
      this.writeFile(uri, new TextEncoder().encode(text));
    }
    const review = this.reviews.get(uri.toString());
    if (review) this.looked.fire(review);
  }

  watch = (): vscode.Disposable => new vscode.Disposable(() => undefined);

  stat(uri: vscode.Uri): vscode.FileStat {
    const { data, at } = this.held(uri);
    return { type: vscode.FileType.File, ctime: at, mtime: at, size: data.length };
  }

  readFile = (uri: vscode.Uri): Uint8Array => this.held(uri).data;

  writeFile(uri: vscode.Uri, data: Uint8Array): void {
    if (!this.kept.has(uri.toString())) return;
    this.kept.set(uri.toString(), { data, at: Date.now() });
    this.changes.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }

  /** A text that nobody asks about any more is empty, and takes what is saved in it: its editor is closed then. */
  private held = (uri: vscode.Uri): { data: Uint8Array; at: number } => this.kept.get(uri.toString()) ?? { data: new Uint8Array(), at: 0 };

  readDirectory = (): [string, vscode.FileType][] => [];
  createDirectory = refuse;
  delete = refuse;
  rename = refuse;
}

function refuse(uri: vscode.Uri): never {
  throw vscode.FileSystemError.NoPermissions(uri);
}

function allTabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}

/** The texts on the right sides of the diff editors of a tab. */
function textsIn(tab: vscode.Tab): vscode.Uri[] {
  const input: any = tab.input;
  return (input?.textDiffs ?? [input]).map((one: any) => one?.modified ?? one?.uri).filter(Boolean);
}
