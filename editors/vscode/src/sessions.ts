// The sessions of this window: opened, asked, answered, and opened again when the agent had to be started again.

import * as vscode from 'vscode';
import { Agent, findTreadle, type AgentClient } from './agent.ts';
import { EditorTexts } from './files.ts';
import { ProposedTexts, type Review } from './review.ts';
import { AUTH_REQUIRED, GoneError, RpcError, type Params } from './rpc.ts';
import { Terminals } from './terminals.ts';
import { readContent, Transcript, type Asked } from './transcript.ts';

export interface Attachment { label: string; block: any }

interface Pending {
  session: string;
  asked: Asked;
  review: Review | undefined;
  resolve(outcome: any): void;
}

/** What is open in this window. Fires when anything that is shown has changed. */
export class Sessions implements AgentClient {
  readonly open = new Map<string, Transcript>();
  active = '';
  state: 'off' | 'starting' | 'on' | 'missing' | 'failed' = 'off';
  private readonly changes = new vscode.EventEmitter<void>();
  private readonly asks = new vscode.EventEmitter<Pending>();
  private readonly texts = new EditorTexts();
  private readonly terminals = new Terminals();
  private readonly proposed: ProposedTexts;
  private readonly version: string;
  private readonly pending = new Map<string, Pending>();
  private readonly beside = new Map<string, Transcript>();
  private agent: Agent | undefined;
  private starting: Promise<Agent> | undefined;
  private opening: Promise<string> | undefined;
  private loading: Promise<unknown> = Promise.resolve();
  private reopening: Promise<void> = Promise.resolve();
  readonly onDidChange = this.changes.event;
  readonly onDidAsk = this.asks.event;

  constructor(proposed: ProposedTexts, version: string) {
    this.proposed = proposed;
    this.version = version;
    proposed.onDidChangeReview((review) => this.looked(review));
  }

  get transcript(): Transcript | undefined { return this.open.get(this.active); }
  get waiting(): number { return this.pending.size; }

  get folder(): string | undefined {
    return vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  }

  /** Give the agent, started where it is not running. */
  async connected(): Promise<Agent> {
    if (this.agent?.running) return this.agent;
    await this.agent?.closed;
    this.starting ??= this.start().finally(() => (this.starting = undefined));
    return this.starting;
  }

  /** Ask the agent. */
  async ask(method: string, params: Params): Promise<any> {
    return (await this.connected()).rpc.ask(method, params);
  }

  /** Give the id of the session that is shown, once it is open; a new one where there is none. */
  async current(): Promise<string> {
    await this.reopening;
    await this.loading.catch(() => undefined);
    return this.active && this.open.has(this.active) && !this.opening ? this.active : this.create();
  }

  /** Begin a new session; what is sent until it is open is sent in it. */
  create(): Promise<string> {
    return (this.opening ??= this.ask('session/new', this.where())
      .then((opened) => this.opened(String(opened.sessionId), opened))
      .finally(() => (this.opening = undefined)));
  }

  /** Show a session, with what was said in it. */
  async load(id: string, cwd?: string): Promise<void> {
    if (this.open.has(id)) return this.show(id);
    this.open.set(id, new Transcript());
    this.show(id);
    try {
      this.loading = this.ask('session/load', { ...this.where(), ...(cwd ? { cwd } : {}), sessionId: id });
      this.opened(id, await this.loading);
    } catch (error) {
      this.open.get(id)?.problem(words(error));
      this.changes.fire();
    }
  }

  /** Copy the session that is shown, and show the copy. */
  async fork(): Promise<void> {
    if (!this.active) return;
    const copied = await this.ask('session/fork', { ...this.where(), sessionId: this.active });
    const id = String(copied.sessionId);
    await this.ask('session/close', { sessionId: id });
    await this.load(id);
  }

  show(id: string): void {
    this.active = id;
    this.changes.fire();
  }

