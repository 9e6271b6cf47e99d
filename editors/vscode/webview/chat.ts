// The page of the chat: shows the rows that it is told of, and tells what the person does.

import { markdown } from '../src/markdown.ts';
import { hunksOf, linesOf } from '../src/hunks.ts';
import { groupWords, type Asked, type Call, type Row, type Select, type Transcript } from '../src/transcript.ts';

interface State {
  reset: boolean;
  state: string;
  active: string;
  sessions: { id: string; title: string; waits: number; running: boolean }[];
  rows: Row[];
  asked: Asked[];
  plan: Transcript['plan'];
  selects: Select[];
  commands: Transcript['commands'];
  running: boolean;
  attached: string[];
}

declare function acquireVsCodeApi(): { postMessage(message: unknown): void; getState(): any; setState(state: unknown): void };

const host = acquireVsCodeApi();
const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const log = byId('log');
const text = byId<HTMLTextAreaElement>('text');
const menu = byId('menu');
const stop = byId<HTMLButtonElement>('stop');
const sessions = byId<HTMLSelectElement>('sessions');
const shown = new Map<string, HTMLElement>();
const questions = new Map<string, { element: HTMLElement; seen: string }>();
const images: { mimeType: string; data: string }[] = [];
let commands: Transcript['commands'] = [];
let numbers = 0;

type Child = Node | string | null | undefined | false;

function make(tag: string, attributes: Record<string, string | boolean | ((event: Event) => void)> = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child): child is Node | string => Boolean(child)));
  return element;
}

function prose(source: string, name: string): HTMLElement {
  const element = make('div', { class: name });
  element.innerHTML = markdown(source); // what it gives is escaped, piece by piece
  return element;
}

const STATUS: Record<string, [string, string]> = {
  pending: ['○', 'waiting'],
  in_progress: ['◐', 'running'],
  completed: ['✓', 'done'],
  failed: ['✗', 'failed'],
  stopped: ['–', 'stopped'],
};

function rowElement(row: Row, before: HTMLElement | undefined): HTMLElement {
  switch (row.kind) {
    case 'user':
      return make(
        'div',
        { class: 'row user' },
        make('span', { class: 'hidden' }, 'You: '),
        row.text,
        ...row.attached.map((label) => make('span', { class: 'chip' }, label)),
        ...row.images.map((source) => make('img', { src: source, alt: 'An image that you sent' })),
      );
    case 'agent':
      return prose(row.text, 'row agent');
    case 'thought': {
      const open = before instanceof HTMLDetailsElement && before.open;
      const first = row.text.trim().split('\n')[0] ?? '';
      const short = first.length > 90 ? `${first.slice(0, 90)}…` : first;
      return make('details', { class: 'row thought', open }, make('summary', {}, short || 'Thinking'), prose(row.text, 'body'));
    }
    case 'calls':
      return callsElement(row.calls, before);
    case 'problem': {
      const does = row.action && make('button', { type: 'button', click: () => host.postMessage({ type: 'command', command: row.action }) }, row.label ?? '');
      return make('div', { class: 'row problem', role: 'alert' }, prose(row.text, 'body'), does);
    }
  }
}

function callsElement(calls: Call[], before: HTMLElement | undefined): HTMLElement {
  const open = new Set([...(before?.querySelectorAll('details[open]') ?? [])].map((one) => (one as HTMLElement).dataset.id));
  const running = calls.some((call) => call.status === 'in_progress' || call.status === 'pending');
  const failed = calls.filter((call) => call.status === 'failed').length;
  const items = calls.map((call) => callElement(call, open.has(call.id)));
  if (calls.length === 1) return make('div', { class: 'row calls' }, ...items);
  const words = groupWords(calls) + (failed ? `, ${failed} failed` : '');
  const isOpen = open.has('group') || (running && !before) || (before instanceof HTMLElement && !before.querySelector('[data-id=group]'));
  return make('div', { class: 'row calls' }, make('details', { 'data-id': 'group', open: isOpen }, make('summary', {}, words), ...items));
}

