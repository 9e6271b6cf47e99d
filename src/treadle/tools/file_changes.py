"""Changes to files as a prepared call: shown as a diff, refused when stale, each saved atomically."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Text
from treadle.protocol.tools import CallResult, EditReport, FileChange, Outcome, Preview, WritePath
from treadle.tools.read_file import ReadFile
from treadle.tools.syntax_check import broken_syntax
from treadle.workspace.files.diffs import Diff, compare
from treadle.workspace.files.documents import is_text_itself
from treadle.workspace.files.judged import JudgedPath, judge_path
from treadle.workspace.files.text_files import TextFile, sha256
from treadle.workspace.notebooks import differ_as_shown, read_notebook
from treadle.workspace.workspace import Workspace

_EMPTY = sha256(b"")

Rewrite = Callable[[TextFile | None], tuple[str | None, EditReport]]
"""Gives the new text (None: no file) from the file as it is (None: there is none); raises `ToolError`."""


class Wanted(Struct, frozen=True, kw_only=True):
    """A change to one file, by the path that the model wrote.

    With `moved_from` the file is new and gets encoding and mode of the one at that path, which `rewrite` is given.
    With `read_first` a file that the model has not read is shown before it is replaced as a whole.
    """

    path: str
    rewrite: Rewrite
    moved_from: str = ""
    read_first: bool = False


class _Plan(Struct, frozen=True, kw_only=True):
    """One file's change, ready to be made. `before` is the old hash, empty for no file.

    `data` is None where the file goes. `mode` is that of a file that is moved here; `names` counts the file's names.
    `texts` are the text that was and the one that will be, of a file that stays.
    """

    place: JudgedPath
    name: str
    before: str
    data: bytes | None
    diff: Diff
    report: EditReport
    mode: int | None = None
    names: int = 1
    texts: tuple[str, str] = ("", "")

    @property
    def target(self) -> str:
        """The path that is written, with no link in it."""
        return self.place.resolved

    @property
    def accesses(self) -> tuple[WritePath, ...]:
        """What is to be judged: the path that was asked for, and the one that is written."""
        return tuple(
            WritePath(path=one.path, before=self.before, after=self.after, delete=self.data is None)
            for one in self.place.accesses()
        )

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


async def prepare_changes(workspace: Workspace, wanted: Sequence[Wanted]) -> Prepared:
    """Find out what changes would do to the files that were asked for.

    A change that is not possible becomes a call that only reads the files and then fails: its text tells what is in
    them, and who may know that is for the policy to say.
    """
    named = [*(one.path for one in wanted), *(one.moved_from for one in wanted if one.moved_from)]
    places = {path: judge_path(workspace.paths.locate(path)) for path in named}
    try:
        plans = await asyncio.to_thread(_plan_all, workspace, places, wanted)
    except ToolError as refusal:
        return _refused(workspace, list(places.values()), refusal)
    for plan, one in zip(plans, wanted, strict=True):
        if one.read_first and plan.report.format == "whole" and _is_unread(workspace, plan):
            return await _shown_first(workspace, one.path, plan.name)
    return Prepared(
        accesses=tuple(access for plan in plans for access in plan.accesses),
        preview=Preview(
            title=", ".join(plan.title for plan in plans),
            text="".join(plan.diff.unified(plan.name) for plan in plans),
            is_diff=True,
        ),
        run=partial(_make, workspace, plans),
    )


def _refused(workspace: Workspace, places: Sequence[JudgedPath], refusal: ToolError) -> Prepared:
    async def run(output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
        raise refusal

    names = ", ".join(workspace.paths.display(place.asked) for place in places)
    return Prepared(
        accesses=tuple(access for place in places for access in place.accesses()),
        preview=Preview(title=f"Edit {names}", text=refusal.text),
        run=run,
    )


def _is_unread(workspace: Workspace, plan: _Plan) -> bool:
    """Whether there is a text that the model does not know."""
    return plan.before not in ("", _EMPTY) and not workspace.seen.knows(plan.target)


async def _shown_first(workspace: Workspace, path: str, name: str) -> Prepared:
    """Read a file in place of replacing it; the model knows it then, so that the next call may."""
    reading = await ReadFile(workspace).prepare({"path": path})

    async def run(output: Output) -> CallResult:
        read = await reading.run(output)
        first = Text(
            text=f"Nothing was changed: {name} exists, and you have not read it. Send the same call again if all of "
            "this is to be replaced, else edit it.\n"
        )
        return replace(read, outcome=Outcome.FAILED, content=(first, *read.content))

    return replace(reading, run=run)


def _plan_all(workspace: Workspace, places: Mapping[str, JudgedPath], wanted: Sequence[Wanted]) -> tuple[_Plan, ...]:
    plans: list[_Plan] = []
    refused: list[ToolError] = []
    for one in wanted:
        try:
            plans.append(_plan(workspace, places, one))
        except ToolError as error:
            refused.append(error)
    if refused:
        raise _together(refused)
    targets = [plan.target for plan in plans]
    twice = next((plan.name for plan in plans if targets.count(plan.target) > 1), None)
    if twice is not None:
        raise ToolError(f"{twice} is changed twice in one call. Nothing was changed; put its changes together.")
    return tuple(plans)


def _together(refused: Sequence[ToolError]) -> ToolError:
    """One error that says everything that stands in the way of a call over several files."""
    texts = dict.fromkeys(error.text for error in refused)
    edit = next((error.edit for error in refused if error.edit is not None), None)
    return refused[0] if len(texts) == 1 else ToolError("\n\n".join(texts), edit=edit)


def _plan(workspace: Workspace, places: Mapping[str, JudgedPath], wanted: Wanted) -> _Plan:
    place = places[wanted.path]
    target = place.resolved
    name = workspace.paths.display(place.asked)
    file = _read(workspace, place)
    if file is not None and wanted.moved_from:
        raise ToolError(
            f"{wanted.path} exists already, so {wanted.moved_from} cannot be moved there. "
            "Nothing was changed; choose another name."
        )
    before = file.digest if file else ""
    if workspace.seen.stale(target, before):
        raise ToolError(
            f"{name} was changed by someone else since you last read or wrote it. Nothing was written. Read it again "
            "and base the change on what it says now."
        )
    given = _read(workspace, places[wanted.moved_from]) if wanted.moved_from else file
    text, report = wanted.rewrite(given)
    form = given or TextFile(name=name, text="", digest="")
    data = None if text is None else form.encode(text)
    if file and data is not None and sha256(data) == before:
        raise ToolError(
            f"{name} already has exactly this text. Nothing needs to change. Continue with the next step.",
            edit=replace(report, code="no_change"),
        )
    diff = _diff(form, file.text if file else "", text or "")
    return _Plan(
        place=place,
        name=name,
        before=before,
        data=data,
        diff=diff,
        report=report,
        mode=_mode(places[wanted.moved_from].resolved) if wanted.moved_from else None,
        names=_names(target) if file else 1,
        texts=(given.text if given else "", text or ""),
    )


def _diff(form: TextFile, before: str, after: str) -> Diff:
    """Compare the texts as they may be shown; of a notebook the cells, where these show all that differs."""
    if is_text_itself(form.name) and (old := read_notebook(before)) and (new := read_notebook(after)):
        # A cell that only moved is the same, whatever its number is now.
        diff = compare(form.shown(old.shown(numbered=False)), form.shown(new.shown(numbered=False)))
        if diff.hunks and differ_as_shown(old, new):
            before, after = form.shown(old.shown()), form.shown(new.shown())
            return Diff(before.split("\n")[:-1], after.split("\n")[:-1], diff.hunks)
    return compare(form.shown(before), form.shown(after))


def _mode(path: str) -> int | None:
    """Give the mode of a file; None for one that is in an editor only."""
    try:
        return Path(path).stat().st_mode & 0o777
    except FileNotFoundError:
        return None


def _names(path: str) -> int:
    """Count the names of a file; one that is in an editor only has one."""
    try:
        return Path(path).stat().st_nlink
    except FileNotFoundError:
        return 1


def _read(workspace: Workspace, place: JudgedPath) -> TextFile | None:
    """Read what was judged; None where nothing is."""
    files = workspace.files
    return files.read_text(place, workspace.paths.display(place.asked)) if files.exists(place) else None


async def _make(workspace: Workspace, plans: Sequence[_Plan], output: Output) -> CallResult:
    making = asyncio.ensure_future(asyncio.to_thread(_make_all, workspace, plans))
    try:
        broken = await asyncio.shield(making)
    except asyncio.CancelledError:
        # A thread cannot be stopped, and a save takes milliseconds: say what it did.
        await making
        output("".join(f"{plan.name} was saved.\n" for plan in plans))
        raise
    return CallResult(
        outcome=Outcome.OK,
        content=(Text(text="\n".join(_report(plan) for plan in plans)), *(Text(text=note) for note in broken)),
        changes=tuple(plan.change for plan in plans),
        edits=tuple(plan.report for plan in plans),
    )


def _make_all(workspace: Workspace, plans: Sequence[_Plan]) -> list[str]:
    """Make the changes in order, and say what no longer parses; one that fails says which were made before it."""
    made: list[str] = []
    for plan in plans:
        try:
            if plan.data is None:
                workspace.files.remove(plan.target, expected=plan.before, name=plan.name)
            else:
                workspace.files.save(plan.target, plan.data, expected=plan.before, name=plan.name, mode=plan.mode)
        except ToolError as error:
            if not made:
                raise
            raise ToolError(
                f"{error.text} These files were changed before it failed: {', '.join(made)}. Read them before you try "
                "again."
            ) from error
        workspace.seen.note(plan.target, plan.after)
        made.append(plan.name)
    return [note for plan in plans if plan.data is not None and (note := broken_syntax(plan.name, *plan.texts))]


def _report(plan: _Plan) -> str:
    """What was done; of an edit of parts, with the changed lines as they are now."""
    counts = f"(+{plan.diff.added} -{plan.diff.removed} lines)"
    linked = f" It had {plan.names} names (hard links); the others keep the old text." if plan.names > 1 else ""
    if plan.data is None:
        return f"Deleted {plan.name} {counts}."
    if plan.report.format == "whole" or not plan.diff.hunks:
        return f"{'Replaced' if plan.before else 'Created'} {plan.name} {counts}.{linked}"
    replaced = f" Replaced in {plan.report.places:,} places." if plan.report.places else ""
    return f"Saved {plan.name} {counts}.{replaced}{linked} The changed places now read:\n{plan.diff.echo()}"
