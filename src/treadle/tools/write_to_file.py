"""write_to_file: a whole file, new or replaced."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.tools import EditReport, Risk, ToolEffect, ToolKind, ToolSpec, ToolTraits
from treadle.tools.changes import Wanted, prepare_changes
from treadle.tools.declare import PATH, parameters, prompt, text
from treadle.workspace.files import TextFile
from treadle.workspace.workspace import Workspace

_SPEC = ToolSpec(
    name="write_to_file",
    description=prompt(__file__),
    parameters=parameters({"path": PATH, "content": text("The complete text of the file.")}),
    traits=ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
    risk=Risk.WRITE,
)


class WriteToFile(Struct, frozen=True):
    """Creates or replaces one file."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Compare the new text with what is there."""
        from treadle.tools.edit_apply import replace_whole

        content: str = arguments["content"]

        name = self.workspace.paths.display(self.workspace.paths.locate(arguments["path"]))

        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            return replace_whole(file.text if file else "", content, name)

        return await prepare_changes(self.workspace, (Wanted(path=arguments["path"], rewrite=rewrite),))
