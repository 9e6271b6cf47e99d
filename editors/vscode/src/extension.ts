// Treadle in VS Code: puts the parts together, and does the commands.

import * as vscode from 'vscode';
import { ChatView, problems } from './chatView.ts';
import { ProposedTexts } from './review.ts';
import { Sessions, words, type Attachment } from './sessions.ts';
import { usageWords } from './transcript.ts';
import { Checkpoints, Inbox, Subagents, type CheckpointRow } from './trees.ts';

const DIFF_SENT = 60_000;

let sessions: Sessions | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const proposed = new ProposedTexts();
  const open = (sessions = new Sessions(proposed, String(context.extension.packageJSON.version)));
  const chat = new ChatView(open, context.extensionUri);
  const parts = { inbox: new Inbox(open), checkpoints: new Checkpoints(open), subagents: new Subagents(open) };
  proposed.register(context);
  for (const part of Object.values(parts)) part.register(context);
  context.subscriptions.push(vscode.window.registerWebviewViewProvider('treadle.chat', chat, { webviewOptions: { retainContextWhenHidden: true } }));
  watch(context, open, chat, parts);
  const commands = { ...sessionCommands(open, chat, parts), ...reviewCommands(open, proposed), ...editorCommands(open, chat) };
  for (const [name, does] of Object.entries(commands)) {
    context.subscriptions.push(vscode.commands.registerCommand(`treadle.${name}`, does));
  }
  context.subscriptions.push(
    vscode.languages.registerCodeActionsProvider({ scheme: 'file' }, { provideCodeActions: actionsFor }, {
      providedCodeActionKinds: [vscode.CodeActionKind.QuickFix],
    }),
  );
}

export function deactivate(): void {
  sessions?.stop();
}

interface Parts { inbox: Inbox; checkpoints: Checkpoints; subagents: Subagents }

/** Keep the status bar, the lists and the diff editor as the sessions are. */
function watch(context: vscode.ExtensionContext, open: Sessions, chat: ChatView, parts: Parts): void {
  const bar = vscode.window.createStatusBarItem('treadle.status', vscode.StatusBarAlignment.Right, 90);
  bar.name = 'Treadle';
  bar.command = 'treadle.chat.focus';
  let [before, running, seen] = ['', false, ''];
  const show = (): void => {
    const transcript = open.transcript;
    const usage = usageWords(transcript?.usage);
    const waits = open.waiting;
    const icon = waits ? '$(bell-dot)' : transcript?.running ? '$(sync~spin)' : '$(comment-discussion)';
    bar.text = `${icon} Treadle${waits ? ` asks (${waits})` : usage ? ` ${usage}` : ''}`;
    bar.tooltip = usage ? `Treadle: ${usage.replace('%', '% of the model’s window')}` : 'Treadle';
    bar.accessibilityInformation = { label: `Treadle ${waits ? `asks ${waits} questions` : usage}` };
    bar.backgroundColor = waits ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    if (open.active !== before || (running && !transcript?.running)) parts.checkpoints.refresh();
    const now = JSON.stringify([open.state, open.active, waits, transcript?.running]);
    if (now !== seen) void parts.inbox.look();
    seen = now;
    before = open.active;
    running = transcript?.running ?? false;
  };
  show();
  bar.show();
  context.subscriptions.push(
    bar,
    open.onDidChange(show),
    open.onDidAsk(async (pending) => {
      if (pending.review && vscode.workspace.getConfiguration('treadle').get('openDiffs', true)) await pending.review.open();
      if (chat.visible) return;
      const look = 'Look';
      const said = await vscode.window.showInformationMessage(`Treadle: ${pending.asked.title}`, look);
      if (said === look) await vscode.commands.executeCommand('treadle.chat.focus');
    }),
  );
}

