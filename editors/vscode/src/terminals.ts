// The output of commands in terminals of VS Code. The agent runs the command itself, confined; this only shows it.

import { spawn, type ChildProcess } from 'node:child_process';
import * as vscode from 'vscode';
import { INTERNAL_ERROR, RpcError, type Params } from './rpc.ts';

interface Running {
  process: ChildProcess;
  exit: Promise<{ exitCode: number | null; signal: string | null }>;
}

/** The terminals that the agent asked for. */
export class Terminals {
  private readonly running = new Map<string, Running>();
  private readonly shown = new Map<string, { terminal: vscode.Terminal; write: (text: string) => void }>();
  private numbers = 0;

  async handle(method: string, params: Params): Promise<any> {
    if (method === 'terminal/create') return this.create(params);
    const one = this.running.get(String(params.terminalId));
    if (!one) throw new RpcError(INTERNAL_ERROR, 'There is no such terminal.');
    switch (method) {
      case 'terminal/wait_for_exit':
        return one.exit;
      case 'terminal/release':
        one.process.kill();
        this.running.delete(String(params.terminalId));
        return {};
      default:
        throw new RpcError(INTERNAL_ERROR, `There is no ${method}.`);
    }
  }

  dispose(): void {
    for (const one of this.running.values()) one.process.kill();
    for (const one of this.shown.values()) one.terminal.dispose();
  }

  private create(params: Params): any {
    const session = String(params.sessionId);
    const write = this.terminalOf(session);
    const args = (params.args ?? []).map(String);
    const child = spawn(String(params.command), args, { cwd: params.cwd ?? undefined, stdio: ['ignore', 'pipe', 'pipe'] });
    const one: Running = {
      process: child,
      exit: new Promise((resolve) => {
        child.on('error', () => resolve({ exitCode: 127, signal: null }));
        child.on('close', (exitCode, signal) => resolve({ exitCode, signal }));
      }),
    };
    const show = (data: Buffer): void => write(data.toString());
    child.stdout!.on('data', show);
    child.stderr!.on('data', show);
    const id = `terminal-${++this.numbers}`;
    this.running.set(id, one);
    return { terminalId: id };
  }

  /** One terminal for each session: its commands follow on each other there. */
  private terminalOf(session: string): (text: string) => void {
    const known = this.shown.get(session);
    if (known && known.terminal.exitStatus === undefined) return known.write;
    const writes = new vscode.EventEmitter<string>();
    let waits: string | undefined = ''; // until it is shown
    const write = (text: string): void => {
      if (waits === undefined) writes.fire(text.replace(/\r?\n/g, '\r\n'));
      else waits += text;
    };
    const open = (): void => {
      const first = waits ?? '';
      waits = undefined;
      write(first);
    };
    const pty = { onDidWrite: writes.event, open, close: () => undefined };
    const terminal = vscode.window.createTerminal({ name: 'Treadle', pty, isTransient: true });
    terminal.show(true);
    this.shown.set(session, { terminal, write });
    return write;
  }
}