  /** Send a message; while a turn runs it comes in at the model's next step. */
  async send(text: string, images: { mimeType: string; data: string }[] = [], attached: Attachment[] = []): Promise<void> {
    let id: string;
    try {
      id = await this.current();
    } catch (error) {
      this.failed(error);
      return;
    }
    const transcript = this.open.get(id)!;
    const shown = images.map((one) => `data:${one.mimeType};base64,${one.data}`);
    transcript.said(text, shown, attached.map((one) => one.label));
    const prompt = [
      ...(text ? [{ type: 'text', text }] : []),
      ...images.map((one) => ({ type: 'image', ...one })),
      ...attached.map((one) => one.block),
    ];
    if (transcript.running) {
      const steered = await this.ask('_session/steering', {
        sessionId: id,
        prompt,
        _meta: { steering: { idleBehavior: 'promptRequired' } },
      }).catch((error) => ({ outcome: words(error) }));
      this.changes.fire();
      if (steered.outcome === 'injected') return;
      if (steered.outcome !== 'promptRequired') return this.failed(new Error(steered.outcome), transcript);
    }
    transcript.running = true;
    this.changes.fire();
    try {
      const ended = await this.ask('session/prompt', { sessionId: id, prompt });
      if (ended.stopReason === 'refusal') transcript.problem('The model declined to go on.');
    } catch (error) {
      if (!(error instanceof GoneError)) this.failed(error, transcript);
    } finally {
      transcript.running = false;
      this.changes.fire();
    }
  }

  /** Ask beside the work, and give the answer; nothing of it is shown. */
  async aside(text: string): Promise<string> {
    const opened = await this.ask('session/new', this.where());
    const id = String(opened.sessionId);
    const hidden = new Transcript();
    this.beside.set(id, hidden);
    try {
      await this.ask('session/prompt', { sessionId: id, prompt: [{ type: 'text', text: `/btw ${text}` }] });
      return hidden.rows.map((row) => (row.kind === 'agent' ? row.text : '')).join('\n').trim();
    } finally {
      this.beside.delete(id);
      await this.ask('session/close', { sessionId: id });
    }
  }

  /** Stop what is going on in the session that is shown. */
  cancel(): void {
    for (const one of [...this.pending.values()]) if (one.session === this.active) void this.over(one, CANCELLED);
    this.agent?.rpc.tell('session/cancel', { sessionId: this.active });
  }

  /** Choose another value of an option of the session that is shown. */
  async choose(option: string, value: string): Promise<void> {
    const id = await this.current();
    try {
      const changed = await this.ask('session/set_config_option', { sessionId: id, configId: option, value });
      this.updated(id, { sessionUpdate: 'config_option_update', ...changed });
    } catch (error) {
      this.failed(error, this.open.get(id));
    }
    this.changes.fire();
  }

  /** Answer a question with one of its options. With a yes goes what was made of its change in the diff editor. */
  async answer(id: string, option: string, comment = ''): Promise<void> {
    await this.pending.get(id)?.review?.keeping; // what was left out just before, too
    const one = this.pending.get(id);
    if (!one) return;
    const chosen = one.asked.options.find((each) => each.optionId === option);
    const yes = chosen?.kind.startsWith('allow');
    const edited = yes ? one.review?.result : undefined;
    const details = { ...(comment ? { comment } : {}), ...(edited ? { edited } : {}) };
    await this.over(one, {
      outcome: { outcome: 'selected', optionId: option, ...(comment || edited ? { _meta: { treadle: details } } : {}) },
    });
  }

  /** Find the question that an open review belongs to. */
  pendingOf(review: Review | undefined): Pending | undefined {
    return [...this.pending.values()].find((one) => one.review === review);
  }

  question = (id: string): Pending | undefined => this.pending.get(id);

  /** Start the agent anew, and open what was open. */
  async restart(): Promise<void> {
    this.agent?.stop();
    await this.again();
  }

  /** Open what was open when the agent went away. */
  again(): Promise<void> {
    return (this.reopening = this.reopen());
  }

  private async reopen(): Promise<void> {
    const [ids, active] = [[...this.open.keys()].filter(Boolean), this.active];
    this.open.clear();
    try {
      await this.connected();
      for (const id of ids) await this.load(id);
      if (active) this.show(active);
    } catch (error) {
      for (const id of ids) if (!this.open.has(id)) this.open.set(id, new Transcript());
      this.failed(error);
    }
  }

  stop(): void {
    this.agent?.stop();
    this.terminals.dispose();
  }

  updated(sessionId: string, update: any): void {
    if (this.opening && !this.beside.has(sessionId) && !this.open.has(sessionId)) this.open.set(sessionId, new Transcript()); // its id comes next
    (this.open.get(sessionId) ?? this.beside.get(sessionId))?.take(update);
    this.changes.fire();
  }

