"""new_task: the model proposes a new task, and begins it with a fresh conversation if the user agrees."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.tools import ToolSpec
from treadle.tools.condense import prepare_context
from treadle.tools.declarations import NEW_TASK


class NewTask(Struct, frozen=True):
    """Takes the context of the new task; the loop makes room with it."""

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return NEW_TASK

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Show the context."""
        said = "The user agreed: the new task begins here. Go on from its context."
        return prepare_context("Begin a new task", arguments["context"], said)
