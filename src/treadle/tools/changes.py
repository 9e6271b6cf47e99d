"""A change to one file as a prepared call: shown as a diff, refused when it is stale, saved atomically."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os.path import lexists

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Text
from treadle.protocol.tools import CallResult, FileChange, Outcome, Preview, ReadPath, WritePath
from treadle.tools.diffs import Diff, compare
from treadle.workspace.files import TextFile, read_text, sha256
from treadle.workspace.saving import save
from treadle.workspace.workspace import Workspace

Rewrite = Callable[[TextFile | None], str]
"""Gives the new text from the file as it is, None when there is none; raises `ToolError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """One file's change, ready to be saved. `target` is the resolved path, `before` the old hash, empty for no file."""

    target: str
    name: str
    before: str
    data: bytes
    diff: Diff

    @property
    def change(self) -> FileChange:
        """The change as the log keeps it."""
        after = sha256(self.data)
        return FileChange(
            path=self.target, before=self.before, after=after, added=self.diff.added, removed=self.diff.removed
        )


async def prepare_change(workspace: Workspace, requested: str, rewrite: Rewrite, *, echo: bool) -> Prepared:
    """Find out what a change would do to the file that was asked for; `echo` shows the model the changed lines.

    A change that is not possible becomes a call that only reads the file and then fails: its text tells what is in
    the file, and who may know that is for the policy to say.
    """
    path = workspace.paths.locate(requested)
    try:
        plan = await asyncio.to_thread(_plan, workspace, path, rewrite)
    except ToolError as refusal:
        return _refused(path, workspace.paths.display(path), refusal)
    verb = "Edit" if plan.before else "Create"
    change = plan.change
    return Prepared(
        accesses=(WritePath(path=path, before=plan.before, after=change.after),),
        preview=Preview(
            title=f"{verb} {plan.name} (+{change.added} -{change.removed})",
            text=plan.diff.unified(plan.name),
            is_diff=True,
        ),
        run=partial(_save, workspace, plan, echo),
    )


def _refused(path: str, name: str, refusal: ToolError) -> Prepared:
    async def run(output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
        raise refusal

    return Prepared(accesses=(ReadPath(path=path),), preview=Preview(title=f"Edit {name}", text=refusal.text), run=run)


def _plan(workspace: Workspace, path: str, rewrite: Rewrite) -> _Plan:
    target = workspace.paths.resolve(path)
    name = workspace.paths.display(path)
    file = read_text(target, name) if lexists(target) else None
    before = file.digest if file else ""
    if workspace.seen.stale(target, before):
        raise ToolError(
            f"{name} was changed by someone else since you last read or wrote it. "
            "Nothing was changed; read it again and base the change on what it says now."
        )
    text = rewrite(file)
    data = (file or TextFile(name=name, text="", digest="")).encode(text)
    if file and sha256(data) == before:
        raise ToolError(f"{name} already has exactly this text; there is nothing to change.")
    return _Plan(target=target, name=name, before=before, data=data, diff=compare(file.text if file else "", text))


async def _save(workspace: Workspace, plan: _Plan, echo: bool, output: Output) -> CallResult:  # noqa: FBT001 - bound
    saving = asyncio.ensure_future(
        asyncio.to_thread(save, plan.target, plan.data, expected=plan.before, name=plan.name)
    )
    try:
        await asyncio.shield(saving)
    except asyncio.CancelledError:
        # A thread cannot be stopped, and a save takes milliseconds: say what it did.
        await saving
        output(f"{plan.name} was saved.\n")
        raise
    finally:
        if saving.done() and saving.exception() is None:
            workspace.seen.note(plan.target, plan.change.after)
    return CallResult(outcome=Outcome.OK, content=(Text(text=_report(plan, echo=echo)),), changes=(plan.change,))


def _report(plan: _Plan, *, echo: bool) -> str:
    counts = f"(+{plan.diff.added} -{plan.diff.removed} lines)"
    if not echo:
        return f"{'Replaced' if plan.before else 'Created'} {plan.name} {counts}."
    return f"Saved {plan.name} {counts}. The changed places now read:\n{plan.diff.echo()}"
