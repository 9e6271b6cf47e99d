// The part of VS Code's interface that the sessions and the diff editor use, over real files: texts that are open,
// edits, file systems, and tabs. A test types in its texts as a person does.

import { readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

export class EventEmitter<T> {
  private readonly heard = new Set<(value: T) => void>();
  readonly event = (listener: (value: T) => void): { dispose(): void } => {
    this.heard.add(listener);
    return { dispose: () => this.heard.delete(listener) };
  };

  fire(value: T): void {
    for (const listener of [...this.heard]) listener(value);
  }
}

export class Uri {
  readonly scheme: string;
  readonly path: string;
  readonly query: string;

  constructor(scheme: string, path: string, query = '') {
    [this.scheme, this.path, this.query] = [scheme, path, query];
  }

  static file = (path: string): Uri => new Uri('file', path);
  static from = (of: { scheme: string; path: string; query?: string }): Uri => new Uri(of.scheme, of.path, of.query);

  get fsPath(): string {
    return this.path;
  }

  toString(): string {
    return `${this.scheme}:${this.path}${this.query && `?${this.query}`}`;
  }
}

export class Position {
  readonly offset: number;

  constructor(offset: number) {
    this.offset = offset;
  }
}

export class Range {
  readonly start: Position;
  readonly end: Position;

  constructor(start: Position, end: Position) {
    [this.start, this.end] = [start, end];
  }
}

export class WorkspaceEdit {
  readonly edits: [Uri, Range, string][] = [];

  replace(uri: Uri, range: Range, text: string): void {
    this.edits.push([uri, range, text]);
  }
}

const changed = new EventEmitter<{ document: TextDocument }>();
const providers = new Map<string, any>();

export class TextDocument {
  readonly uri: Uri;
  version = 1;
  isDirty = false;
  isClosed = false;
  private text: string;

  constructor(uri: Uri) {
    this.uri = uri;
    this.text = uri.scheme === 'file' ? readFileSync(uri.path, 'utf8') : new TextDecoder().decode(providers.get(uri.scheme).readFile(uri));
  }

  getText = (): string => this.text;
  positionAt = (offset: number): Position => new Position(offset);

  change(text: string): void {
    this.text = text;
    this.version++;
    this.isDirty = true;
    changed.fire({ document: this });
  }

  async save(): Promise<boolean> {
    const data = new TextEncoder().encode(this.text);
    if (this.uri.scheme === 'file') writeFileSync(this.uri.path, data);
    else providers.get(this.uri.scheme).writeFile(this.uri, data);
    this.isDirty = false;
    return true;
  }
}

export class TabInputTextDiff {
  readonly original: Uri;
  readonly modified: Uri;

  constructor(original: Uri, modified: Uri) {
    [this.original, this.modified] = [original, modified];
  }
}

/** Open a text, as a click on a file does. */
export function open(uri: Uri): TextDocument {
  const known = workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
  if (known) return known;
  const document = new TextDocument(uri);
  workspace.textDocuments.push(document);
  return document;
}

/** Close a text that is open; what was not saved is lost. */
export function close(uri: Uri): void {
  const at = workspace.textDocuments.findIndex((one) => one.uri.toString() === uri.toString());
  if (at < 0) return;
  workspace.textDocuments[at]!.isClosed = true;
  workspace.textDocuments.splice(at, 1);
}

export const settings: Record<string, unknown> = {};

export const workspace = {
  textDocuments: [] as TextDocument[],
  workspaceFolders: [] as { uri: Uri }[],
  onDidChangeTextDocument: changed.event,
  fs: { readFile: (uri: Uri) => readFile(uri.path) },
  getConfiguration: (section: string) => ({ get: (name: string, other: unknown) => settings[`${section}.${name}`] ?? other }),
  registerFileSystemProvider(scheme: string, provider: unknown) {
    providers.set(scheme, provider);
    return { dispose: () => undefined };
  },
  openTextDocument: async (uri: Uri): Promise<TextDocument> => open(uri),
  async applyEdit(edit: WorkspaceEdit): Promise<boolean> {
    await new Promise((done) => setTimeout(done, 2)); // the window answers
    for (const [uri, range, text] of edit.edits) {
      const document = open(uri);
      const now = document.getText();
      document.change(now.slice(0, range.start.offset) + text + now.slice(range.end.offset));
    }
    return true;
  },
};

const tabs: { input: unknown }[] = [];

export const window = {
  activeTextEditor: undefined,
  tabGroups: {
    all: [{ tabs }],
    onDidChangeTabs: () => ({ dispose: () => undefined }),
    activeTabGroup: { get activeTab() { return tabs.at(-1); } },
    async close(gone: { input: any }[]): Promise<void> {
      for (const tab of gone) {
        tabs.splice(tabs.indexOf(tab), 1);
        close(tab.input.modified);
      }
    },
  },
};

export const commands = {
  async executeCommand(name: string, left: Uri, right: Uri): Promise<void> {
    if (name !== 'vscode.diff') throw new Error(`There is no ${name} here.`);
    open(right);
    tabs.push({ input: new TabInputTextDiff(left, right) });
  },
};

export const FileType = { File: 1 };
export const FileChangeType = { Changed: 1 };
export const FileSystemError = { FileNotFound: (uri: Uri) => new Error(`${uri} is not there`), NoPermissions: (uri: Uri) => new Error(`${uri} stays`) };
