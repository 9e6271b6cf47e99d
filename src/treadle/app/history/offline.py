"""Going back in a session that no process has open: no model, no tools, no settings are needed for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress

from treadle.app.checkpoints.checkpoint_files import FileCheckpoints
from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.points import put_away
from treadle.app.compose import open_store
from treadle.app.session.files.session_checkpoints import Seen, own_work_differs, unseen_since
from treadle.app.session.left_calls import settle_left_calls
from treadle.app.session.parts import clock
from treadle.engine.core.machine_effects import RestoreCheckpoint, TakeCheckpoint
from treadle.engine.core.past_history import calls_under_way, conversation, last_state, next_to_end, take_whole
from treadle.engine.core.state import State
from treadle.engine.runtime.lost import lost_calls
from treadle.engine.runtime.step_checkpoints import Checkpointer
from treadle.protocol.checkpoints import Restore, Restored
from treadle.protocol.codec import encodable
from treadle.protocol.errors import RefusedError, SessionError, TreadleError
from treadle.protocol.events import ENGINE, Event, EventData, Resumed, Source
from treadle.store.sqlite import Store

_TERMINAL = Source(kind="cli", id="main")

Says = Callable[[str], object]
"""Shows a line at once."""


class ClosedSession:
    """A session whose log is at hand, and nothing else: what is posted is logged, and checkpoints are all it takes.

    `says` is given how far it is, for a person who waits.
    """

    def __init__(
        self, store: Store, session_id: str, state: State, checkpoints: FileCheckpoints, *, says: Says | None = None
    ) -> None:
        self._store = store
        self._says = says
        self._id = session_id
        self._state = state
        self._checkpointer = Checkpointer(checkpoints, self)
        self.told: list[str] = []
        self.restored: Restored | None = None

    @property
    def state(self) -> State:
        """The state after the last event."""
        return self._state

    def tell(self, text: str, *, quiet: bool = False) -> None:
        """Keep what a person should read; how far it is, which is `quiet`, nobody needs when it is over."""
        if not quiet:
            self.told.append(text)
        elif self._says is not None:
            self._says(text)

    async def post(self, data: EventData, source: Source = ENGINE) -> None:
        """Log an event, and what the machine says because of it; raises `RefusedError` or `StoreError`."""
        event = Event(seq=self._state.seq + 1, at=clock(), source=source, data=encodable(data))
        state, events, effects = take_whole(self._state, event)
        await self._store.append(self._id, events, durable=True)
        self._state = state
        if isinstance(data, Restored):
            self.restored = data
        for effect in effects:
            match effect:
                case TakeCheckpoint(step=step, moment=moment):
                    await self._checkpointer.take(step, moment)
                case RestoreCheckpoint(wanted=wanted):
                    await self._checkpointer.restore(wanted)
                case _:
                    pass

    async def look(self) -> None:
        """Keep the files where others changed them since."""
        await self._checkpointer.look()

    async def end_turn(self) -> None:
        """End what was going on when its process was killed; messages that nobody has read are dropped."""
        await self._settle_lost_calls()
        files = self._state.files
        if self._state.turn is not None or files.restoring is not None or files.changing:
            # First of all: what changed since that process ended is not the session's work.
            await self.post(Resumed(user_present=False, keeps=True))
        while (ending := next_to_end(self._state)) is not None:
            await self.post(ending, ENGINE if isinstance(ending, Resumed) else _TERMINAL)

    async def _settle_lost_calls(self) -> None:
        """Log what the model calls have used that were going on; at what price is not known here."""
        if not calls_under_way(self._state):
            return
        reader = conversation(self._store.read(self._id, whole=False))
        for lost in lost_calls(self._state, reader, None):
            await self.post(lost)


@asynccontextmanager
async def closed_session(
    store: Store, session_id: str, checkpoints: FileCheckpoints, *, says: Says | None = None
) -> AsyncIterator[ClosedSession]:
    """Take the lease of a session that is open nowhere. Raises `SessionError`; `StoreError`, as where it is damaged."""
    settle_left_calls(store)  # its calls have no price here
    await store.acquire(session_id)
    try:
        state = last_state(log := store.read(session_id, whole=False))
        if log.damage is not None:
            raise log.damage.error()
        yield ClosedSession(store, session_id, state, checkpoints, says=says)
    finally:
        with suppress(TreadleError):
            await store.release(session_id)


async def look_closed(session_id: str, seen: Seen) -> bool:
    """Have a session that is open nowhere know what others changed of its work; gives whether that is something.

    What was `seen` of its files spares reading them again. Raises `TreadleError`.
    """
    store = open_store()
    try:
        row = store.find(session_id)
        state = last_state(store.read(row.id, whole=False))
        own = {one.path: one.after for one in state.changed}
        if not seen:  # such as by a program that has begun since they were put away
            seen.update(unseen_since(put_away(store, row.id)))
        if not await asyncio.to_thread(own_work_differs, own, seen):
            return False
        with closing(await asyncio.to_thread(opened_checkpoints, store, row)) as kept:
            async with closed_session(store, row.id, kept) as session:
                known = session.state.files.taken
                await session.look()
                return session.state.files.taken > known
    finally:
        store.close()


async def restore_closed(
    store: Store, session_id: str, checkpoints: FileCheckpoints, wanted: Restore, *, says: Says | None = None
) -> Restored:
    """Bring files or the conversation of a session back that is open nowhere; raises `TreadleError`."""
    async with closed_session(store, session_id, checkpoints, says=says) as session:
        await session.end_turn()
        try:
            await session.post(wanted, _TERMINAL)
        except RefusedError as refused:
            raise SessionError(
                "restore-refused",
                f"Checkpoint {wanted.checkpoint} cannot be restored now.",
                why=refused.why[:1].upper() + refused.why[1:] + ".",
                fix="`treadle checkpoint list` lists the checkpoints.",
            ) from refused
        assert session.restored is not None  # noqa: S101 - restoring ends with it
        return session.restored
