"""A subagent that writes: in a copy of the workspace, whose changes come back only as the parent's policy lets them."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.security.trusting import SessionTrust, copied_trust
from treadle.app.session.files.edit_blocks import block_spans, keep_blocks
from treadle.app.subagents.writer_copies import (
    ChangeSet,
    MergeOutcome,
    WriterCopy,
    make_writer_copy,
    merge,
    open_copy,
    plan,
    remove_copy,
    writer_changes,
)
from treadle.app.subagents.writer_hunks import CopyHunk, copy_hunks, part_of
from treadle.app.subagents.writer_record import CHILD_ID
from treadle.engine.ports import Asked, AskPerson, Judge
from treadle.engine.runtime.running_session import Session
from treadle.protocol.children import ChildMerges, ChildStarted
from treadle.protocol.errors import ConfigError, RefusedError, SessionError, TreadleError
from treadle.protocol.events import Answer
from treadle.protocol.permissions import Mode, OptionKind, Question, QuestionKind, Standing, Verdict
from treadle.protocol.tools import FileChange, Preview, WritePath
from treadle.tools.declarations import WRITE_TO_FILE
from treadle.workspace.files.names import shown_name

COPY_GONE = (
    "The program ended before this was noted, and its copy is gone: its changes were applied then, or there were none. "
    "Check the workspace."
)
"""What the model reads of a writer that is taken up after a restart and has no copy any more."""

_MOST_NAMED = 20
_BLOCKS = "diff"
"""The argument whose blocks a person can choose among."""

_MOST_BLOCKS, _MOST_BLOCK_TEXT = 60, 60_000


FoundOrMade = tuple[WriterCopy, bool] | TreadleError
"""A copy, and whether it was made anew; or why there is none."""


class HandedBack(Struct, frozen=True, kw_only=True):
    """What became of the changes of a subagent: those that were `applied`, and what the model is told of all.

    A person is told what is `kept` in the copy, and why; nothing where all of it was applied. `refused`: the question
    whether to apply them got a no.
    """

    changed: tuple[FileChange, ...] = ()
    applied: tuple[FileChange, ...] = ()
    text: str = ""
    kept: str = ""
    refused: bool = False


class Approving(Struct, frozen=True):
    """Who says whether changes may come into the workspace: the policy of the parent as it stands, else the user.

    While they come in the parent is `changing`. Of paths that are changed `unsaved` gives those of which an editor has
    a text that is not saved.
    """

    judge: Judge
    standing: Callable[[], Standing]
    ask: AskPerson
    changing: Callable[[], AbstractAsyncContextManager[None]]
    unsaved: Callable[[Iterable[str]], frozenset[str]]

    def plan(self, change_set: ChangeSet) -> MergeOutcome:
        """Say what bringing changes in would do; for a thread."""
        return plan(change_set, unsaved=self._unsaved(change_set))

    async def merge(self, change_set: ChangeSet, digest: str = "") -> MergeOutcome:
        """Bring changes in, with a `digest` only exactly those that were planned."""
        async with self.changing():
            return await asyncio.to_thread(self._merged, change_set, digest)

    def _merged(self, change_set: ChangeSet, digest: str) -> MergeOutcome:
        return merge(change_set, digest=digest, unsaved=self._unsaved(change_set))

    def _unsaved(self, change_set: ChangeSet) -> frozenset[str]:
        roots = [source for source, _ in change_set.copy.roots]
        return self.unsaved(f"{roots[one.root]}/{os.fsdecode(one.path)}" for one in change_set.files)


@asynccontextmanager
async def changing_for(engine: Session, child_id: str) -> AsyncIterator[None]:
    """Have the files kept before and after the changes of a subagent come in; raises `RefusedError`."""
    await engine.post(ChildMerges(session_id=child_id))
    try:
        await engine.checkpointed()
        yield
    finally:
        with suppress(RefusedError):  # the session has closed
            await asyncio.shield(engine.post(ChildMerges(session_id=child_id, over=True)))


async def copies_for(ids: Sequence[str], trust: SessionTrust, roots: Sequence[str]) -> "dict[str, FoundOrMade]":
    """Make the copies in which subagents work, or find them again; nobody works in them yet.

    The workspace is read once: of several the first is copied for the others, and its beginning is stored once.
    """
    stop = threading.Event()
    make = partial(make_writer_copy, trust.workspace, tuple(map(Path, roots)), stopped=stop.is_set)

    def made(child_id: str, like: WriterCopy | None) -> FoundOrMade:
        try:
            anew = open_copy(child_id) is None
            return make(child_id, like=like), anew
        except TreadleError as error:
            return error

    copies: dict[str, FoundOrMade] = {}
    rest, first = list(ids), None
    try:
        while rest and first is None:
            child_id = rest.pop(0)
            copies[child_id] = one = await asyncio.to_thread(made, child_id, None)
            first = one[0] if not isinstance(one, TreadleError) and one[1] else None
        others = await asyncio.gather(*(asyncio.to_thread(made, child_id, first) for child_id in rest))
    finally:
        stop.set()  # where this is cancelled no thread copies on
    return {**copies, **dict(zip(rest, others, strict=True))}


def named_copy_trust(name: str, trust: SessionTrust, *, made: bool = True) -> SessionTrust:
    """Give the user's word on a folder for its copy of this name, which is made where there is none (`made`).

    For a thread. Raises `ConfigError`, `SessionError`.
    """
    if not CHILD_ID.fullmatch(name):
        why = "A name is letters, digits, dots, hyphens and underscores."
        what = f"{shown_name(name)} is no name for a copy." if name.strip() else "-w has no name for the copy."
        raise ConfigError("copy-name", what, why=why, fix="Write one behind -w, such as: treadle -w fix")
    if not made and open_copy(name) is None:
        raise SessionError(
            "session-none",
            "There is no session to continue.",
            why=f"There is no copy {name} yet.",
            fix=f"Start a session in it: treadle -w {name}",
        )
    copy = make_writer_copy(trust.workspace, (), name)
    if copy.workspace != trust.workspace:
        raise ConfigError(
            "copy-name",
            f"The copy {name} is one of {copy.workspace}.",
            fix=f"Choose another name, or go there: treadle -C {copy.workspace} -w {name}",
        )
    return copied_trust(trust, copy.folder)


async def hand_back(started: ChildStarted, copy: WriterCopy, by: Approving) -> HandedBack:
    """Bring the changes of a subagent into the workspace, where the policy or a person says yes to exactly these.

    What is not applied stays in the copy, and is named.
    """
    try:
        change_set = await asyncio.to_thread(writer_changes, copy)
        if not change_set:
            await remove_applied(copy)
            return HandedBack(text="It left no changes to apply.")
        wanted = await asyncio.to_thread(by.plan, change_set)
        said = await _answer(started, wanted, by, change_set) if wanted.merged else _Said()
        if said.refused or not wanted.merged:
            why = _why_kept(copy, wanted, said.refused)
            text = _kept(copy, wanted, said.refused)
            return HandedBack(changed=wanted.merged, text=text, kept=f"not applied ({why})", refused=bool(said.refused))
        if said.keys is not None:
            return await _applied_in_part(copy, (change_set, by), wanted, said.keys)
        done = await by.merge(change_set, wanted.digest)
        if done.complete:
            await remove_applied(copy, discard=True)
        return _handed_back(copy, wanted, done)
    except TreadleError as error:
        text = f"Its changes were not applied: {error.what} {error.why} They are in {copy.folder}."
        return HandedBack(text=text, kept=f"not applied ({error.what.rstrip('.')})")


def _handed_back(copy: WriterCopy, wanted: MergeOutcome, done: MergeOutcome) -> HandedBack:
    """Say what became of what was `wanted`, now that it is `done`."""
    applied = () if done.refused else done.merged
    part = "not all applied" if applied else "not applied"
    kept = "" if done.complete else f"{part} ({_why_kept(copy, done, done.refused)})"
    return HandedBack(changed=wanted.merged, applied=applied, text=_applied(copy, done), kept=kept)


def _why_kept(copy: WriterCopy, outcome: MergeOutcome, refused: str) -> str:
    """Say to the person in a clause why changes stay in the copy."""
    if refused:
        why = refused.partition(". ")[0].rstrip(".")
        return why.replace("the rules of the user", "your rules", 1).replace("the user", "you", 1)
    rows = [one.removeprefix(f"{shown_name(str(copy.workspace))}/") for one in _staying(outcome)]
    return rows[0] if len(rows) == 1 else f"{len(rows)} paths stay in it"


async def remove_applied(copy: WriterCopy, *, discard: bool = False) -> None:
    """Remove a copy whose changes are applied; one that stays changes nothing, and the doctor names it."""
    with suppress(OSError, TreadleError):
        await asyncio.to_thread(remove_copy, copy.child_id, discard=discard)


async def left_in_copy(copy: WriterCopy) -> HandedBack:
    """Say what stays in the copy of one that was stopped; a copy without changes is removed."""
    kept = "its changes were not applied"
    try:
        changed = await asyncio.to_thread(writer_changes, copy)
    except TreadleError as error:
        text = f"What it changed was not applied: {error.what} {error.why} It is in {copy.folder}."
        return HandedBack(text=text, kept=kept)
    if changed:
        return HandedBack(text=f"Its changes were not applied. They are in {copy.folder}.", kept=kept)
    await remove_applied(copy)
    return HandedBack()


async def _applied_in_part(
    copy: WriterCopy, shown: tuple[ChangeSet, Approving], wanted: MergeOutcome, keys: Sequence[str]
) -> HandedBack:
    """Apply the changes that a person chose among those that were shown; the others stay in the copy."""
    change_set, by = shown
    if (await asyncio.to_thread(by.plan, change_set)).digest != wanted.digest:
        changed = replace(wanted, refused="The workspace changed since this was asked. Nothing was written.")
        return _handed_back(copy, wanted, changed)
    part, _ = await asyncio.to_thread(part_of, change_set, keys)
    done = await by.merge(part)
    left = (*wanted.left_out, "the other changes, which the user left out")
    done = replace(done, held=wanted.held, conflicts=(*wanted.conflicts, *done.conflicts), left_out=left)
    return _handed_back(copy, wanted, done)


class _Said(Struct, frozen=True):
    """What the policy or a person says: why not, or the keys of the changes that are applied; None is all."""

    refused: str = ""
    keys: tuple[str, ...] | None = None


async def _answer(started: ChildStarted, wanted: MergeOutcome, by: Approving, change_set: ChangeSet) -> _Said:
    """Ask whether changes may be applied, where the policy does not say it."""
    accesses = tuple(
        WritePath(path=one.path, before=one.before, after=one.after, delete=not one.after) for one in wanted.merged
    )
    decision = by.judge(WRITE_TO_FILE, {}, accesses, by.standing())
    if decision.verdict is Verdict.ALLOW:
        return _Said()
    if decision.verdict is Verdict.DENY:
        return _Said(f"the rules of the user do not allow it ({'; '.join(one.text for one in decision.reasons)})")
    title = f"Apply what the subagent {started.agent} changed?"
    paths = {one.path for one in wanted.merged}
    parts = [one for one in await asyncio.to_thread(copy_hunks, change_set) if one.path in paths]
    blocks = _as_blocks(parts)
    question = Question(
        id="",
        kind=QuestionKind.PERMISSION,
        text="\n".join((title, *_not_with_it(wanted))),
        options=(OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE),
        preview=Preview(title=title, text=wanted.diff, is_diff=True),
        decision=replace(decision, offers=()),
        accesses=accesses,
        arguments={_BLOCKS: blocks} if blocks else {},
        child=started.session_id,
        agent=started.agent,
        task=started.task,
    )
    reply = await by.ask(Asked(text=question.text, relayed=question, outlives=started.background))
    if reply.answer is None:
        return _Said("nobody was there to look at them")
    if reply.answer.option is not OptionKind.ALLOW_ONCE:
        return _Said(f"the user said no{f': {reply.answer.text}' if reply.answer.text else ''}")
    if by.standing().mode is Mode.PLAN:
        return _Said("plan mode was chosen before they were approved")
    return _chosen(blocks, parts, reply.answer)


def _as_blocks(parts: Sequence[CopyHunk]) -> str:
    """Write changes as blocks, among which a surface lets a person choose; empty where there is no choice.

    Each begins with the place of the change, which no other one has.
    """
    blocks = []
    for one in parts:
        place = f"{one.shown}, change {one.key}"
        if one.hunk is None:
            old, new = "", one.about
        else:
            old, new = "\n".join(one.hunk.old), "\n".join(one.hunk.new)
            place += f" ({one.about})" if one.about else ""
        sides = ("\n".join(filter(None, (place, side))) for side in (old, new))
        blocks.append("<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n".format(*sides))
    text = "".join(blocks)
    fits = 1 < len(parts) <= _MOST_BLOCKS and len(text) <= _MOST_BLOCK_TEXT
    return text if fits and len(block_spans(text)) == len(parts) else ""


def _chosen(blocks: str, parts: Sequence[CopyHunk], answer: Answer) -> _Said:
    """Find which of the changes a yes is for; a text that is more than a choice among them is none."""
    given = None if answer.arguments is None else answer.arguments.get(_BLOCKS)
    if not blocks or given is None or given == blocks:
        return _Said()
    spans = block_spans(blocks)
    left = [str(given)[span] for span in block_spans(str(given))]
    kept = [blocks[span] in left for span in spans]
    if keep_blocks(blocks, spans, kept) != given or not any(kept):
        return _Said("the user wrote something else in their place")
    return _Said(keys=tuple(part.key for part, keep in zip(parts, kept, strict=True) if keep))


def _applied(copy: WriterCopy, done: MergeOutcome) -> str:
    if done.refused:
        return f"Its changes were not applied: {done.refused} They are in {copy.folder}."
    rows = [f"- {one.path} (+{one.added} -{one.removed})" for one in done.merged[:_MOST_NAMED]]
    more = [f"- and {len(done.merged) - _MOST_NAMED} more"] if len(done.merged) > _MOST_NAMED else []
    return "\n".join(["Applied to the workspace:", *rows, *more, *_left(copy, done)])


def _kept(copy: WriterCopy, wanted: MergeOutcome, refused: str) -> str:
    begin = [f"Its changes were not applied: {refused}."] if refused else []
    rows = [f"- {one.path}" for one in wanted.merged[:_MOST_NAMED]]
    return "\n".join([*begin, *rows, *_left(copy, wanted, kept=bool(refused))])


def _left(copy: WriterCopy, outcome: MergeOutcome, *, kept: bool = False) -> list[str]:
    """Name what stays in the copy, why, and how the user applies it."""
    rows = [f"- {one}" for one in _staying(outcome)]
    action = f"The user can apply or discard it with `/copies` or `treadle copies apply {copy.child_id}`."
    if not rows:
        return [f"They are kept in {copy.folder}. {action}"] if kept else []
    return ["Not applied:", *rows, f"All of its work is kept in {copy.folder}. {action}"]


def _staying(outcome: MergeOutcome) -> Iterator[str]:
    """Name each path that stays in the copy, and why."""
    yield from (f"{one.path}: changed here too, in the same lines" for one in outcome.conflicts)
    yield from (f"{shown_name(one.path)}: {one.why}, so only a person may apply it" for one in outcome.held)
    yield from (*outcome.left_out, *outcome.failed)


def _not_with_it(outcome: MergeOutcome) -> list[str]:
    """Say beside a diff what of the changes is not in it."""
    rows = list(_staying(outcome))
    if not rows:
        return []
    more = [f"- and {len(rows) - _MOST_NAMED} more"] if len(rows) > _MOST_NAMED else []
    return ["Not applied with it, and kept in the copy:", *(f"- {one}" for one in rows[:_MOST_NAMED]), *more]