function callElement(call: Call, open: boolean): HTMLElement {
  const [sign, said] = STATUS[call.status] ?? ['○', call.status];
  const summary = make('summary', {}, make('span', { class: `sign ${call.status}`, 'aria-hidden': 'true' }, sign), ' ', call.title, make('span', { class: 'hidden' }, `, ${said}`));
  const body = make('div', { class: 'body' });
  for (const place of call.places) {
    const lines = diffLines(place.oldText ?? '', place.newText);
    body.append(pathButton(place.path, place.newLine), prose('```diff\n' + lines + '\n```', 'diff'));
  }
  if (!call.places.length) for (const one of call.locations) body.append(pathButton(one.path, one.line ?? 1));
  if (call.text) body.append(prose(call.text, 'text'));
  if (call.terminals.length) body.append(make('p', { class: 'note' }, 'Its output is shown in the terminal.'));
  if (!body.childNodes.length) return make('div', { class: 'call' }, ...summary.childNodes);
  return make('details', { class: 'call', 'data-id': call.id, open }, summary, body);
}

function pathButton(path: string, line: number): HTMLElement {
  const click = (): void => host.postMessage({ type: 'open', path, line });
  return make('button', { type: 'button', class: 'path', click }, line > 1 ? `${path}:${line}` : path);
}

/** Write two short texts as the lines of a diff. */
function diffLines(oldText: string, newText: string): string {
  const [old, made] = [linesOf(oldText), linesOf(newText)];
  let at = 0;
  const rows = hunksOf(oldText, newText).flatMap((hunk) => {
    const same = old.slice(at, hunk.start).map((line) => ` ${line}`);
    at = hunk.end;
    return [...same, ...old.slice(hunk.start, hunk.end).map((line) => `-${line}`), ...made.slice(hunk.newStart, hunk.newEnd).map((line) => `+${line}`)];
  });
  return [...rows, ...old.slice(at).map((line) => ` ${line}`)].map((line) => line.replace(/\n$/, '')).join('\n');
}

function askedElement(asked: Asked, said: string): HTMLElement {
  const comment = make('input', { type: 'text', 'aria-label': 'Comment', placeholder: 'Comment (optional)', value: said }) as HTMLInputElement;
  const answer = (option: string): void => host.postMessage({ type: 'answer', id: asked.id, option, comment: comment.value });
  const buttons = asked.options.map((option) => {
    const primary = option.kind.startsWith('allow') && !asked.dangerous && option === asked.options[0];
    const name = option.kind === 'allow_once' && (asked.edited || asked.hunks.some((hunk) => !hunk.kept)) ? 'Yes, with your change' : option.name;
    return make('button', { type: 'button', class: primary ? 'primary' : '', click: () => answer(option.optionId) }, name);
  });
  const boxes = asked.hunks.map((hunk, number) => {
    const box = make('input', {
      type: 'checkbox',
      checked: hunk.kept,
      disabled: asked.edited,
      change: (event) => host.postMessage({ type: 'keep', id: asked.id, number, kept: (event.target as HTMLInputElement).checked }),
    });
    return make('div', { class: 'hunk' }, make('label', {}, box, ' ', hunk.header), prose('```diff\n' + hunk.lines + '\n```', 'diff'));
  });
  const diff = asked.places.length > 0 && make('button', { type: 'button', click: () => host.postMessage({ type: 'diff', id: asked.id }) }, 'Open the diff');
  return make(
    'div',
    { class: asked.dangerous ? 'question danger' : 'question', role: 'group', 'aria-label': asked.title },
    make('h2', {}, asked.agent ? `${asked.agent}: ${asked.title}` : asked.title),
    prose(asked.text.replace(`**${asked.title}**`, '').trim(), 'body'),
    asked.edited && make('p', { class: 'note' }, 'You edited this change. It is applied as it stands in the diff editor.'),
    ...boxes,
    make('div', { class: 'buttons' }, ...buttons, diff),
    comment,
  );
}

function showQuestions(asked: Asked[]): void {
  const section = byId('asked');
  const still = new Set(asked.map((one) => one.id));
  for (const [id, { element }] of questions) {
    if (still.has(id)) continue;
    const had = element.contains(document.activeElement);
    element.remove();
    questions.delete(id);
    if (had) text.focus();
  }
  for (const one of asked) {
    const seen = JSON.stringify(one);
    const before = questions.get(one.id);
    if (before?.seen === seen) continue;
    const said = before?.element.querySelector<HTMLInputElement>('input[type=text]')?.value ?? '';
    const focused = before ? [...before.element.querySelectorAll('input, button')].indexOf(document.activeElement as Element) : -1;
    const element = askedElement(one, said);
    if (before) before.element.replaceWith(element);
    else section.append(element);
    if (focused >= 0) element.querySelectorAll<HTMLElement>('input, button')[focused]?.focus();
    questions.set(one.id, { element, seen });
  }
}

