// The chat: a web page in the side bar, told what changed, and what a person does in it done here.

import { randomBytes } from 'node:crypto';
import { relative } from 'node:path';
import * as vscode from 'vscode';
import type { Attachment, Sessions } from './sessions.ts';
import type { Transcript } from './transcript.ts';

const PAUSE = 40;
const MOST_FILES = 20;

export class ChatView implements vscode.WebviewViewProvider {
  private readonly sessions: Sessions;
  private readonly root: vscode.Uri;
  private view: vscode.WebviewView | undefined;
  private ready = false;
  private timer: NodeJS.Timeout | undefined;
  private shown: Transcript | undefined;
  private whenReady: (() => void)[] = [];
  attached: Attachment[] = [];

  constructor(sessions: Sessions, root: vscode.Uri) {
    this.sessions = sessions;
    this.root = root;
    sessions.onDidChange(() => (this.timer ??= setTimeout(() => this.flush(), PAUSE)));
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.ready = false;
    view.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.root, 'out'), vscode.Uri.joinPath(this.root, 'media')] };
    view.webview.html = this.html(view.webview);
    view.webview.onDidReceiveMessage((message) => void this.take(message));
    view.onDidDispose(() => {
      this.view = undefined;
      this.ready = false;
    });
  }

  get visible(): boolean {
    return this.view?.visible ?? false;
  }

  /** Show the chat, and put the cursor into the message. */
  async focus(): Promise<void> {
    await vscode.commands.executeCommand('treadle.chat.focus');
    if (!this.ready) await new Promise<void>((resolve) => this.whenReady.push(resolve));
    this.post({ type: 'focus' });
  }

  /** Let something go along with the next message. */
  async attach(...attached: Attachment[]): Promise<void> {
    this.attached.push(...attached);
    await this.focus();
    this.flush(true);
  }

  private post(message: unknown): void {
    if (this.ready) void this.view?.webview.postMessage(message);
  }

  /** Send what changed; all of it where another session is shown. */
  private flush(whole = false): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.ready) return;
    const { sessions } = this;
    const transcript = sessions.transcript ?? sessions.open.get('');
    const reset = whole || this.shown !== transcript;
    this.shown = transcript;
    const changed = transcript?.taken() ?? [];
    const row = (id: string, one: Transcript): unknown => ({ id, title: one.title || 'New session', waits: one.asked.length, running: one.running });
    this.post({
      type: 'state',
      reset,
      state: sessions.state,
      active: sessions.active,
      sessions: [...sessions.open].filter(([id]) => id).map(([id, one]) => row(id, one)),
      rows: reset ? (transcript?.rows ?? []) : changed,
      asked: transcript?.asked ?? [],
      plan: transcript?.plan ?? [],
      selects: transcript?.selects ?? [],
      commands: transcript?.commands ?? [],
      running: transcript?.running ?? false,
      attached: this.attached.map((one) => one.label),
    });
  }

  private async take(message: any): Promise<void> {
    const { sessions } = this;
    switch (message.type) {
      case 'ready':
        this.ready = true;
        this.flush(true);
        for (const go of this.whenReady.splice(0)) go();
        if (sessions.state === 'off') await sessions.current().catch(() => undefined);
        return;
      case 'send': {
        const attached = [...this.attached, ...problemsOf(String(message.text))];
        this.attached = [];
        return sessions.send(String(message.text), message.images ?? [], attached);
      }
      case 'detach':
        this.attached.splice(Number(message.number), 1);
        return this.flush();
      case 'cancel':
        return sessions.cancel();
      case 'answer':
        return sessions.answer(String(message.id), String(message.option), String(message.comment ?? ''));
      case 'keep':
        await sessions.question(String(message.id))?.review?.keep(Number(message.number), Boolean(message.kept));
        return;
      case 'diff':
        return sessions.question(String(message.id))?.review?.open();
      case 'choose':
        return sessions.choose(String(message.option), String(message.value));
      case 'session':
        return sessions.show(String(message.id));
      case 'open':
        await openPlace(String(message.path), Number(message.line ?? 1));
        return;
      case 'command':
        if (COMMANDS.has(message.command)) await vscode.commands.executeCommand(`treadle.${message.command}`);
        return;
      case 'find':
        return this.post({ type: 'found', number: message.number, paths: await found(String(message.text)) });
    }
  }

  private html(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString('base64');
    const uri = (...parts: string[]): string => webview.asWebviewUri(vscode.Uri.joinPath(this.root, ...parts)).toString();
    const csp = `default-src 'none'; img-src data:; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${csp}">
<meta name="viewport" content="width=device-width">
<title>Treadle</title>
<link rel="stylesheet" href="${uri('media', 'chat.css')}">
</head>
<body>
<main>
<h1 class="hidden">Treadle</h1>
<div id="top"><label class="hidden" for="sessions">Session</label><select id="sessions"></select></div>
<div id="log" role="log" aria-label="Conversation" tabindex="0"></div>
<section id="plan" aria-label="Plan"></section>
<section id="asked" aria-label="Questions"></section>
<form id="compose">
<div id="attached"></div>
<div id="menu" role="listbox" aria-label="Suggestions" tabindex="0" hidden></div>
<label class="hidden" for="text">Message</label>
<textarea id="text" rows="3" placeholder="Message (Enter sends, / for commands, @ for files)" aria-autocomplete="list" aria-controls="menu"></textarea>
<div id="below"><span id="selects"></span><span id="doing" role="status"></span>
<button type="button" id="stop" hidden>Stop</button><button type="submit" id="send">Send</button></div>
</form>
</main>
<script nonce="${nonce}" type="module" src="${uri('out', 'webview', 'webview', 'chat.js')}"></script>
</body>
</html>`;
  }
}

