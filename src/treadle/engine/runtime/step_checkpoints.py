"""Taking checkpoints of the files beside the work, and restoring them, one after the other."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Protocol

from treadle.engine.core.state import State, replace
from treadle.engine.ports import Checkpoints, KnownChanges
from treadle.protocol.checkpoints import CheckpointTaken, Moment, Restore, Restored
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import EventData

_SILENCE, _PAUSE = 1.0, 5.0
"""Seconds after which a restore says how far it is, and between two such lines."""


class CheckpointedSession(Protocol):
    """What checkpoints need of a session."""

    @property
    def state(self) -> State:
        """The state after the last event."""
        ...

    def tell(self, text: str, *, quiet: bool = False) -> None:
        """Let every surface show a line; one that is `quiet` warns of nothing."""
        ...

    async def post(self, data: EventData) -> None:
        """Log an event; raises `RefusedError`."""
        ...


class Checkpointer:
    """Takes and restores the checkpoints of one session. What cannot be kept is said once, and the work goes on."""

    def __init__(self, checkpoints: Checkpoints | None, session: CheckpointedSession) -> None:
        self._checkpoints = checkpoints
        self._session = session
        self._lock = asyncio.Lock()
        self._said = ""
        self._waited = self._beside = 0
        self._unclear = False
        self._far = (0, 0)

    async def take(self, step: int, moment: Moment, *, within: bool = False) -> None:
        """Keep the files; before a change and `within` a step only where they are not as at the checkpoint before."""
        async with self._lock:
            await self._keep(step, moment, within=within)

    async def look(self) -> None:
        """Keep the files where others changed them, as long as nothing of the session goes on."""
        async with self._lock:
            state = self._session.state
            rests = state.turn is None and state.files.changing == 0 and state.files.restoring is None
            if rests and state.files.taken and not (state.merging or self._waited or self._beside):
                await self._keep(state.step + 1, Moment.BEFORE)

    @asynccontextmanager
    async def around_hooks(self, *, waited: bool) -> AsyncIterator[None]:
        """Tell apart what hooks change: it is the session's where that has `waited` for them, else nobody knows whose.

        Within a change of the session they are a part of it. Before a turn they belong to the one that comes.
        """
        apart = not self._changes()
        if apart:
            await self.take(self._step(waited=waited), Moment.BEFORE)
        self._waited += waited
        self._beside += not waited
        try:
            yield
        except BaseException:
            self._unclear = True
            raise
        finally:
            self._waited -= waited
            self._beside -= not waited
            self._unclear = self._unclear or not waited
        if (apart or not waited) and not self._changes():
            await self.take(self._step(waited=waited), Moment.AFTER if waited else Moment.FOUND, within=True)

    def _changes(self) -> bool:
        """Whether the session changes files now, which ends with a checkpoint; also where there is none at all."""
        return self._checkpoints is None or self._session.state.files.changing > 0

    def _step(self, *, waited: bool) -> int:
        """Give the number of the step: before a turn that waits for hooks, that of its first one."""
        state = self._session.state
        return state.step + (waited and state.turn is None)

    async def _keep(self, step: int, moment: Moment, *, within: bool = False) -> None:
        try:
            await self._take(step, moment, within=within)
        except TreadleError as error:
            self._say(f"No checkpoint: {error.what} {error.why}".strip())

    async def _take(self, step: int, moment: Moment, *, within: bool = False) -> None:
        if self._checkpoints is None:
            return
        last = self._session.state.files
        taken = await self._checkpoints.take(last.taken + 1, last.trees)
        if self._unclear or self._beside:
            taken = replace(taken, moment=Moment.FOUND)
        self._unclear = False
        if self._waited and moment is Moment.BEFORE:
            moment, within = Moment.AFTER, True
        differs, others_time = taken.trees != last.trees, moment in (Moment.BEFORE, Moment.RESTORING)
        if differs and others_time and taken.moment is Moment.FOUND:
            # A command in the background, or a hook, worked beside the user: its changes are no part of what follows.
            await self._post(taken, step - (moment is Moment.BEFORE), Moment.FOUND)
            last = self._session.state.files
            taken = await self._checkpoints.take(last.taken + 1, last.trees)
        if differs or not (others_time or within):
            await self._post(taken, step, moment)

    async def _post(self, taken: CheckpointTaken, step: int, moment: Moment) -> None:
        assert self._checkpoints is not None  # noqa: S101 - it was taken by them
        state = self._session.state
        known = KnownChanges(
            n=state.known_at,
            session=state.changed,
            turn=state.hooked if state.turn is None else state.turn.changes,
            first_step=state.step + 1 - (0 if state.turn is None else state.turn.steps),
        )
        await self._session.post(await self._checkpoints.own(replace(taken, step=step, moment=moment), known))

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._session.tell(text)

    async def restore(self, wanted: Restore) -> None:
        """Bring back what the user wants; the files are kept before and after, so that it can be undone."""
        async with self._lock:
            try:
                result = await self._told_meanwhile(self._restore(wanted))
            except TreadleError as error:
                text = " ".join(filter(None, (error.what, error.why, error.fix)))
                result = Restored(checkpoint=wanted.checkpoint, error=text)
            await self._session.post(result)

    async def _told_meanwhile(self, work: Coroutine[None, None, Restored]) -> Restored:
        """Say from time to time how far a restore is that takes long."""
        self._far = (0, 0)
        working = asyncio.ensure_future(work)
        pause = _SILENCE
        try:
            while not (await asyncio.wait((working,), timeout=pause))[0]:
                done, total = self._far
                far = f"{done:,} of {total:,}" if total else "they are compared with the checkpoint"
                self._session.tell(f"Restoring files: {far}.", quiet=True)
                pause = _PAUSE
            return await working
        finally:
            if not working.done():
                working.cancel()
                await asyncio.wait((working,))

    def _hear(self, done: int, total: int) -> None:
        self._far = (done, total)

    async def _restore(self, wanted: Restore) -> Restored:
        if self._checkpoints is None:
            return Restored(checkpoint=wanted.checkpoint, error="There are no checkpoints in this session.")
        step = self._session.state.step
        if wanted.files:
            # Where the files cannot be kept as they are now, going back could not be undone: then nothing is done.
            await self._take(step, Moment.RESTORING)
        if wanted.conversation:
            await self._session.post(await self._checkpoints.rewind(wanted))
        if not wanted.files:
            return Restored(checkpoint=wanted.checkpoint)
        result = await self._checkpoints.restore(wanted.checkpoint, self._hear)
        await self._keep(step, Moment.RESTORED)
        return result
