"""The checkpoints of a live session, which are opened with the first one that is taken."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.app.config.settings import CheckpointSettings
from treadle.context.reader import TranscriptReader
from treadle.store.sqlite import SessionRow, Store

if TYPE_CHECKING:
    from treadle.app.history.checkpoints import FileCheckpoints
    from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored, Rewound


def conversation_at(store: Store, session_id: str, seq: int) -> TranscriptReader:
    """Read the conversation as it was after an event."""
    from treadle.engine.core.history import conversation

    return conversation(store.read(session_id, before=seq + 1, whole=False))


def session_files(
    store: Store, row: SessionRow, roots: Sequence[str], settings: CheckpointSettings
) -> "LazyCheckpoints | None":
    """Keep the files of a session from the first change on; None where the user wants no checkpoints."""

    @cache
    def opened() -> "FileCheckpoints":
        from treadle.app.history.opening import session_checkpoints

        return session_checkpoints(store, row.id, (row.workspace, *roots), ignored=settings.ignored)

    return LazyCheckpoints(opened) if settings.enabled else None


class LazyCheckpoints(Struct, frozen=True):
    """Opens the checkpoints of a session with the first one that is taken."""

    opened: "Callable[[], FileCheckpoints]"

    async def take(self, n: int, last: Sequence[str], /) -> "CheckpointTaken":
        """Keep the files."""
        return await asyncio.to_thread(lambda: self.opened().take_now(n, last))

    async def restore(self, checkpoint: int, /) -> "Restored":
        """Bring files back."""
        return await self.opened().restore(checkpoint)

    async def rewind(self, wanted: "Restore", /) -> "Rewound":
        """Find the place in the log."""
        return await self.opened().rewind(wanted)