function sessionCommands(open: Sessions, chat: ChatView, parts: Parts): Record<string, (...args: any[]) => unknown> {
  return {
    newSession: shown(async () => {
      await open.create();
      await chat.focus();
    }),
    openSession: shown(async () => {
      const listed = (await open.ask('session/list', { cwd: open.folder })).sessions ?? [];
      const when = (one: any): string => (one.updatedAt ? new Date(one.updatedAt).toLocaleString() : '');
      const rows = listed.map((one: any) => ({ label: one.title || one.sessionId, description: when(one), id: String(one.sessionId) }));
      const picked: any = await vscode.window.showQuickPick(rows, { placeHolder: 'Continue a session of this folder', matchOnDescription: true });
      if (picked) await open.load(picked.id);
      if (picked) await chat.focus();
    }),
    showSession: shown(async (id: string, cwd: string) => {
      await chat.focus();
      await open.load(id, cwd);
    }),
    fork: shown(() => open.fork()),
    cancel: () => open.cancel(),
    restart: shown(() => open.restart()),
    again: shown(() => open.again()),
    refreshInbox: () => parts.inbox.look(),
    login: () => inTerminal('treadle start', true),
    install: shown(install),
    'checkpoint.compare': shown((row: CheckpointRow) => parts.checkpoints.compare(row)),
    'checkpoint.restore': (row: CheckpointRow) => parts.checkpoints.restore(row),
    commitMessage: shown((of?: vscode.SourceControl) => commitMessage(open, of?.rootUri)),
  };
}

function reviewCommands(open: Sessions, proposed: ProposedTexts): Record<string, (...args: any[]) => unknown> {
  const answer = async (kind: string, comment = ''): Promise<void> => {
    const pending = open.pendingOf(proposed.active);
    const option = pending?.asked.options.find((one) => one.kind === kind);
    if (pending && option) await open.answer(pending.asked.id, option.optionId, comment);
  };
  return {
    'review.apply': () => answer('allow_once'),
    'review.reject': () => answer('reject_once'),
    'review.comment': async () => {
      const comment = await vscode.window.showInputBox({ prompt: 'What should be done instead?', ignoreFocusOut: true });
      if (comment !== undefined) await answer('reject_once', comment);
    },
  };
}

function editorCommands(open: Sessions, chat: ChatView): Record<string, (...args: any[]) => unknown> {
  const ask = async (text: string, uri?: vscode.Uri, range?: vscode.Range): Promise<void> => {
    const about = selection(uri, range);
    if (!about) return;
    await chat.focus();
    const found = vscode.languages.getDiagnostics(about.uri).filter((one) => one.range.intersection(about.range));
    await open.send(text, [], [about.attachment, ...problems([[about.uri, found]])]);
  };
  return {
    add: async (uri?: vscode.Uri, all?: vscode.Uri[]) => {
      const files = all ?? (uri instanceof vscode.Uri && uri.toString() !== vscode.window.activeTextEditor?.document.uri.toString() ? [uri] : []);
      if (files.length) return chat.attach(...files.map(link));
      const about = selection();
      if (about) await chat.attach(about.attachment);
    },
    explain: (uri?: vscode.Uri, range?: vscode.Range) => ask('Explain this.', uri, range),
    fix: (uri?: vscode.Uri, range?: vscode.Range) => ask('Fix this.', uri, range),
  };
}

/** Do something, and show what goes wrong. */
function shown<A extends any[]>(does: (...args: A) => Promise<unknown>): (...args: A) => Promise<void> {
  return async (...args) => {
    try {
      await does(...args);
    } catch (error) {
      void vscode.window.showErrorMessage(words(error));
    }
  };
}

function link(uri: vscode.Uri): Attachment {
  const label = vscode.workspace.asRelativePath(uri);
  return { label, block: { type: 'resource_link', uri: uri.toString(), name: label } };
}