const COMMANDS = new Set(['again', 'login', 'install', 'newSession', 'openSession']);

/** The problems of all files go along where a message names `@problems`. */
function problemsOf(text: string): Attachment[] {
  return /(^|\s)@problems\b/.test(text) ? problems(vscode.languages.getDiagnostics()) : [];
}

/** Write problems as something that goes along with a message; nothing where there are none. */
export function problems(found: [vscode.Uri, readonly vscode.Diagnostic[]][]): Attachment[] {
  const severities = ['error', 'warning', 'information', 'hint'];
  const lines = found.flatMap(([uri, all]) =>
    all.map((one) => `${uri.fsPath}:${one.range.start.line + 1}:${one.range.start.character + 1}: ${severities[one.severity]}: ${one.message}`),
  );
  if (!lines.length) return [];
  const resource = { uri: 'vscode://problems', mimeType: 'text/plain', text: lines.join('\n') };
  return [{ label: `${lines.length} problem${lines.length === 1 ? '' : 's'}`, block: { type: 'resource', resource } }];
}

async function openPlace(path: string, line: number): Promise<void> {
  const at = new vscode.Position(Math.max(0, line - 1), 0);
  await vscode.window.showTextDocument(vscode.Uri.file(path), { selection: new vscode.Range(at, at), preview: true });
}

/** Find files whose paths have the text in them, those that are open first. */
async function found(text: string): Promise<string[]> {
  const root = vscode.workspace.workspaceFolders?.[0];
  if (!root) return [];
  const wanted = text.toLowerCase();
  const glob = `**/*${text.replace(/[^\w./-]/g, '?')}*`;
  const pattern = new vscode.RelativePattern(root, text.includes('/') ? glob.replace('**/*', '**/') : glob);
  const open = vscode.workspace.textDocuments.filter((one) => one.uri.scheme === 'file').map((one) => one.uri);
  const files = [...open, ...(await vscode.workspace.findFiles(pattern, undefined, MOST_FILES))];
  const paths = files.map((uri) => relative(root.uri.fsPath, uri.fsPath)).filter((path) => !path.startsWith('..'));
  const special = 'problems'.startsWith(wanted) ? ['problems'] : [];
  return [...special, ...new Set(paths.filter((path) => path.toLowerCase().includes(wanted)))].slice(0, MOST_FILES);
}
