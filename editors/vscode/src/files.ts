// The files as the editor has them: what is typed and not saved is read, and what the agent writes goes through it.

import * as vscode from 'vscode';
import { smallestChange } from './hunks.ts';
import { INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError, type Params } from './rpc.ts';

/** Open texts. Remembers which version of each the agent read, so that it never writes over what was typed since. */
export class EditorTexts {
  private readonly versions = new Map<string, number>();

  /** Give the text of an open file; an error for any other: the agent reads the disk itself. */
  async read(params: Params): Promise<any> {
    const document = await heldText(String(params.path));
    if (!document) throw new RpcError(INTERNAL_ERROR, 'The file is not open in the editor.');
    this.versions.set(document.uri.toString(), document.version);
    return { content: document.getText() };
  }

  /** Replace the text of an open file and save it; refused where the user typed after the agent had read it. */
  async write(params: Params): Promise<any> {
    const wanted = String(params.content ?? '');
    const document = await heldText(String(params.path));
    if (!document) throw new RpcError(METHOD_NOT_FOUND, 'The file is not open in the editor.');
    const read = this.versions.get(document.uri.toString());
    if (read !== undefined && read !== document.version) {
      throw new RpcError(INTERNAL_ERROR, 'that the user typed in the file in the meantime');
    }
    const change = smallestChange(document.getText(), wanted);
    const edit = new vscode.WorkspaceEdit();
    edit.replace(document.uri, new vscode.Range(document.positionAt(change.start), document.positionAt(change.end)), change.text);
    if (!(await vscode.workspace.applyEdit(edit))) throw new RpcError(INTERNAL_ERROR, 'that the change could not be made');
    // The text from before may be closed by now, with the diff editor that it was in.
    const now = await vscode.workspace.openTextDocument(document.uri);
    if (!(await now.save())) throw new RpcError(INTERNAL_ERROR, 'that the file could not be saved');
    this.versions.set(document.uri.toString(), now.version);
    return {};
  }
}

/** Find the text of a file that is open. */
export function openText(path: string | vscode.Uri): vscode.TextDocument | undefined {
  const wanted = (typeof path === 'string' ? vscode.Uri.file(path) : path).toString();
  return vscode.workspace.textDocuments.find((one) => one.uri.toString() === wanted && !one.isClosed);
}

/** Find the text of a file that is open, unless the disk has another one that the editor has not read yet. */
async function heldText(path: string): Promise<vscode.TextDocument | undefined> {
  const document = openText(path);
  return document?.isDirty || document?.getText() === (await diskText(path)) ? document : undefined;
}

/** Give the text of a file as it is in the editor, else on the disk; empty for a file that is not there. */
export async function currentText(path: string): Promise<string> {
  return (await heldText(path))?.getText() ?? (await diskText(path)) ?? '';
}

async function diskText(path: string): Promise<string | undefined> {
  return vscode.workspace.fs.readFile(vscode.Uri.file(path)).then((data) => new TextDecoder().decode(data), () => undefined);
}
