"""write_to_file: a whole file, new or replaced."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.tools import EditReport, ToolSpec
from treadle.tools.declarations import WRITE_TO_FILE
from treadle.tools.file_changes import Wanted, prepare_changes
from treadle.workspace.files.text_files import TextFile
from treadle.workspace.workspace import Workspace


class WriteToFile(Struct, frozen=True):
    """Creates or replaces one file."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return WRITE_TO_FILE

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Compare the new text with what is there."""
        from treadle.tools.edit_apply import replace_whole

        content: str = arguments["content"]

        name = self.workspace.paths.display(self.workspace.paths.locate(arguments["path"]))

        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            return replace_whole(file.text if file else "", content, name)

        wanted = Wanted(path=arguments["path"], rewrite=rewrite, read_first=True)
        return await prepare_changes(self.workspace, (wanted,))