/** Take what is selected in an editor, or all of its text, as it is there: saved or not. */
function selection(uri?: vscode.Uri, range?: vscode.Range): { uri: vscode.Uri; range: vscode.Range; attachment: Attachment } | undefined {
  const editor = vscode.window.activeTextEditor;
  const document = range && uri ? vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString()) : editor?.document;
  if (!document) return undefined;
  const last = document.lineAt(document.lineCount - 1).range.end;
  const wanted = range ?? (editor && !editor.selection.isEmpty ? editor.selection : new vscode.Range(new vscode.Position(0, 0), last));
  const end0 = wanted.end.character || wanted.end.line === wanted.start.line ? wanted.end.line : wanted.end.line - 1;
  const lines = new vscode.Range(wanted.start.line, 0, end0, document.lineAt(end0).text.length);
  const [first, end] = [lines.start.line + 1, lines.end.line + 1];
  const label = `${vscode.workspace.asRelativePath(document.uri)}:${first === end ? first : `${first}-${end}`}`;
  const resource = { uri: `${document.uri.toString()}#L${first}-L${end}`, mimeType: 'text/plain', text: document.getText(lines) };
  return { uri: document.uri, range: lines, attachment: { label, block: { type: 'resource', resource } } };
}

function actionsFor(document: vscode.TextDocument, range: vscode.Range, context: vscode.CodeActionContext): vscode.CodeAction[] {
  if (!context.diagnostics.length) return [];
  const wide = context.diagnostics.reduce((all, one) => all.union(one.range), new vscode.Range(range.start, range.end));
  return [['Fix with Treadle', 'treadle.fix'], ['Explain with Treadle', 'treadle.explain']].map(([title, command]) => {
    const action = new vscode.CodeAction(title!, vscode.CodeActionKind.QuickFix);
    action.diagnostics = [...context.diagnostics];
    action.command = { title: title!, command: command!, arguments: [document.uri, wide] };
    return action;
  });
}

/** Write the message of the next commit from what is staged, or else from all that is changed. */
async function commitMessage(open: Sessions, root?: vscode.Uri): Promise<void> {
  const git = vscode.extensions.getExtension('vscode.git');
  const all: any[] = git ? (await git.activate()).getAPI(1).repositories : [];
  const repository = all.find((one) => one.rootUri.toString() === root?.toString()) ?? all[0];
  if (!repository) throw new Error('No git repository is open.');
  const diff = String((await repository.diff(true)) || (await repository.diff(false)));
  if (!diff.trim()) throw new Error('Nothing is changed.');
  const asked =
    'Write the message of a git commit for this diff: a subject in the imperative of at most 72 characters, and where it is ' +
    `needed a blank line and why. Answer with the message alone.\n\n${diff.slice(0, DIFF_SENT)}`;
  await vscode.window.withProgress({ location: vscode.ProgressLocation.SourceControl, title: 'Treadle' }, async () => {
    const said = await open.aside(asked);
    repository.inputBox.value = said.replace(/^```\w*\n([\s\S]*?)\n```$/, '$1').trim();
  });
}

/** Help to install the program: the command stands in a terminal, and the person runs it. */
async function install(): Promise<void> {
  const [terminal, program] = ['Install It…', 'Choose the Program…'];
  const said = await vscode.window.showInformationMessage('Treadle is not installed, or not where it was looked for.', terminal, program);
  if (said === program) {
    await vscode.commands.executeCommand('workbench.action.openSettings', 'treadle.command');
  } else if (said === terminal) {
    const from = await vscode.window.showInputBox({ prompt: 'The folder of a checkout, or the address that it is cloned from', ignoreFocusOut: true });
    const folder = from?.startsWith('/') || from?.startsWith('.');
    if (from) inTerminal(`uv tool install '${(folder ? `${from}[all]` : `treadle[all] @ git+${from}`).replaceAll("'", '')}'`, false);
  }
}

function inTerminal(line: string, run: boolean): void {
  const terminal = vscode.window.createTerminal('Treadle');
  terminal.show();
  terminal.sendText(line, run);
}