function showPlan(plan: Transcript['plan']): void {
  const section = byId('plan');
  const done = plan.filter((one) => one.status === 'completed').length;
  const open = section.querySelector('details')?.open ?? true;
  const items = plan.map((one) => make('li', {}, `${one.status === 'completed' ? '☑' : one.status === 'in_progress' ? '◐' : '☐'} ${one.content}`));
  const summary = make('summary', {}, `Plan: ${done} of ${plan.length} done`);
  section.replaceChildren(...(plan.length ? [make('details', { open }, summary, make('ul', {}, ...items))] : []));
}

let selectsSeen = '';

function showSelects(selects: Select[]): void {
  const seen = JSON.stringify(selects);
  if (seen === selectsSeen) return;
  selectsSeen = seen;
  byId('selects').replaceChildren(
    ...selects.map((one) => {
      const change = (event: Event): void => host.postMessage({ type: 'choose', option: one.id, value: (event.target as HTMLSelectElement).value });
      const options = one.options.map((each) => make('option', { value: each.value, selected: each.value === one.currentValue, title: each.description ?? '' }, each.name));
      return make('select', { 'aria-label': one.name, title: one.name, change }, ...options);
    }),
  );
}

let sessionsSeen = '';

function showSessions(state: State): void {
  const seen = JSON.stringify([state.sessions, state.active]);
  if (seen === sessionsSeen) return;
  sessionsSeen = seen;
  byId('top').hidden = state.sessions.length < 2;
  sessions.replaceChildren(
    ...state.sessions.map((one) => make('option', { value: one.id, selected: one.id === state.active }, (one.waits ? '● ' : one.running ? '◐ ' : '') + one.title)),
  );
}

function showAttached(labels: string[]): void {
  const chips = labels.map((label, number) => chip(label, () => host.postMessage({ type: 'detach', number })));
  const shownImages = images.map((_, number) =>
    chip(`Image ${number + 1}`, () => {
      images.splice(number, 1);
      showAttached(labels);
    }),
  );
  attachedLabels = labels;
  byId('attached').replaceChildren(...chips, ...shownImages);
}

let attachedLabels: string[] = [];

function chip(label: string, remove: () => void): HTMLElement {
  return make('span', { class: 'chip' }, label, make('button', { type: 'button', 'aria-label': `Remove ${label}`, click: remove }, '×'));
}

const WELCOME: Record<string, string> = {
  missing: 'The program `treadle` was not found.',
  failed: 'The agent could not be started.',
  starting: 'Starting the agent …',
};

function showRows(state: State): void {
  if (state.reset) {
    shown.clear();
    log.replaceChildren();
  }
  for (const row of state.rows) {
    const before = shown.get(row.id);
    const element = rowElement(row, before);
    if (before) before.replaceWith(element);
    else log.append(element);
    shown.set(row.id, element);
  }
  log.querySelector('.welcome')?.remove();
  if (!shown.size) {
    const words = WELCOME[state.state] ?? 'Give a task: Treadle reads, edits and runs commands in this folder, and asks before it changes anything.';
    const install = state.state === 'missing' && make('button', { type: 'button', click: () => host.postMessage({ type: 'command', command: 'install' }) }, 'Install Treadle…');
    const again = state.state === 'failed' && make('button', { type: 'button', click: () => host.postMessage({ type: 'command', command: 'again' }) }, 'Start it again');
    log.append(make('div', { class: 'welcome' }, prose(words, 'body'), install, again));
  }
  if (state.reset) atEnd = true;
}

let atEnd = true;

