// What a session's updates come to: the rows that the chat shows, the plan, the choices, the money. Pure.

import type { Place } from './hunks.ts';

export type Choice = Record<'optionId' | 'name' | 'kind', string>;

export interface Call {
  id: string;
  title: string;
  kind: string;
  status: string;
  text: string;
  places: Place[];
  terminals: string[];
  locations: { path: string; line?: number }[];
}

/** A question that waits. `hunks` says which changed places of an edit are kept; `edited` that they were edited by hand. */
export interface Asked {
  id: string;
  title: string;
  text: string;
  options: Choice[];
  places: Place[];
  editable: boolean;
  dangerous: boolean;
  agent: string;
  hunks: { header: string; lines: string; kept: boolean }[];
  edited: boolean;
}

export type Row =
  | { id: string; kind: 'user'; text: string; images: string[]; attached: string[] }
  | { id: string; kind: 'agent' | 'thought'; text: string }
  | { id: string; kind: 'calls'; calls: Call[] }
  | { id: string; kind: 'problem'; text: string; action?: string; label?: string };

/** An option of a session, as the protocol has it. */
export interface Select {
  id: string;
  name: string;
  currentValue: string;
  options: { value: string; name: string; description?: string }[];
}

export interface Usage {
  used: number;
  size: number;
  cost?: number | undefined;
  estimated: boolean;
}

/** One session as the chat shows it. `changed` holds the ids of rows that were not taken yet. */
export class Transcript {
  readonly rows: Row[] = [];
  readonly changed = new Set<string>();
  readonly children = new Map<string, Call>();
  readonly asked: Asked[] = [];
  title = '';
  plan: { content: string; status: string }[] = [];
  selects: Select[] = [];
  commands: { name: string; description: string; input?: { hint: string } }[] = [];
  usage: Usage | undefined;
  running = false;
  private readonly byId = new Map<string, Row>();
  private readonly calls = new Map<string, { call: Call; row: string }>();
  private numbers = 0;

  /** Take one update of the protocol. */
  take(update: any): void {
    switch (update.sessionUpdate) {
      case 'user_message_chunk':
        return this.chunk('user', update);
      case 'agent_message_chunk':
        return this.chunk('agent', update);
      case 'agent_thought_chunk':
        return this.chunk('thought', update);
      case 'tool_call':
      case 'tool_call_update':
        return this.call(update);
      case 'plan':
        this.plan = update.entries ?? [];
        return;
      case 'available_commands_update':
        this.commands = update.availableCommands ?? [];
        return;
      case 'current_mode_update':
        for (const one of this.selects) if (one.id === 'mode') one.currentValue = String(update.currentModeId);
        return;
      case 'config_option_update':
        this.selects = update.configOptions ?? [];
        return;
      case 'session_info_update':
        if (update.title) this.title = String(update.title);
        return;
      case 'usage_update':
        this.usage = { used: update.used, size: update.size, cost: update.cost?.amount, estimated: Boolean(update._meta?.treadle?.costIsEstimated) };
    }
  }

  /** Show what the user sent; the agent does not send it back. */
  said(text: string, images: string[], attached: string[]): void {
    this.put({ id: `u${++this.numbers}`, kind: 'user', text, images, attached });
  }

  /** Show what went wrong; `action` is a command that the reader can choose. */
  problem(text: string, action?: string, label?: string): void {
    this.put({ id: `p${++this.numbers}`, kind: 'problem', text, ...(action ? { action, label: label ?? '' } : {}) });
  }

  /** End what cannot go on: the calls of an agent that is gone. */
  stopped(): void {
    for (const { call, row } of this.calls.values()) {
      if (call.status === 'pending' || call.status === 'in_progress') {
        call.status = 'stopped';
        this.changed.add(row);
      }
    }
    for (const child of this.children.values()) if (child.status === 'in_progress') child.status = 'stopped';
    this.asked.length = 0;
    this.running = false;
  }

  /** Give the rows that changed since this was last asked, in their order. */
  taken(): Row[] {
    const rows = this.rows.filter((row) => this.changed.has(row.id));
    this.changed.clear();
    return rows;
  }

