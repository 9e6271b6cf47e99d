"""What hooks change of the files, told apart from what a person changes meanwhile."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from treadle.engine.runtime.running_session import Session

AroundHooks = Callable[[bool], AbstractAsyncContextManager[None]]
"""Goes around hooks that run; the session has waited for them, or has not."""


def nothing_around(_waited: bool) -> AbstractAsyncContextManager[None]:  # noqa: FBT001 - as those that do something
    """Go around hooks of a session that keeps no files."""
    return nullcontext()


class HookChanges(Struct, frozen=True):
    """Has the checkpoints of a session go around its hooks."""

    engine: "Session"

    @asynccontextmanager
    async def around(self, waited: bool) -> AsyncIterator[None]:  # noqa: FBT001 - the one thing that it is told
        """Go around hooks that run."""
        await self.engine.checkpointed()
        checkpointer = self.engine.checkpointer
        if checkpointer is None or self.engine.closing:
            yield
            return
        async with checkpointer.around_hooks(waited=waited):
            yield
