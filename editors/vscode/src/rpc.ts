// JSON-RPC 2.0 over lines of JSON, as the Agent Client Protocol has it on standard streams. Needs nothing but node.

import type { Readable, Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

export type Params = Record<string, any>;

export const METHOD_NOT_FOUND = -32601;
export const INTERNAL_ERROR = -32603;
export const AUTH_REQUIRED = -32000;
export const RESOURCE_NOT_FOUND = -32002;

/** The error of a request, as the other side gave it. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: any;

  constructor(code: number, message: string, data?: any) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The other side is gone: what was asked of it has no answer. */
export class GoneError extends Error {}

interface Waiting { resolve(result: any): void; reject(error: Error): void }

/** Both directions of one connection. `handlers` answer what the other side asks; `notice` takes what it tells. */
export class RpcConnection {
  private readonly waiting = new Map<number, Waiting>();
  private readonly asked = new Map<string | number, AbortController>();
  private readonly input: Writable;
  private readonly request: (method: string, params: Params, signal: AbortSignal) => Promise<any>;
  private readonly notice: (method: string, params: Params) => void;
  private numbers = 0;
  private rest = '';
  private gone = '';

  constructor(
    output: Readable,
    input: Writable,
    request: (method: string, params: Params, signal: AbortSignal) => Promise<any>,
    notice: (method: string, params: Params) => void,
  ) {
    this.input = input;
    this.request = request;
    this.notice = notice;
    const decoder = new StringDecoder('utf8');
    output.on('data', (data: Buffer) => this.take(decoder.write(data)));
    output.on('end', () => this.end('The agent has ended.'));
    input.on('error', () => this.end('The agent takes no more messages.'));
  }

  /** Ask for something. Rejects with `RpcError`, or `GoneError` where no answer can come any more. */
  ask(method: string, params: Params): Promise<any> {
    if (this.gone) return Promise.reject(new GoneError(this.gone));
    const id = ++this.numbers;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ jsonrpc: '2.0', id, method, params });
    });
  }

  /** Tell something. */
  tell(method: string, params: Params): void {
    if (!this.gone) this.send({ jsonrpc: '2.0', method, params });
  }

  /** No answer comes any more: whoever waits for one is told `why`, and what the other side asked is over. */
  end(why: string): void {
    if (this.gone) return;
    this.gone = why;
    for (const waiting of this.waiting.values()) waiting.reject(new GoneError(why));
    for (const asked of this.asked.values()) asked.abort();
    this.waiting.clear();
    this.asked.clear();
  }

  get over(): boolean {
    return this.gone !== '';
  }

  private send(message: Params): void {
    this.input.write(JSON.stringify(message) + '\n');
  }

  private take(text: string): void {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.trim()) continue;
      let message: any;
      try {
        message = JSON.parse(line);
      } catch {
        continue; // a line that is none of the protocol, such as one that a wrapper printed
      }
      if (message && typeof message === 'object') this.read(message);
    }
  }

  private read(message: Params): void {
    if (typeof message.method !== 'string') {
      const waiting = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (!waiting) return;
      const error = message.error;
      if (error) waiting.reject(new RpcError(error.code ?? INTERNAL_ERROR, String(error.message ?? 'It failed.'), error.data));
      else waiting.resolve(message.result);
    } else if (message.id === undefined || message.id === null) {
      if (message.method === '$/cancel_request') this.asked.get(message.params?.requestId)?.abort();
      else this.notice(message.method, message.params ?? {});
    } else {
      void this.answer(message.id, message.method, message.params ?? {});
    }
  }

  private async answer(id: string | number, method: string, params: Params): Promise<void> {
    const over = new AbortController();
    this.asked.set(id, over);
    let answer: Params;
    try {
      answer = { result: (await this.request(method, params, over.signal)) ?? {} };
    } catch (error) {
      const code = error instanceof RpcError ? error.code : INTERNAL_ERROR;
      answer = { error: { code, message: error instanceof Error ? error.message : String(error) } };
    }
    if (this.asked.delete(id) && !this.gone) this.send({ jsonrpc: '2.0', id, ...answer });
  }
}
