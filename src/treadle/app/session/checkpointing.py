"""The checkpoints of a live session, which are opened with the first one that is taken."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from treadle.app.history.checkpoints import FileCheckpoints
    from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored, Rewound


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
