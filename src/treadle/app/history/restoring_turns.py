"""Going back in a session, be it open somewhere or nowhere: its files, a part of them, or its conversation."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import closing

from msgspec import Struct

from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.compose import open_store
from treadle.app.history.offline import restore_closed
from treadle.present.words import counted
from treadle.protocol.checkpoints import CheckpointTaken, Moment, Restore, Restored
from treadle.protocol.errors import RefusedError, SessionError
from treadle.protocol.events import ContextReady, Prompt
from treadle.protocol.sealed import PromptsDelivered
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import Store

_PATIENCE = 120.0
"""Seconds in which the process that has the session open restores its files."""

_LOOK = 0.05

_WORK = (CheckpointTaken, ContextReady, Prompt, PromptsDelivered, Restored)
"""The events after which a wish to restore would do something else than it was shown for."""


class WentBack(Struct, frozen=True, kw_only=True):
    """What was restored, and the wish that undoes it, as long as nothing was done after the event `seen`."""

    result: Restored
    undo: Restore
    seen: int


async def go_back(
    session_id: str, wanted: Restore, post: Callable[[Restore], Awaitable[None]] | None = None, *, seen: int = 0
) -> WentBack:
    """Bring files or the conversation of a session back; `post` asks the process that has it open, if any has.

    `seen` is the event up to which the person knew the session: nothing is done where it has worked since. Raises
    `TreadleError`.
    """
    store = await asyncio.to_thread(open_store)
    try:
        row = await asyncio.to_thread(store.find, session_id)
        if seen:
            await asyncio.to_thread(_require_no_work, store, row.id, seen)
        before = row.events
        if post is None:
            kept = await asyncio.to_thread(opened_checkpoints, store, row)
            result = await restore_closed(store, row.id, kept, wanted)
        else:
            await _asked(post, wanted)
            result = await _awaited(store, row.id, before)
        undo = await asyncio.to_thread(_undoing, store, row.id, before, wanted)
        return WentBack(result=result, undo=undo, seen=await asyncio.to_thread(_last_restored, store, row.id))
    finally:
        store.close()


def _require_no_work(store: Store, session_id: str, seen: int) -> None:
    """Raise `SessionError` where a session has worked, or something was restored in it, since an event."""
    newer = [event.data for event in store.read(session_id, after=seen) if isinstance(event.data, _WORK)]
    if not newer:
        return
    messages, steps = (sum(isinstance(one, kind) for one in newer) for kind in (Prompt, ContextReady))
    since = " and ".join(counted(n, noun) for n, noun in ((messages, "message"), (steps, "step")) if n)
    raise SessionError(
        "restore-older",
        "The session has newer work than what was shown here. Nothing was restored.",
        why=f"It has {since} more since then." if since else "Files were kept or restored since then.",
        fix="Look again in its timeline, and restore to a step there.",
    )


def undo_of_restore(session_id: str) -> tuple[Restore, int]:
    """Give the wish that undoes the last way back, and the event with which that was gone; raises `SessionError`."""
    with closing(open_store()) as store:
        row = store.find(session_id)
        for seq, _, raw, version in reversed(store.of_types(row.id, (tag_of(Restore),))):
            wanted = event_data(raw, version)
            if isinstance(wanted, Restore) and wanted.conversation:
                return _undoing(store, row.id, seq - 1, wanted), _last_restored(store, row.id)
    raise SessionError(
        "nothing-to-undo",
        "This cannot be undone.",
        why="Nothing was restored in this session.",
        fix="Restore to a step in the timeline.",
    )


def _last_restored(store: Store, session_id: str) -> int:
    return int(store.of_types(session_id, (tag_of(Restored),))[-1][0])


async def _asked(post: Callable[[Restore], Awaitable[None]], wanted: Restore) -> None:
    try:
        await post(wanted)
    except RefusedError as refused:
        raise SessionError(
            "restore-refused",
            "Nothing can be restored now.",
            why=refused.why[:1].upper() + refused.why[1:] + ".",
            fix="Try again when the session has nothing to do.",
        ) from refused


async def _awaited(store: Store, session_id: str, before: int) -> Restored:
    """Wait for the log to say what was restored."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        rows = await asyncio.to_thread(store.of_types, session_id, (tag_of(Restored),))
        if rows and rows[-1][0] > before:
            data = event_data(*rows[-1][2:])
            assert isinstance(data, Restored)  # noqa: S101 - the type of the row
            return data
        await asyncio.sleep(_LOOK)
    raise SessionError(
        "restore-silent",
        "Nothing says yet whether the files were restored.",
        why="The process that has the session open does not answer.",
        fix="Look at the timeline of the session, and try again.",
    )


def _undoing(store: Store, session_id: str, before: int, wanted: Restore) -> Restore:
    """Give the wish that brings back what was there before: the checkpoint that was taken for it, or the one before."""
    last = 0
    for seq, _, raw, version in store.of_types(session_id, (tag_of(CheckpointTaken),)):
        data = event_data(raw, version)
        if isinstance(data, CheckpointTaken) and (seq <= before or data.moment is Moment.RESTORING):
            last = data.n
    return Restore(
        checkpoint=last,
        files=wanted.files,
        conversation=wanted.conversation,
        to=before if wanted.conversation else 0,
    )
