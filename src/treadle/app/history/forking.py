"""Copying a session up to the end of a turn, to go on in another direction."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.points import Points
from treadle.app.compose import session_log
from treadle.app.config.places import check_workspace
from treadle.app.session.parts import clock, new_session_id
from treadle.engine.core import texts
from treadle.engine.core.advance import fold
from treadle.engine.core.learning import awaits_subagents
from treadle.engine.core.past_history import last_state
from treadle.engine.core.sealing import written as as_written
from treadle.engine.core.state import Assembling, FilesState, Guard, Idle, State, with_note
from treadle.engine.core.turn_end import turn_by_now
from treadle.protocol.codec import encode
from treadle.protocol.errors import SessionError
from treadle.protocol.events import ENGINE, FORKED, SCHEMA_VERSION, Event
from treadle.protocol.sealed import StateSealed, TurnSettled
from treadle.store.appending import tag_of
from treadle.store.chain import LogRow
from treadle.store.keeping import add_session, rename
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.files.text import visible

_FOLDERS = "The user changed which folders are in the workspace. Besides the one that it starts in"
_SUBAGENTS = (
    "Subagents that worked by themselves go on for the session that this is a copy of, and tell it what they bring."
)
_WITH_STATE = (tag_of(TurnSettled), tag_of(StateSealed))


def copy_whole(
    session_id: str, turn: int | None = None, *, checkpoint: int = 0, to: int = 0, named_from: str = ""
) -> str:
    """Copy a session with its checkpoints, as it was after a turn or at a checkpoint, or as it is; gives the new id.

    `session_id` may be the beginning of it. With `to` the copy of a checkpoint has the conversation up to that event.
    It has the session's title, behind where it is `named_from`. Raises `SessionError`, `StoreError`.
    """
    with session_log(session_id) as (row, store):
        # Opened first: a copy whose checkpoints cannot be had is not left behind.
        kept = opened_checkpoints(store, row) if Points(store, row.id).checkpoints else None
        with nullcontext() if kept is None else closing(kept):
            new, taken = (
                fork_at_checkpoint(store, row, checkpoint, to) if checkpoint else fork_session(store, row, turn)
            )
            if kept is not None and taken:
                kept.copy_to(new, taken)
        if named_from:
            name_copy(store, row, new, named_from)
    return new


def name_copy(store: Store, row: SessionRow, new: str, place: str) -> None:
    """Name a copy so that a list tells it from the session: where it is from, then the title. Raises `StoreError`."""
    rename(store, new, f"From {place}: {row.title or row.id}")


def copy_elsewhere(session_id: str, folder: Path, turn: int | None = None) -> str:
    """Copy a session as `copy_whole` does, to go on in another folder, which the model is told; gives the new id.

    The files, the checkpoints, the further folders and what was allowed stay with the folder before. Raises
    `ConfigError` for a folder that cannot be worked in, `SessionError`, `StoreError`.
    """
    new_folder = str(check_workspace(folder))
    with session_log(session_id) as (row, store):
        to = _end(store, row, turn)

        def begin(past: State) -> State:
            state = _settled(past, earlier=to < row.events)
            state = replace(state, files=FilesState(taken=state.files.taken), allowances=())
            return with_note(state, texts.continues_in(row.workspace, new_folder))

        return copy_session(store, row, to, begin, workspace=new_folder)[0]


def copy_with_folders(session_id: str, folders: Sequence[str]) -> str:
    """Copy a session as it is, with other further folders of which the model is told; gives the new id.

    The copy has none of the checkpoints: they are of the folders before. Raises `SessionError`, `StoreError`.
    """
    names = ", ".join(visible(one) for one in folders)
    note = f"{_FOLDERS}, by absolute paths: {names}." if folders else f"{_FOLDERS}: none."

    def begin(past: State) -> State:
        return with_note(_settled(past, earlier=False), note)

    with session_log(session_id) as (row, store):
        return copy_session(store, row, _end(store, row, None), begin, folders=folders)[0]


def works_behind(session_id: str) -> bool:
    """Whether a subagent of a session works in the background: no copy goes on with it. Raises `StoreError`."""
    with session_log(session_id) as (row, store):
        return awaits_subagents(last_state(store.read(row.id, whole=False)))


def fork_session(store: Store, row: SessionRow, at: int | None = None) -> tuple[str, int]:
    """Copy a session up to the end of turn `at`, or of its last turn; gives the new id and how many checkpoints it has.

    Raises `SessionError` where there is no such turn, `StoreError`.
    """
    to = _end(store, row, at)
    last = Points(store, row.id).checkpoints[-1:]
    settled = partial(_settled, earlier=to < row.events)
    new, state = copy_session(store, row, to, settled, until=last[0].data.n if last else 0)
    return new, state.files.taken


def fork_at_checkpoint(store: Store, row: SessionRow, n: int, to: int = 0) -> tuple[str, int]:
    """Copy a session with the conversation that it had at a checkpoint, or after event `to`.

    Gives what `fork_session` does. Raises `SessionError` where there is no such checkpoint, `StoreError`.
    """
    to = to or Points(store, row.id).conversation_at(n)
    new, state = copy_session(store, row, to, _cut_short, until=n)
    return new, state.files.taken


def copy_session(
    store: Store,
    row: SessionRow,
    to: int,
    begin: Callable[[State], State],
    *,
    until: int = 0,
    workspace: str = "",
    folders: Sequence[str] | None = None,
) -> tuple[str, State]:
    """Copy a session up to event `to`; gives the new id, and the state that `begin` makes of the one it had there.

    It has the checkpoints of its steps up to number `until`, also those that were taken after that event: what lies
    before them would be nobody's work. With a `workspace` the copy works in that folder alone, `folders` are further
    ones in the place of those that the session has. Raises `StoreError`.
    """
    log = store.read(row.id, before=to + 1, whole=False)
    past = last_state(log)
    if log.damage is not None:
        raise log.damage.error()
    late = Points(store, row.id).late_for(until, to, past.step) if until > past.files.taken else ()
    taken = [Event(seq=to + at, at=one.at, source=ENGINE, data=one.data) for at, one in enumerate(late, start=1)]
    past = fold(taken, past)
    now = clock()
    new = new_session_id(now)
    state = replace(_without_subagents(begin(past)), session_id=new)
    sealed = _place_to_begin(past, state)
    written = [_written(one) for one in (*taken, Event(seq=to + len(taken) + 1, at=now, source=FORKED, data=sealed))]
    changed = {"session_id": new, "parent": {"session_id": row.id, "seq": to}}
    if workspace:
        changed |= {"workspace": workspace, "roots": []}
    if folders is not None:
        changed |= {"roots": list(folders)}
    rows = takewhile(lambda kept: kept[0].seq <= to, _copied(store, row.id, new, changed))
    copy = replace(row, id=new, created_at=now, updated_at=now, workspace=workspace or row.workspace)
    add_session(store, copy, "", [*rows, *written])
    return new, state


def _written(event: Event) -> tuple[LogRow, str, int]:
    """Give an event as a row of the log, with its type and version."""
    return LogRow(event.seq, event.at, encode(event.source), encode(event.data)), tag_of(event.data), SCHEMA_VERSION


def _copied(store: Store, old: str, new: str, changed: dict[str, Any]) -> Iterator[tuple[LogRow, str, int]]:
    """Read rows as the copy has them: the first, and what holds the machine's state, name the session."""
    # In a text the quotes around it are escaped.
    named = tuple(b'"session_id":' + encode(one) for one in (old, new))
    for seq, at, source, data, version, tag in store.rows(old, "seq, at, source, data, version, type"):
        if seq == 1:  # of the same schema as it was
            data = json.dumps(json.loads(data) | changed, ensure_ascii=False, separators=(",", ":")).encode()  # noqa: PLW2901
        elif tag in _WITH_STATE:
            data = data.replace(*named)  # noqa: PLW2901
        yield LogRow(seq, at, source, data), tag, version


