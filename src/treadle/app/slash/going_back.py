"""The slash commands that go back: in the files, in the conversation, and into a copy. Each to be done in a thread."""

from collections.abc import Container
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.checkpoints.points import PastTurn, Points
from treadle.app.compose import session_log
from treadle.app.session.own_commands.command_answers import CommandAnswer, while_working, wrong
from treadle.app.session.shared.access import SessionAccess
from treadle.present.escape import exact
from treadle.present.figures import unseen_words
from treadle.present.words import clip_text, seen_from
from treadle.protocol.checkpoints import Restore
from treadle.protocol.errors import TreadleError
from treadle.protocol.tools import FileChange
from treadle.store.sqlite import SessionRow, Store

if TYPE_CHECKING:
    from treadle.app.reports.checkpoint_list import PreviewedPath

_PARTS = ("files", "conversation", "both")
"""What can go back by itself."""

_SHOWN = 100
_MOST_DIFFS = 50
"""Files of which a preview shows what would change in them."""
_NO_CHECKPOINT = (
    "Their checkpoint is missing: it was removed to save space, or the session had other folders at that time."
)


class ListedTurn(Struct, frozen=True, kw_only=True):
    """A message of the conversation, and what the turn that it began left in the files, as seen from the workspace.

    `files` is None where that is not known, and may not be all where it is not `exact`. `flaw` says why the files
    cannot be brought back to before it.
    """

    number: int
    asked: str
    files: tuple[FileChange, ...] | None = None
    exact: bool = False
    flaw: str = ""


class TurnPreview(Struct, frozen=True, kw_only=True):
    """What going back to before a message would do: how many messages leave, and what becomes of each path.

    Paths are as seen from the workspace; `flaw` says why the files cannot be brought back.
    """

    number: int
    asked: str
    leaving: int
    paths: "tuple[PreviewedPath, ...]" = ()
    flaw: str = ""


def undo(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001 - takes no argument
    """Take the changes of the last turn back that are still there."""
    if session.status.turn_active:
        return while_working("/undo")
    with session_log(session.id) as (row, store):
        points = Points(store, row.id)
        n, turns, unkept = points.undo(), points.turns(), points.unkept()
    unseen = unseen_words(turns[-1].unseen) if turns else ""
    if not n and unseen:
        return wrong(f"There is nothing that can be undone: {unseen}.")
    if not n and unkept:
        return wrong(f"There is nothing that can be undone. {unkept}")
    if not n:
        return wrong("There is nothing to undo: this session has not changed any file, or all of it is undone.")
    return CommandAnswer(text=f"Not undone: {unseen}." if unseen else "", ops=(Restore(checkpoint=n),))


def listed_turns(session_id: str) -> tuple[ListedTurn, ...]:
    """List the turns that the conversation of a session has now; raises `SessionError`, `StoreError`."""
    with session_log(session_id) as (row, store):
        points = Points(store, row.id)
        turns = points.turns()
        wanted = {turn.number: points.before_turn(turn).checkpoint for turn in turns}
        kept, flaw = _kept_numbers(store, row) if any(wanted.values()) else (frozenset[int](), "")
        return tuple(
            ListedTurn(
                number=turn.number,
                asked=turn.asked,
                files=None if turn.changes is None else tuple(seen_from(row.workspace, one) for one in turn.changes),
                exact=turn.exact,
                flaw=_flaw(turn, wanted[turn.number], kept, flaw),
            )
            for turn in turns
        )


def _kept_numbers(store: Store, row: SessionRow) -> tuple[frozenset[int], str]:
    """Give the numbers of the checkpoints that are kept, and why that is not known."""
    from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints

    try:
        kept = opened_checkpoints(store, row)
        try:
            return kept.numbers(), ""
        finally:
            kept.close()
    except TreadleError as error:
        return frozenset(), error.what


def _flaw(turn: PastTurn, checkpoint: int, kept: Container[int], unknown: str) -> str:
    if not checkpoint:
        return "There is no checkpoint of them." if turn.changes else ""
    if unknown:
        return unknown
    return "" if checkpoint in kept else _NO_CHECKPOINT


def preview_turn(session_id: str, number: int) -> TurnPreview | None:
    """Find out what going back to before a turn would do; None for one that is not in the conversation any more.

    Raises `SessionError`, `StoreError`; why files cannot be brought back is in the preview.
    """
    with session_log(session_id) as (row, store):
        points = Points(store, row.id)
        turns = points.turns()
        turn = next((one for one in turns if one.number == number), None)
        if turn is None:
            return None
        wanted = points.before_turn(turn)
        paths: tuple[PreviewedPath, ...] = ()
        flaw = _flaw(turn, wanted.checkpoint, (wanted.checkpoint,), "")
        if wanted.files:
            try:
                paths = _paths(store, row, wanted)
            except TreadleError as error:
                flaw = " ".join(filter(None, (error.what, error.why)))
        leaving = sum(one.after >= turn.after for one in turns)
        return TurnPreview(number=number, asked=turn.asked, leaving=leaving, paths=paths, flaw=flaw)


def _paths(store: Store, row: SessionRow, wanted: Restore) -> "tuple[PreviewedPath, ...]":
    from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
    from treadle.app.reports.checkpoint_list import restore_preview

    kept = opened_checkpoints(store, row)
    try:
        found = restore_preview(store, row, kept, wanted, diffs=_MOST_DIFFS)
    finally:
        kept.close()
    return tuple(replace(one, path=one.path.removeprefix(f"{row.workspace}/")) for one in found.paths)


def rewind(session: SessionAccess, argument: str) -> CommandAnswer:
    """Go back to before a message; without a number list the messages."""
    if session.status.turn_active:
        return while_working("/rewind")
    number, _, part = argument.partition(" ")
    if part.strip() not in ("", *_PARTS):
        return wrong(f"/rewind takes a number and a part: /rewind N [{'|'.join(_PARTS)}]")
    with session_log(session.id) as (row, store):
        points = Points(store, row.id)
        turns = points.turns()
        if not turns:
            return wrong("There is no message to go back to.")
        if not argument:
            rows = [f"{turn.number}: {clip_text(exact(turn.asked), _SHOWN)}" for turn in turns]
            return CommandAnswer(text="\n".join([*rows, "/rewind N goes back to before message N, with the files."]))
        turn = next((one for one in turns if str(one.number) == number), None)
        if turn is None:
            return wrong(f"There is no message {number}. /rewind lists them.")
        return _going_back(points.before_turn(turn), turn, part.strip())


def _going_back(wanted: Restore, turn: PastTurn, part: str) -> CommandAnswer:
    match part:
        case "files" if not wanted.files:
            return wrong(f"No file of which there is a checkpoint has changed since message {turn.number}.")
        case "files":
            return CommandAnswer(ops=(Restore(checkpoint=wanted.checkpoint),))
        case "conversation":
            return CommandAnswer(ops=(Restore(files=False, conversation=True, to=turn.after),), draft=turn.asked)
        case _:
            return CommandAnswer(ops=(wanted,), draft=turn.asked)


def fork(session: SessionAccess, argument: str) -> CommandAnswer:
    """Copy the session; this one goes on."""
    if argument and not argument.isdecimal():
        return wrong("/fork needs the number of a turn, or nothing: /fork [N] (/rewind lists the turns).")
    from treadle.app.history.forking import copy_whole

    new = copy_whole(session.id, int(argument) if argument else None)
    return CommandAnswer(text=f"The copy is session {new}. To continue in it: treadle --resume {new}")
