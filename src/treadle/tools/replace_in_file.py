"""replace_in_file: parts of a file, by SEARCH/REPLACE blocks."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import EditReport, ToolSpec
from treadle.tools.declarations import REPLACE_IN_FILE
from treadle.tools.file_changes import Wanted, prepare_changes
from treadle.workspace.files.text_files import TextFile, missing
from treadle.workspace.workspace import Workspace


class ReplaceInFile(Struct, frozen=True):
    """Changes one existing file."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return REPLACE_IN_FILE

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Apply the blocks to the text as it is now."""
        from treadle.tools.edit_apply import apply_blocks, new_text

        requested, diff, everywhere = arguments["path"], arguments["diff"], arguments.get("replace_all", False)
        paths = self.workspace.paths

        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            text = new_text(diff) if file is None else None
            if text is not None:
                return text, EditReport(path=paths.display(paths.locate(requested)), format="whole")
            if file is None:
                path = paths.locate(requested)
                raise ToolError(f"{missing(path, paths.display(path))} To create a file use write_to_file.")
            name = paths.display(paths.locate(requested))
            return apply_blocks(file.text, diff, name, replace_all=everywhere)

        return await prepare_changes(self.workspace, (Wanted(path=requested, rewrite=rewrite),))
