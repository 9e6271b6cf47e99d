// The lists beside the chat: the sessions of all folders, the checkpoints of the session, and its subagents.

import { basename } from 'node:path';
import * as vscode from 'vscode';
import { GoneError, RESOURCE_NOT_FOUND, RpcError } from './rpc.ts';
import { words, type Sessions } from './sessions.ts';
import type { Call } from './transcript.ts';

const OFTEN = 4000;
const SELDOM = 20_000;

/** A session as `_treadle/inbox` gives it. */
type InboxRow = Record<'sessionId' | 'cwd' | 'title' | 'state' | 'words' | 'updatedAt', string> & { added: number; removed: number; cost?: { amount: number } };

const SIGNS: Record<string, [string, string?]> = {
  waiting: ['bell-dot', 'notificationsWarningIcon.foreground'],
  working: ['sync~spin'],
  done: ['check'],
  stopped: ['circle-slash'],
};

/** What the lists have in common: whose they are, that they change, and a line above their rows. */
class List {
  protected readonly changes = new vscode.EventEmitter<void>();
  protected readonly sessions: Sessions;
  protected view: vscode.TreeView<any> | undefined;
  readonly onDidChangeTreeData = this.changes.event;

  constructor(sessions: Sessions) {
    this.sessions = sessions;
  }

  protected say(message = ''): void {
    if (this.view) this.view.message = message || undefined;
  }
}

/** The sessions of all folders, those first that wait for a person; their number is the badge. */
export class Inbox extends List implements vscode.TreeDataProvider<InboxRow> {
  private rows: InboxRow[] = [];
  private timer: NodeJS.Timeout | undefined;
  private seen = '';

  register(context: vscode.ExtensionContext): void {
    const view = (this.view = vscode.window.createTreeView('treadle.inbox', { treeDataProvider: this }));
    context.subscriptions.push(view, view.onDidChangeVisibility(() => void this.look()), { dispose: () => clearTimeout(this.timer) });
  }

  /** Look what there is; the agent is not started for it. */
  async look(): Promise<void> {
    clearTimeout(this.timer);
    if (this.sessions.state === 'on' && vscode.workspace.getConfiguration('treadle').get('watchInbox', true)) {
      try {
        const found = await this.sessions.ask('_treadle/inbox', {});
        this.show(found.sessions ?? [], Number(found.waiting ?? 0));
        this.say(this.rows.length ? '' : 'There are no sessions yet.');
      } catch (error) {
        if (!(error instanceof GoneError)) this.say(`This list is not up to date: ${words(error)}`);
      }
    }
    this.timer = setTimeout(() => void this.look(), this.view?.visible ? OFTEN : SELDOM);
  }

  getTreeItem(row: InboxRow): vscode.TreeItem {
    const item = new vscode.TreeItem(row.title || row.sessionId);
    const [icon, colour] = SIGNS[row.state] ?? ['circle-outline'];
    item.id = row.sessionId;
    item.iconPath = new vscode.ThemeIcon(icon, colour ? new vscode.ThemeColor(colour) : undefined);
    const cost = row.cost ? ` · $${row.cost.amount.toFixed(2)}` : '';
    item.description = `${row.words} · ${basename(row.cwd)}${row.added + row.removed ? ` · +${row.added} −${row.removed}` : ''}${cost}`;
    item.tooltip = `${row.title}\n${row.cwd}\n${row.words}, ${new Date(row.updatedAt).toLocaleString()}`;
    item.command = { command: 'treadle.showSession', title: 'Open', arguments: [row.sessionId, row.cwd] };
    return item;
  }

  getChildren(row?: InboxRow): InboxRow[] {
    return row ? [] : this.rows;
  }

  private show(rows: InboxRow[], waiting: number): void {
    const seen = JSON.stringify([rows, waiting]);
    if (seen === this.seen) return;
    this.seen = seen;
    this.rows = rows;
    if (this.view) {
      const label = `${waiting} session${waiting === 1 ? '' : 's'} waiting for you`;
      this.view.badge = waiting ? { value: waiting, tooltip: label } : undefined;
    }
    this.changes.fire();
  }
}

/** A checkpoint as `_treadle/checkpoints` gives it, with its session. */
export type CheckpointRow = Record<'number' | 'step' | 'files' | 'added' | 'removed', number> & Record<'session' | 'at' | 'why', string>;

/** The checkpoints of the session that is shown, newest first: compared with the files as they are, and restored. */
export class Checkpoints extends List implements vscode.TreeDataProvider<CheckpointRow>, vscode.TextDocumentContentProvider {
  static readonly scheme = 'treadle-diff';
  private readonly texts = new Map<string, string>();

  register(context: vscode.ExtensionContext): void {
    context.subscriptions.push(
      (this.view = vscode.window.createTreeView('treadle.checkpoints', { treeDataProvider: this })),
      vscode.workspace.registerTextDocumentContentProvider(Checkpoints.scheme, this),
      vscode.workspace.onDidCloseTextDocument((document) => this.texts.delete(document.uri.toString())),
    );
  }

  refresh = (): void => this.changes.fire();

