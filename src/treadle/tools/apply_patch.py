"""apply_patch: change several files by one patch."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.tools import ToolSpec
from treadle.tools.declarations import APPLY_PATCH
from treadle.tools.file_changes import prepare_changes
from treadle.workspace.workspace import Workspace


class ApplyPatch(Struct, frozen=True):
    """Changes files as a patch says."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return APPLY_PATCH

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Apply the patch to the texts as they are now."""
        from treadle.tools.patching import wanted_changes

        return await prepare_changes(self.workspace, wanted_changes(self.workspace, arguments["patch"]))
