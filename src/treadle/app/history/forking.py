"""Copying a session up to the end of a turn, to go on in another direction."""

import json
from typing import Any

from msgspec.structs import replace

from treadle.app.assembly import clock
from treadle.app.checkpoints.points import Points
from treadle.app.compose import new_session_id
from treadle.engine.core import texts
from treadle.engine.core.history import last_state
from treadle.engine.core.sealing import written
from treadle.engine.core.state import Idle, State, with_note
from treadle.protocol.codec import encode
from treadle.protocol.errors import SessionError
from treadle.protocol.events import FORKED
from treadle.protocol.sealed import StateSealed
from treadle.store.appending import tag_of
from treadle.store.chain import LogRow
from treadle.store.copying import SessionCopy, copy_session
from treadle.store.sqlite import SessionRow, Store


async def fork_session(store: Store, row: SessionRow, at: int | None = None) -> tuple[str, int]:
    """Copy a session up to the end of turn `at`, or of its last turn; gives the new id and how many checkpoints it has.

    Raises `SessionError` where there is no such turn, `StoreError`.
    """
    if row.archived:  # its rows are packed
        await store.acquire(row.id)
        await store.release(row.id)
    to = _end(store, row, at)
    past = last_state(store.read(row.id, before=to + 1, whole=False))
    now = clock()
    new = new_session_id(now)
    state = _settled(past, new, earlier=to < row.events)
    sealed = StateSealed(state=written(state))
    last = LogRow(to + 1, now, encode(FORKED), encode(sealed)), tag_of(sealed)
    copy = SessionCopy(id=new, to=to, first=lambda data: _started(data, new, row.id, to), last=last)
    await copy_session(store, row, copy)
    return new, state.files.taken


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


def _settled(past: State, session_id: str, *, earlier: bool) -> State:
    """Give the state with which the copy begins: nothing is going on in it."""
    state = replace(past, session_id=session_id, turn=None, activity=Idle(), questions=(), queue=(), calls=())
    state = replace(state, files=replace(past.files, restoring=None, changing=0), cancelling=False, stopping=None)
    return with_note(state, texts.FORKED) if earlier else state


def _started(data: bytes, session_id: str, parent: str, to: int) -> bytes:
    """Give the first event of the copy: its own id, and where it comes from. Of the same schema as it was."""
    started: dict[str, Any] = json.loads(data)
    started |= {"session_id": session_id, "parent": {"session_id": parent, "seq": to}}
    return json.dumps(started, ensure_ascii=False, separators=(",", ":")).encode()