def _end(store: Store, row: SessionRow, at: int | None) -> int:
    turns = Points(store, row.id).turns()
    if at is None and last_state(store.read(row.id, whole=False)).turn is None:
        return row.events
    if at is None:
        return turns[-1].after if turns else row.events
    places = {turn.number: index for index, turn in enumerate(turns)}
    if at not in places:
        raise SessionError(
            "turn-unknown",
            f"Session {row.id} has no turn {at}.",
            why=f"Its turns are {turns[0].number} to {turns[-1].number}." if turns else "It has no turns.",
            fix="Give the number of one of them, or none to copy the whole session.",
        )
    index = places[at] + 1
    return turns[index].after if index < len(turns) else row.events


def _place_to_begin(past: State, state: State) -> TurnSettled | StateSealed:
    """Write down the state with which the copy begins; a turn that it does not take over has ended there."""
    ended = replace(_without_next_step(past), activity=Idle(), children=())
    outcome = None if state.turn is not None else turn_by_now(ended)
    if past.turn is None or outcome is None:
        return StateSealed(state=as_written(state))
    return TurnSettled(turn=past.turn.number, outcome=outcome, state=as_written(state))


def _without_subagents(state: State) -> State:
    """Leave the subagents that work to the session that began them: two sessions would go on with each."""
    alone = replace(state, children=(), merging=(), unbilled=())
    return with_note(alone, _SUBAGENTS) if awaits_subagents(state) else alone


def _without_next_step(past: State) -> State:
    """Give the state without the step that would be the next of the turn: nothing was sent for it."""
    if past.turn is None or not isinstance(past.activity, Assembling):
        return past
    return replace(past, step=past.step - 1, turn=replace(past.turn, steps=past.turn.steps - 1))


def _cut_short(past: State) -> State:
    """Give the state with which a copy begins that ends within a turn: its open calls have a result then."""
    past = _without_next_step(past)
    unread = (*past.unread, *(call.call.id for call in past.calls))
    return replace(_settled(past, earlier=True), reply=None, hint="", unread=unread, guard=Guard())


def _settled(past: State, *, earlier: bool) -> State:
    """Give the state with which the copy begins: nothing is going on in it."""
    state = replace(past, turn=None, activity=Idle(), questions=(), queue=(), calls=(), asked=())
    state = replace(state, files=replace(past.files, restoring=None, changing=0), cancelling=False, stopping=None)
    if past.goal is not None:  # two sessions do not go on with one by themselves
        state = replace(state, goal=replace(past.goal, due=False))
    return with_note(state, texts.FORKED) if earlier else state