  private put(row: Row): void {
    this.rows.push(row);
    this.byId.set(row.id, row);
    this.changed.add(row.id);
  }

  private chunk(kind: 'user' | 'agent' | 'thought', update: any): void {
    const id = `${kind}-${update.messageId ?? 'message'}`;
    const last = this.rows.at(-1);
    let row = last?.kind === kind && last.id.startsWith(id) ? last : this.byId.get(id);
    if (row?.kind !== kind || (kind === 'user' && row !== last)) {
      const text = { id: this.byId.has(id) ? `${id}-${++this.numbers}` : id, text: '' };
      row = kind === 'user' ? { ...text, kind, images: [], attached: [] } : { ...text, kind };
      this.put(row);
    }
    const content = update.content ?? {};
    if (content.type === 'image' && row.kind === 'user') row.images.push(`data:${content.mimeType};base64,${content.data}`);
    else row.text += (kind === 'user' && row.text ? '\n' : '') + String(content.text ?? '');
    this.changed.add(row.id);
  }

  private call(update: any): void {
    const id = String(update.toolCallId);
    const known = this.calls.get(id);
    const call: Call = known?.call ??
      this.children.get(id) ?? { id, title: id, kind: 'other', status: 'pending', text: '', places: [], terminals: [], locations: [] };
    for (const name of ['title', 'kind', 'status', 'locations'] as const) if (update[name]) call[name] = update[name];
    if (update.content) Object.assign(call, readContent(update.content));
    if (known) this.changed.add(known.row);
    else if (update._meta?.treadle?.child || this.children.has(id)) this.children.set(id, call);
    else this.group(call);
  }

  /** Show a call that is new, with those before it. */
  private group(call: Call): void {
    const last = this.rows.at(-1);
    let row: Row;
    if (last?.kind === 'calls') row = last;
    else this.put((row = { id: `c-${call.id}`, kind: 'calls', calls: [] }));
    row.calls.push(call);
    this.calls.set(call.id, { call, row: row.id });
    this.changed.add(row.id);
  }
}

/** Read the blocks of a call: its words, its changed places, and the terminals that show its output. */
export function readContent(content: any[]): { text: string; places: Place[]; terminals: string[] } {
  const texts: string[] = [];
  const places: Place[] = [];
  const terminals: string[] = [];
  for (const block of content) {
    if (block.type === 'diff') {
      const lines = block._meta?.treadle ?? {};
      places.push({
        path: String(block.path),
        oldText: block.oldText ?? null,
        newText: String(block.newText ?? ''),
        oldLine: Number(lines.oldLine ?? 1),
        newLine: Number(lines.newLine ?? 1),
      });
    } else if (block.type === 'terminal') terminals.push(String(block.terminalId));
    else if (block.content?.type === 'text') texts.push(String(block.content.text));
  }
  return { text: texts.join('\n\n'), places, terminals };
}

const DONE: Record<string, [string, string]> = {
  read: ['read', 'file'],
  edit: ['changed', 'file'],
  delete: ['deleted', 'file'],
  search: ['searched', 'time'],
  execute: ['ran', 'command'],
  fetch: ['fetched', 'page'],
};

/** Say in one line what a group of calls did. */
export function groupWords(calls: readonly Call[]): string {
  const counts = new Map<string, number>();
  for (const call of calls) {
    const kind = call.kind in DONE ? call.kind : 'other';
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const words = [...counts].map(([kind, count]) => {
    const [verb, noun] = DONE[kind] ?? ['made', kind === 'other' && counts.size > 1 ? 'other call' : 'call'];
    return `${verb} ${count} ${noun}${count === 1 ? '' : 's'}`;
  });
  const text = words.join(', ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Say how much of the model's window is taken, and what the session cost. */
export function usageWords(usage: Usage | undefined): string {
  if (!usage) return '';
  const share = usage.size > 0 ? `${Math.floor((100 * usage.used) / usage.size)}%` : '';
  if (usage.cost === undefined) return share;
  const digits = usage.cost > 0 && usage.cost < 0.01 ? 4 : 2;
  return [share, `${usage.estimated ? '≈' : ''}$${usage.cost.toFixed(digits)}`].filter(Boolean).join(' · ');
}
