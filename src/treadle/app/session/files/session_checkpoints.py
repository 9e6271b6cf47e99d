"""The checkpoints of a live session, which are opened with the first one that is taken."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from treadle.app.config.sections import CheckpointSettings
from treadle.context.log_reader import TranscriptReader
from treadle.protocol.errors import TreadleError
from treadle.store.sqlite import Store

if TYPE_CHECKING:
    from treadle.app.checkpoints.checkpoint_files import FileCheckpoints
    from treadle.engine.ports import KnownChanges
    from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored, Rewound


def conversation_at(store: Store, session_id: str, seq: int) -> TranscriptReader:
    """Read the conversation as it was after an event."""
    from treadle.engine.core.past_history import conversation

    return conversation(store.read(session_id, before=seq + 1, whole=False))


class SessionCheckpoints:
    """The checkpoints of one session, in `roots`. Nothing is opened or loaded for them before the first is taken."""

    def __init__(self, store: Store, session_id: str, roots: Sequence[str], settings: CheckpointSettings) -> None:
        self._store = store
        self._id = session_id
        self._roots = roots
        self._settings = settings

    @cached_property
    def _opened(self) -> "FileCheckpoints":
        from treadle.app.checkpoints.opening_checkpoints import session_checkpoints

        return session_checkpoints(self._store, self._id, self._roots, ignored=self._settings.ignored)

    async def take(self, n: int, last: Sequence[str], /) -> "CheckpointTaken":
        """Keep the files."""
        return await asyncio.to_thread(lambda: self._opened.take_now(n, last))

    async def own(self, taken: "CheckpointTaken", known: "KnownChanges", /) -> "CheckpointTaken":
        """Say what of the files is the session's own work now."""
        return await self._opened.own(taken, known)

    async def restore(self, checkpoint: int, /) -> "Restored":
        """Bring files back."""
        return await self._opened.restore(checkpoint)

    async def rewind(self, wanted: "Restore", /) -> "Rewound":
        """Find the place in the log."""
        return await self._opened.rewind(wanted)

    async def close(self) -> None:
        """Let go of the oldest checkpoints of the workspace where they take more than they may."""
        if "_opened" in self.__dict__:
            with suppress(TreadleError):
                await asyncio.to_thread(self._opened.tidy, self._settings.most_megabytes * 1_000_000)
