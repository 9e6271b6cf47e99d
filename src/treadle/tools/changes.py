"""Changes to files as a prepared call: shown as a diff, refused when stale, each saved atomically."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from os.path import lexists
from pathlib import Path

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Text
from treadle.protocol.tools import CallResult, EditReport, FileChange, Outcome, Preview, ReadPath, WritePath
from treadle.tools.diffs import Diff, compare
from treadle.workspace.files import TextFile, read_text, sha256
from treadle.workspace.saving import remove, save
from treadle.workspace.workspace import Workspace

Rewrite = Callable[[TextFile | None], tuple[str | None, EditReport]]
"""Gives the new text (None: no file) from the file as it is (None: there is none); raises `ToolError`."""


class Wanted(Struct, frozen=True, kw_only=True):
    """A change to one file, by the path that the model wrote; a new one may get encoding and mode of `moved_from`."""

    path: str
    rewrite: Rewrite
    moved_from: str = ""


class _Plan(Struct, frozen=True, kw_only=True):
    """One file's change, ready to be made. `target` is the resolved path, `before` the old hash, empty for no file.

    `data` is None where the file goes. `mode` is that of a file that is moved here; `names` counts the file's names.
    """

    target: str
    path: str
    name: str
    before: str
    data: bytes | None
    diff: Diff
    report: EditReport
    mode: int | None = None
    names: int = 1

    @property
    def after(self) -> str:
        """The hash that the file will have, empty for none."""
        return "" if self.data is None else sha256(self.data)

    @property
    def change(self) -> FileChange:
        """The change as the log keeps it."""
        return FileChange(
            path=self.target, before=self.before, after=self.after, added=self.diff.added, removed=self.diff.removed
        )

    @property
    def title(self) -> str:
        """The change on one line."""
        verb = "Delete" if self.data is None else "Edit" if self.before else "Create"
        return f"{verb} {self.name} (+{self.diff.added} -{self.diff.removed})"


async def prepare_changes(workspace: Workspace, wanted: Sequence[Wanted], *, echo: bool) -> Prepared:
    """Find out what changes would do to the files that were asked for; `echo` shows the model the changed lines.

    A change that is not possible becomes a call that only reads the files and then fails: its text tells what is in
    them, and who may know that is for the policy to say.
    """
    paths = [workspace.paths.locate(one.path) for one in wanted]
    try:
        plans = await asyncio.to_thread(_plan_all, workspace, paths, wanted)
    except ToolError as refusal:
        return _refused(workspace, paths, refusal)
    return Prepared(
        accesses=tuple(
            WritePath(path=plan.path, before=plan.before, after=plan.after, delete=plan.data is None) for plan in plans
        ),
        preview=Preview(
            title=", ".join(plan.title for plan in plans),
            text="".join(plan.diff.unified(plan.name) for plan in plans),
            is_diff=True,
        ),
        run=partial(_make, workspace, plans, echo),
    )


def _refused(workspace: Workspace, paths: Sequence[str], refusal: ToolError) -> Prepared:
    async def run(output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
        raise refusal

    names = ", ".join(map(workspace.paths.display, paths))
    return Prepared(
        accesses=tuple(ReadPath(path=path) for path in paths),
        preview=Preview(title=f"Edit {names}", text=refusal.text),
        run=run,
    )


def _plan_all(workspace: Workspace, paths: Sequence[str], wanted: Sequence[Wanted]) -> tuple[_Plan, ...]:
    plans = [_plan(workspace, path, one) for path, one in zip(paths, wanted, strict=True)]
    targets = [plan.target for plan in plans]
    twice = next((plan.name for plan in plans if targets.count(plan.target) > 1), None)
    if twice is not None:
        raise ToolError(f"{twice} is changed twice in one call. Nothing was changed; put its changes together.")
    return tuple(plans)


def _plan(workspace: Workspace, path: str, wanted: Wanted) -> _Plan:
    target = workspace.paths.resolve(path)
    name = workspace.paths.display(path)
    file = read_text(target, name) if lexists(target) else None
    before = file.digest if file else ""
    if workspace.seen.stale(target, before):
        raise ToolError(
            f"{name} was changed by someone else since you last read or wrote it. "
            "Nothing was changed; read it again and base the change on what it says now."
        )
    text, report = wanted.rewrite(file)
    source = workspace.paths.resolve(workspace.paths.locate(wanted.moved_from)) if wanted.moved_from else ""
    like = read_text(source, name) if source else file or TextFile(name=name, text="", digest="")
    data = None if text is None else like.encode(text)
    if file and data is not None and sha256(data) == before:
        raise ToolError(
            f"{name} already has exactly this text. Go on with the next step; nothing needs to be changed there.",
            edit=report,
        )
    diff = compare(file.text if file else "", text or "")
    return _Plan(
        target=target,
        path=path,
        name=name,
        before=before,
        data=data,
        diff=diff,
        report=report,
        mode=Path(source).stat().st_mode & 0o777 if source else None,
        names=Path(target).stat().st_nlink if file else 1,
    )


async def _make(
    workspace: Workspace,
    plans: Sequence[_Plan],
    echo: bool,  # noqa: FBT001 - bound
    output: Output,
) -> CallResult:
    making = asyncio.ensure_future(asyncio.to_thread(_make_all, workspace, plans))
    try:
        await asyncio.shield(making)
    except asyncio.CancelledError:
        # A thread cannot be stopped, and a save takes milliseconds: say what it did.
        await making
        output("".join(f"{plan.name} was saved.\n" for plan in plans))
        raise
    return CallResult(
        outcome=Outcome.OK,
        content=(Text(text="\n".join(_report(plan, echo=echo) for plan in plans)),),
        changes=tuple(plan.change for plan in plans),
        edits=tuple(plan.report for plan in plans),
    )


def _make_all(workspace: Workspace, plans: Sequence[_Plan]) -> None:
    """Make the changes in order; one that fails says which were made before it."""
    made: list[str] = []
    for plan in plans:
        try:
            if plan.data is None:
                remove(plan.target, expected=plan.before, name=plan.name)
            else:
                strays = workspace.records.strays
                save(plan.target, plan.data, expected=plan.before, name=plan.name, strays=strays, mode=plan.mode)
        except ToolError as error:
            if not made:
                raise
            raise ToolError(
                f"{error.text} Before it these were changed: {', '.join(made)}. Read them before you try again."
            ) from error
        workspace.seen.note(plan.target, plan.after)
        made.append(plan.name)


def _report(plan: _Plan, *, echo: bool) -> str:
    counts = f"(+{plan.diff.added} -{plan.diff.removed} lines)"
    linked = f" It had {plan.names} names (hard links); the others keep the old text." if plan.names > 1 else ""
    if plan.data is None:
        return f"Deleted {plan.name} {counts}."
    if not echo or not plan.diff.hunks:
        return f"{'Replaced' if plan.before else 'Created'} {plan.name} {counts}.{linked}"
    replaced = f" Replaced in {plan.report.places:,} places." if plan.report.places else ""
    return f"Saved {plan.name} {counts}.{replaced}{linked} The changed places now read:\n{plan.diff.echo()}"
