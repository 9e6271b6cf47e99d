"""The checkpoints of a live session, which are opened with the first one that is taken."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from treadle.app.config.settings import Settings
from treadle.app.session.roots import Roots
from treadle.context.reader import TranscriptReader
from treadle.protocol.errors import TreadleError
from treadle.store.sqlite import SessionRow, Store

if TYPE_CHECKING:
    from treadle.app.checkpoints.files import FileCheckpoints
    from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored, Rewound


def conversation_at(store: Store, session_id: str, seq: int) -> TranscriptReader:
    """Read the conversation as it was after an event."""
    from treadle.engine.core.history import conversation

    return conversation(store.read(session_id, before=seq + 1, whole=False))


def session_files(store: Store, row: SessionRow, roots: Roots, settings: Settings) -> "LazyCheckpoints":
    """Keep the files of a session from the first change on."""

    @cache
    def opened() -> "FileCheckpoints":
        from treadle.app.checkpoints.opening import session_checkpoints

        return session_checkpoints(store, row.id, (row.workspace, *roots.folders), ignored=settings.checkpoints.ignored)

    return LazyCheckpoints(opened, settings.checkpoints.most_megabytes * 1_000_000)


class _Opened(Protocol):
    def __call__(self) -> "FileCheckpoints": ...
    def cache_info(self) -> Any: ...


class LazyCheckpoints(Struct, frozen=True):
    """Opens the checkpoints of a session with the first one that is taken."""

    opened: "_Opened"
    most_bytes: int

    async def take(self, n: int, last: Sequence[str], /) -> "CheckpointTaken":
        """Keep the files."""
        return await asyncio.to_thread(lambda: self.opened().take_now(n, last))

    async def restore(self, checkpoint: int, /) -> "Restored":
        """Bring files back."""
        return await self.opened().restore(checkpoint)

    async def rewind(self, wanted: "Restore", /) -> "Rewound":
        """Find the place in the log."""
        return await self.opened().rewind(wanted)

    async def close(self) -> None:
        """Let go of the oldest checkpoints of the workspace where they take more than they may."""
        if self.opened.cache_info().currsize:
            with suppress(TreadleError):
                await asyncio.to_thread(self.opened().tidy, self.most_bytes)
