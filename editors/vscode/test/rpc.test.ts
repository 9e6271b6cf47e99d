import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { GoneError, RpcConnection, RpcError, type Params } from '../src/rpc.ts';

function pair(request: (method: string, params: Params, signal: AbortSignal) => Promise<any> = async () => ({})) {
  const [fromAgent, toAgent] = [new PassThrough(), new PassThrough()];
  const told: [string, Params][] = [];
  const connection = new RpcConnection(fromAgent, toAgent, request, (method, params) => told.push([method, params]));
  const sent = (): any[] => String(toAgent.read() ?? '').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const say = (message: unknown): void => void fromAgent.write(`${JSON.stringify(message)}\n`);
  return { connection, fromAgent, sent, say, told };
}

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('answers find their questions, whatever their order', async () => {
  const { connection, sent, say } = pair();
  const [one, two] = [connection.ask('a', {}), connection.ask('b', { x: 1 })];
  assert.deepEqual(sent().map((message) => [message.id, message.method]), [[1, 'a'], [2, 'b']]);
  say({ jsonrpc: '2.0', id: 2, result: 'second' });
  say({ jsonrpc: '2.0', id: 1, error: { code: -32000, message: 'no', data: { why: 'x' } } });
  assert.equal(await two, 'second');
  await assert.rejects(one, (error: RpcError) => error.code === -32000 && error.data.why === 'x');
});

test('a message may come in pieces that cut a character, between lines that are none', async () => {
  const { connection, fromAgent } = pair();
  const answer = connection.ask('a', {});
  const bytes = Buffer.from(`Warning: x\n\n[1]\n"x"\n{"jsonrpc":"2.0","id":1,"result":"ä€"}\n`);
  for (const byte of bytes) fromAgent.write(Buffer.from([byte]));
  assert.equal(await answer, 'ä€');
});

test('when the agent ends, whoever waits is told, and so is whoever asks later', async () => {
  let aborted = false;
  const { connection, fromAgent, say } = pair((_, __, signal) => new Promise(() => signal.addEventListener('abort', () => (aborted = true))));
  const waiting = connection.ask('a', {});
  say({ jsonrpc: '2.0', id: 'q', method: 'session/request_permission', params: {} });
  await soon();
  fromAgent.end();
  await assert.rejects(waiting, GoneError);
  await assert.rejects(connection.ask('b', {}), GoneError);
  assert.ok(aborted);
});

test('what the agent asks is answered once, with an error where it fails', async () => {
  const { sent, say } = pair(async (method) => {
    if (method === 'bad') throw new RpcError(-32601, 'none');
    return { method };
  });
  say({ jsonrpc: '2.0', id: 7, method: 'good', params: {} });
  say({ jsonrpc: '2.0', id: 'x', method: 'bad' });
  await soon();
  await soon();
  assert.deepEqual(sent(), [
    { jsonrpc: '2.0', id: 7, result: { method: 'good' } },
    { jsonrpc: '2.0', id: 'x', error: { code: -32601, message: 'none' } },
  ]);
});

test('a question that is taken back is over', async () => {
  const { say, told } = pair((_, __, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(told.push(['over', {}])))));
  say({ jsonrpc: '2.0', id: 3, method: 'session/request_permission', params: {} });
  say({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 3 } });
  say({ jsonrpc: '2.0', method: 'session/update', params: { x: 1 } });
  await soon();
  assert.deepEqual(told, [['over', {}], ['session/update', { x: 1 }]]);
});
