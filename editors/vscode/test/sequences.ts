// Random sequences of what a person can do with changes, with the real agent: no edit is lost, none is made twice, and
// no question stays that nobody can answer. Run by tests/editors/test_sequences.py, which names the agent and the seeds.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';

registerHooks({
  resolve: (name, context, next) => next(name === 'vscode' ? new URL('./fakeVscode.ts', import.meta.url).href : name, context),
});
const vscode = await import('./fakeVscode.ts');
const { ProposedTexts } = await import('../src/review.ts');
const { Sessions } = await import('../src/sessions.ts');

const given = JSON.parse(process.env.TREADLE_GIVEN!) as { command: string[]; arguments: string[]; folder: string; seeds: number[]; lines: number };
const file = join(given.folder, 'a.txt');
const ACTS = ['approve', 'deny', 'comment', 'part', 'both', 'hand', 'typed', 'beside', 'outside', 'undo', 'switch', 'cancel', 'kill'] as const;

vscode.workspace.workspaceFolders.push({ uri: vscode.Uri.file(given.folder) });
Object.assign(vscode.settings, { 'treadle.command': given.command, 'treadle.arguments': given.arguments });
const proposed = new ProposedTexts();
proposed.register({ subscriptions: [] } as any);
let number = 0;
let shown = (): unknown => [];

async function until<T>(what: string, find: () => T | undefined | false): Promise<T> {
  const end = Date.now() + Number(process.env.TREADLE_LONG ?? 400) * 1000;
  for (;;) {
    const found = find();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what} did not come: ${JSON.stringify(shown())}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Do one sequence; gives the acts. */
async function sequence(seed: number): Promise<string[]> {
  let state = seed * 7919 + 1;
  const next = (below: number): number => Math.floor(((state = (state * 48271) % 2147483647) / 2147483647) * below);
  let wanted = Array.from({ length: given.lines }, (_, at) => `line ${at + 1}\n`).join('');
  writeFileSync(file, wanted);
  const sessions = new Sessions(proposed, 'test');
  sessions.onDidAsk((one: any) => (one.asked.title.startsWith('Do you trust') ? void sessions.answer(one.asked.id, 'once') : void one.review?.open()));
  shown = () => [sessions.state, sessions.transcript?.rows, sessions.transcript?.asked];
  void sessions.create(); // the first message waits for it
  const acts: string[] = [];
  for (let step = 0; step < 5; step++) {
    const act = ACTS[next(ACTS.length)]!;
    acts.push(act);
    const at = next(given.lines - 12) + 1;
    number++;
    const document = act === 'typed' || act === 'beside' || act === 'outside' || next(2) ? vscode.open(vscode.Uri.file(file)) : undefined;
    if (act === 'outside') writeFileSync(file, (wanted = `${wanted}outside ${number}\n`)); // the editor has not read it again yet
    const lines = wanted.split('\n');
    const [first, second] = [lines[at]!, lines[at + 10]!];
    const [one, two] = [`${first} (${number})`, `${second} (${number})`];
    const change = (text: string, from: string, to: string): string => text.replace(`${from}\n`, `${to}\n`);
    const both = change(change(wanted, first, one), second, two);
    if (act === 'typed') document!.change(`typed ${number}\n${document!.getText()}`);
    const ended = sessions.send(JSON.stringify({ number, edits: [[first, one], [second, two]] }));
    const pending = await until('the question', () => [...(sessions.transcript?.asked ?? [])].find((each) => each.title.startsWith('Apply')));
    const review = sessions.question(pending.id)!.review!;
    assert.equal(pending.hunks.length, 2, JSON.stringify(acts));
    await until('the diff editor', () => vscode.workspace.textDocuments.find((each) => each.uri.toString() === review.files[0]!.uri.toString()));
    const yes = (): Promise<void> => sessions.answer(pending.id, 'allow_once');
    switch (act) {
      case 'approve':
      case 'outside':
      case 'undo':
        await yes();
        wanted = both;
        break;
      case 'deny':
        await sessions.answer(pending.id, 'reject_once');
        break;
      case 'comment':
        await sessions.answer(pending.id, 'reject_once', 'Not so.');
        break;
      case 'part':
        void review.keep(0, false); // in a hurry: the answer comes before the text is another
        await yes();
        wanted = change(wanted, second, two);
        break;
      case 'both':
        void review.keep(1, false);
        void review.keep(0, false);
        await yes();
        break;
      case 'hand': {
        const right = vscode.open(review.files[0]!.uri as any);
        right.change(`${right.getText()}by hand ${number}\n`);
        assert.ok(pending.edited);
        await yes();
        wanted = `${both}by hand ${number}\n`;
        break;
      }
      case 'typed':
        await yes();
        wanted = `typed ${number}\n${both}`;
        break;
      case 'beside': // typed after the question was put: what was asked about is another text then, and that one stays
        document!.change(`${document!.getText()}beside ${number}\n`);
        await yes();
        wanted = `${both}beside ${number}\n`;
        break;
      case 'switch': {
        const before = sessions.active;
        await sessions.create();
        assert.equal(sessions.transcript!.asked.length, 0);
        sessions.show(before);
        await yes();
        wanted = both;
        break;
      }
      case 'cancel':
        sessions.cancel();
        break;
      case 'kill':
        process.kill((sessions as any).agent.process.pid, 'SIGKILL');
        await ended;
        await until('the end of what it asked', () => sessions.waiting === 0); // what it said last may come first
        await sessions.again();
        break;
    }
    await ended;
    if (act === 'undo') {
      await sessions.send('/undo');
      wanted = change(change(both, one, first), two, second);
      await until('the files as they were', () => readFileSync(file, 'utf8') === wanted); // it is said before it is done
    }
    await settle(sessions, act, number, wanted, acts);
    wanted = readFileSync(file, 'utf8');
  }
  sessions.stop();
  vscode.close(vscode.Uri.file(file));
  return acts;
}

/** What is on the disk and in the editor is what was wanted, and nothing waits. */
async function settle(sessions: InstanceType<typeof Sessions>, act: string, at: number, wanted: string, acts: string[]): Promise<void> {
  assert.equal(sessions.waiting, 0);
  await until('the commands', () => sessions.transcript!.commands.length > 0);
  assert.deepEqual([...sessions.open.values()].map((one) => one.asked.length).filter(Boolean), []);
  const open = vscode.workspace.textDocuments.find((one) => one.uri.fsPath === file && one.uri.scheme === 'file');
  const disk = readFileSync(file, 'utf8');
  const now = open?.isDirty ? open.getText() : disk;
  if (act === 'beside' && !now.includes(`(${at})`)) {
    // The edit was refused, as the text is another one: what was typed stays, and nothing of the edit was made.
    assert.ok(now.includes(`beside ${at}`), acts.join());
    await open!.save();
    return;
  }
  assert.equal(now, wanted, `${acts.join()}: ${JSON.stringify(sessions.transcript?.rows.at(-1))}`);
  // What was typed and not saved while nothing was allowed is saved by the person in the end.
  if (open?.isDirty) await open.save();
  else if (open && open.getText() !== disk) open.change(disk), await open.save(); // VS Code reads a file again that is not dirty
  assert.equal(vscode.workspace.textDocuments.filter((one) => one.uri.scheme !== 'file').length, 0, `an editor stays: ${acts.join()}`);
}

for (const seed of given.seeds) {
  const acts = await sequence(seed);
  console.log(JSON.stringify({ seed, acts }));
}
process.exit(0);