  /** Do what the agent asks for. */
  async request(method: string, params: Params, signal: AbortSignal): Promise<any> {
    switch (method) {
      case 'session/request_permission':
        return this.permission(params, signal);
      case 'fs/read_text_file':
        return this.texts.read(params);
      case 'fs/write_text_file':
        return this.texts.write(params);
      default:
        return this.terminals.handle(method, params);
    }
  }

  private async permission(params: Params, signal: AbortSignal): Promise<any> {
    const session = String(params.sessionId);
    const transcript = this.open.get(session);
    const call = params.toolCall ?? {};
    if (!transcript) return CANCELLED;
    const about = call._meta?.treadle ?? {};
    const { text, places } = readContent(call.content ?? []);
    const id = `${session}:${call.toolCallId}`;
    const review = places.length ? await this.proposed.review(id, places, Boolean(about.editable)) : undefined;
    if (signal.aborted) return CANCELLED;
    transcript.take({ ...call, sessionUpdate: 'tool_call_update' });
    const asked: Asked = {
      id,
      title: String(call.title ?? ''),
      text,
      options: params.options ?? [],
      places,
      editable: Boolean(review?.editable),
      dangerous: Boolean(about.dangerous),
      agent: String(about.agent ?? ''),
      hunks: review?.cards ?? [],
      edited: false,
    };
    return new Promise((resolve) => {
      const pending: Pending = { session, asked, review, resolve };
      this.pending.set(id, pending);
      transcript.asked.push(asked);
      signal.addEventListener('abort', () => void this.over(pending, CANCELLED));
      this.asks.fire(pending);
      this.changes.fire();
    });
  }

  ended(why: string): void {
    this.state = this.state === 'starting' ? 'failed' : 'off';
    for (const one of [...this.pending.values()]) void this.over(one, CANCELLED);
    for (const transcript of this.open.values()) {
      transcript.stopped();
      transcript.problem(why, 'again', 'Start it again');
    }
    this.agent = undefined;
    this.changes.fire();
  }

  private async start(): Promise<Agent> {
    const command = findTreadle();
    if (!command) {
      this.state = 'missing';
      this.changes.fire();
      throw new Error('The program treadle was not found.');
    }
    this.state = 'starting';
    this.changes.fire();
    try {
      this.agent = await Agent.start(command, this.folder ?? process.cwd(), this, this.version);
    } catch (error) {
      this.state = 'failed';
      throw error;
    } finally {
      this.changes.fire();
    }
    this.state = 'on';
    this.changes.fire();
    return this.agent;
  }

  private opened(id: string, opened: any): string {
    const transcript = this.open.get(id) ?? new Transcript();
    this.open.delete('');
    this.open.set(id, transcript);
    transcript.take({ sessionUpdate: 'config_option_update', ...opened });
    this.show(id);
    return id;
  }

  private where(): Params {
    if (!this.folder) throw new Error('Open a folder first: the agent works in one.');
    const more = (vscode.workspace.workspaceFolders ?? []).slice(1).map((one) => one.uri.fsPath);
    return { cwd: this.folder, mcpServers: [], ...(more.length ? { additionalDirectories: more } : {}) };
  }

  private failed(error: unknown, transcript = this.transcript): void {
    const shown = transcript ?? new Transcript();
    if (!transcript) {
      this.open.set('', shown);
      this.active = '';
    }
    const login = error instanceof RpcError && error.code === AUTH_REQUIRED;
    shown.problem(words(error), ...(login ? (['login', "Store a provider's key…"] as const) : []));
    this.changes.fire();
  }

  private looked(review: Review): void {
    const one = this.pendingOf(review);
    if (!one) return;
    one.asked.hunks = review.cards;
    one.asked.edited = review.editable && !review.kept;
    this.changes.fire();
  }

  private async over(one: Pending, outcome: any): Promise<void> {
    if (!this.pending.delete(one.asked.id)) return;
    const asked = this.open.get(one.session)?.asked;
    const at = asked?.indexOf(one.asked) ?? -1;
    if (at >= 0) asked!.splice(at, 1);
    one.resolve(outcome);
    this.changes.fire();
    await one.review?.close();
  }
}

const CANCELLED = { outcome: { outcome: 'cancelled' } };

export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
