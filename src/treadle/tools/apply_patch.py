"""apply_patch: change several files by one patch."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.tools import Risk, ToolEffect, ToolKind, ToolSpec, ToolTraits
from treadle.tools.changes import prepare_changes
from treadle.tools.declare import parameters, prompt, text
from treadle.workspace.workspace import Workspace

_SPEC = ToolSpec(
    name="apply_patch",
    description=prompt(__file__),
    parameters=parameters({"patch": text("The patch, from `*** Begin Patch` to `*** End Patch`.")}),
    traits=ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
    risk=Risk.WRITE,
)


class ApplyPatch(Struct, frozen=True):
    """Changes files as a patch says."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Apply the patch to the texts as they are now."""
        from treadle.tools.patching import wanted_changes

        return await prepare_changes(self.workspace, wanted_changes(self.workspace, arguments["patch"]))