/** Keep the end in sight, unless the person looks at what is above. */
function follow(): void {
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function show(state: State): void {
  commands = state.commands;
  showRows(state);
  showPlan(state.plan);
  showQuestions(state.asked);
  showSelects(state.selects);
  showSessions(state);
  showAttached(state.attached);
  stop.hidden = !state.running;
  byId('send').textContent = state.running ? 'Steer' : 'Send';
  const doing = state.asked.length ? 'Waiting for you' : state.running ? 'Working …' : '';
  if (byId('doing').textContent !== doing) byId('doing').textContent = doing;
  follow();
}

// The message and its suggestions

interface Suggestion { insert: string; label: string; about: string }

let suggestions: Suggestion[] = [];
let chosen = 0;
let asking = 0;

function wordBefore(): { word: string; start: number } {
  const before = text.value.slice(0, text.selectionStart);
  const start = Math.max(before.lastIndexOf(' '), before.lastIndexOf('\n')) + 1;
  return { word: before.slice(start), start };
}

function suggest(): void {
  const { word, start } = wordBefore();
  if (word.startsWith('/') && start === 0) {
    const wanted = word.slice(1).toLowerCase();
    offer(commands.filter((one) => one.name.toLowerCase().startsWith(wanted)).map((one) => ({ insert: `/${one.name} `, label: `/${one.name} ${one.input?.hint ?? ''}`, about: one.description })));
  } else if (word.startsWith('@')) {
    asking = ++numbers;
    host.postMessage({ type: 'find', number: asking, text: word.slice(1) });
  } else {
    offer([]);
  }
}

function offer(found: Suggestion[]): void {
  suggestions = found.slice(0, 12);
  chosen = 0;
  drawMenu();
}

function drawMenu(): void {
  menu.hidden = !suggestions.length;
  menu.replaceChildren(
    ...suggestions.map((one, number) =>
      make(
        'div',
        {
          role: 'option',
          id: `option-${number}`,
          'aria-selected': number === chosen ? 'true' : 'false',
          mousedown: (event) => {
            event.preventDefault();
            chosen = number;
            take();
          },
        },
        make('strong', {}, one.label),
        one.about && make('span', { class: 'note' }, one.about),
      ),
    ),
  );
  menu.children[chosen]?.scrollIntoView({ block: 'nearest' });
  if (suggestions.length) text.setAttribute('aria-activedescendant', `option-${chosen}`);
  else text.removeAttribute('aria-activedescendant');
}

function take(): void {
  const one = suggestions[chosen];
  if (!one) return;
  const { start } = wordBefore();
  text.setRangeText(one.insert, start, text.selectionStart, 'end');
  offer([]);
}

function send(): void {
  const said = text.value.trim();
  if (!said && !images.length && !attachedLabels.length) return;
  host.postMessage({ type: 'send', text: said, images: images.splice(0) });
  text.value = '';
  host.setState({ text: '' });
  offer([]);
}

text.addEventListener('input', () => {
  host.setState({ text: text.value });
  suggest();
});
text.addEventListener('keydown', (event) => {
  if (event.isComposing) return;
  const isWhole = event.key === 'Enter' && suggestions[chosen]?.insert.trim() === text.value.trim(); // nothing is left to complete
  if (suggestions.length && !isWhole && ['ArrowDown', 'ArrowUp', 'Tab', 'Enter', 'Escape'].includes(event.key)) {
    event.preventDefault();
    if (event.key === 'Escape') return offer([]);
    if (event.key === 'Tab' || event.key === 'Enter') return take();
    chosen = (chosen + (event.key === 'ArrowDown' ? 1 : suggestions.length - 1)) % suggestions.length;
    drawMenu();
  } else if (event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault();
    send();
  }
});
text.addEventListener('blur', () => offer([]));
byId('compose').addEventListener('submit', (event) => {
  event.preventDefault();
  send();
});
log.addEventListener('scroll', () => (atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60));
new ResizeObserver(follow).observe(log);
stop.addEventListener('click', () => host.postMessage({ type: 'cancel' }));
sessions.addEventListener('change', () => host.postMessage({ type: 'session', id: sessions.value }));

function addImages(files: Iterable<File>): void {
  for (const file of files) {
    if (!file.type.startsWith('image/')) continue;
    const reader = new FileReader();
    reader.onload = () => {
      images.push({ mimeType: file.type, data: String(reader.result).split(',')[1] ?? '' });
      showAttached(attachedLabels);
    };
    reader.readAsDataURL(file);
  }
}

text.addEventListener('paste', (event) => addImages(event.clipboardData?.files ?? []));
document.addEventListener('dragover', (event) => event.preventDefault());
document.addEventListener('drop', (event) => {
  event.preventDefault();
  addImages(event.dataTransfer?.files ?? []);
});

window.addEventListener('message', (event: MessageEvent) => {
  const message = event.data;
  if (message.type === 'state') show(message);
  else if (message.type === 'focus') text.focus();
  else if (message.type === 'found' && message.number === asking && wordBefore().word.startsWith('@')) {
    offer(message.paths.map((path: string) => ({ insert: /\s/.test(path) ? `@"${path}" ` : `@${path} `, label: path, about: path === 'problems' ? 'errors and warnings of all files' : '' })));
  }
});

text.value ||= host.getState()?.text ?? '';
host.postMessage({ type: 'ready' });