  getTreeItem(row: CheckpointRow): vscode.TreeItem {
    const item = new vscode.TreeItem(`${row.number}. ${row.why.charAt(0).toUpperCase()}${row.why.slice(1)}`);
    const changed = row.files ? ` · ${row.files} file${row.files === 1 ? '' : 's'} +${row.added} −${row.removed}` : '';
    item.description = `${new Date(row.at).toLocaleTimeString()}${changed}`;
    item.iconPath = new vscode.ThemeIcon('git-commit');
    item.contextValue = 'checkpoint';
    item.command = { command: 'treadle.checkpoint.compare', title: 'Compare with Now', arguments: [row] };
    return item;
  }

  async getChildren(row?: CheckpointRow): Promise<CheckpointRow[]> {
    const session = this.sessions.active;
    if (row) return [];
    let rows: any[] = [];
    let none = 'The session has changed no files yet.';
    try {
      if (session && this.sessions.state === 'on') rows = (await this.sessions.ask('_treadle/checkpoints', { sessionId: session })).checkpoints;
    } catch (error) {
      // Nothing was said yet in a session that is in no log.
      if (!(error instanceof RpcError && error.code === RESOURCE_NOT_FOUND)) none = `The checkpoints could not be read: ${words(error)}`;
    }
    this.say(rows.length ? '' : none);
    return rows.map((one) => ({ ...one, session })).reverse();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? '';
  }

  /** Show what changed since a checkpoint. */
  async compare(row: CheckpointRow): Promise<void> {
    const found = await this.sessions.ask('_treadle/checkpoints', { sessionId: row.session, since: row.number });
    if (!found.diff) {
      void vscode.window.showInformationMessage(`The files are as they were at checkpoint ${row.number}.`);
      return;
    }
    const uri = vscode.Uri.from({ scheme: Checkpoints.scheme, path: `/since checkpoint ${row.number}.diff`, query: `${Date.now()}` });
    this.texts.set(uri.toString(), found.diff);
    await vscode.window.showTextDocument(uri, { preview: true });
  }

  /** Say what restoring would do, and do it after a yes. */
  async restore(row: CheckpointRow): Promise<void> {
    const wanted = { sessionId: row.session, checkpoint: row.number };
    try {
      const seen = await this.sessions.ask('_treadle/restore', { ...wanted, preview: true });
      const lines = (seen.paths ?? []).map((one: any) => `${one.what} ${vscode.workspace.asRelativePath(one.path)}${one.why ? `: ${one.why}` : ''}`);
      const yes = 'Restore Files';
      const said = await vscode.window.showWarningMessage(
        `Restore the files as they were at checkpoint ${row.number}?`,
        { modal: true, detail: lines.join('\n') || 'Nothing would change.' },
        yes,
      );
      if (said === yes) await this.done(await this.sessions.ask('_treadle/restore', wanted), row.session);
    } catch (error) {
      void vscode.window.showErrorMessage(words(error));
    }
  }

  private async done(went: any, session: string): Promise<void> {
    this.refresh();
    const count = (went.written?.length ?? 0) + (went.removed?.length ?? 0);
    const left = (went.conflicts ?? []).map((one: any) => `${vscode.workspace.asRelativePath(one.path)}: ${one.why}`);
    const text = went.error || [`${count} file${count === 1 ? ' was' : 's were'} restored.`, ...left].join(' ');
    const undo = 'Undo';
    const said = await vscode.window.showInformationMessage(text, ...(count && went.undo ? [undo] : []));
    if (said === undo) await this.done(await this.sessions.ask('_treadle/restore', { sessionId: session, checkpoint: went.undo, seen: went.seen }), session);
  }
}

/** The subagents of the session that is shown; below each what it does, or how it ended. */
export class Subagents extends List implements vscode.TreeDataProvider<Call | string> {
  private seen = '';

  register(context: vscode.ExtensionContext): void {
    const view = (this.view = vscode.window.createTreeView('treadle.subagents', { treeDataProvider: this }));
    const changed = this.sessions.onDidChange(() => {
      const now = JSON.stringify(this.rows());
      if (now === this.seen) return;
      this.seen = now;
      const running = this.rows().filter((child) => child.status === 'in_progress').length;
      view.badge = running ? { value: running, tooltip: `${running} running` } : undefined;
      this.changes.fire();
    });
    context.subscriptions.push(view, changed);
  }

  getTreeItem(row: Call | string): vscode.TreeItem {
    if (typeof row === 'string') return new vscode.TreeItem(row);
    const item = new vscode.TreeItem(row.title, vscode.TreeItemCollapsibleState.Collapsed);
    item.id = row.id;
    item.description = row.status === 'in_progress' ? 'running' : row.status;
    const icon = { in_progress: 'sync~spin', completed: 'check', failed: 'error' }[row.status] ?? 'circle-slash';
    item.iconPath = new vscode.ThemeIcon(icon);
    item.tooltip = `${row.title}\n${row.text}`;
    return item;
  }

  getChildren(row?: Call | string): (Call | string)[] {
    if (row === undefined) this.say(this.rows().length ? '' : 'The session has no subagents.');
    if (row === undefined) return this.rows();
    return typeof row === 'string' ? [] : row.text.split('\n').filter((line) => line.trim());
  }

  private rows(): Call[] {
    return [...(this.sessions.transcript?.children.values() ?? [])];
  }
}
