// The agent's process: found, started, spoken to, and what it asks of its client handed to the right part.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import * as vscode from 'vscode';
import { RpcConnection, type Params } from './rpc.ts';

const STDERR_KEPT = 4000;

export interface AgentClient {
  updated(sessionId: string, update: any): void;
  request(method: string, params: Params, signal: AbortSignal): Promise<any>;
  ended(why: string): void;
}

/** Find the program: the setting, else `treadle` on the PATH, else where installers of Python programs put it. */
export function findTreadle(): string[] | undefined {
  const set = vscode.workspace.getConfiguration('treadle').get<string[]>('command', []);
  if (set.length) return set;
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
  const found = [...folders, join(homedir(), '.local', 'bin')].map((folder) => join(folder, 'treadle')).find((path) => existsSync(path));
  return found ? [found] : undefined;
}

/** One agent; `closed` is when its process has ended and the client was told. */
export class Agent {
  readonly rpc: RpcConnection;
  readonly closed: Promise<void>;
  private readonly process: ChildProcess;
  private said = '';
  private over = false;

  private constructor(command: string[], folder: string, client: AgentClient) {
    const [program, ...first] = command as [string, ...string[]];
    const more = vscode.workspace.getConfiguration('treadle').get<string[]>('arguments', []);
    this.process = spawn(program, [...first, 'acp', ...more], { cwd: folder, stdio: ['pipe', 'pipe', 'pipe'] });
    const request = (method: string, params: Params, signal: AbortSignal): Promise<any> => client.request(method, params, signal);
    this.rpc = new RpcConnection(this.process.stdout!, this.process.stdin!, request, (method, params) => {
      if (method === 'session/update') client.updated(String(params.sessionId), params.update ?? {});
    });
    this.process.stderr!.on('data', (data: Buffer) => (this.said = (this.said + data.toString()).slice(-STDERR_KEPT)));
    let closed = (): void => undefined;
    this.closed = new Promise((resolve) => (closed = resolve));
    const end = (why: string): void => {
      if (this.over) return;
      this.over = true;
      this.rpc.end(why);
      client.ended(why);
      closed();
    };
    this.process.on('error', (error) => end(`${program} could not be started: ${error.message}`));
    this.process.on('close', (code, signal) => {
      const how = signal ? `It was ended by ${signal}.` : `It ended with status ${code}.`;
      end(`The agent is not running. ${how}${this.said.trim() ? `\n\n${this.said.trim()}` : ''}`);
    });
  }

  /** Start and greet it. Rejects where it cannot be started, or does not speak the protocol. */
  static async start(command: string[], folder: string, client: AgentClient, version: string): Promise<Agent> {
    const agent = new Agent(command, folder, client);
    const terminal = vscode.workspace.getConfiguration('treadle').get('commandsInTerminal', false);
    await agent.rpc.ask('initialize', {
      protocolVersion: 1,
      clientInfo: { name: 'treadle-vscode', title: 'VS Code', version },
      clientCapabilities: {
        fs: { readTextFile: true, writeTextFile: true },
        terminal,
        _meta: { treadle: {} },
      },
    });
    return agent;
  }

  get running(): boolean {
    return !this.over && !this.rpc.over;
  }

  /** Close its input, which ends it after it has kept what it did; one that stays is ended. */
  stop(): void {
    this.rpc.end('The agent was ended.');
    this.process.stdin!.end();
    const timer = setTimeout(() => this.process.kill('SIGTERM'), 8000);
    this.process.on('close', () => clearTimeout(timer));
  }
}
