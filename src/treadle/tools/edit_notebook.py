"""edit_notebook: one cell of a notebook, replaced, inserted or deleted."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import EditReport, ToolSpec
from treadle.tools.declarations import EDIT_NOTEBOOK
from treadle.tools.file_changes import Wanted, prepare_changes
from treadle.workspace.files.text_files import TextFile, missing
from treadle.workspace.notebooks import CODE, CellChange, Notebook, read_notebook
from treadle.workspace.workspace import Workspace

_EMPTY = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


class EditNotebook(Struct, frozen=True):
    """Changes one cell of an existing notebook."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return EDIT_NOTEBOOK

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Change the cell in the file as it is now."""
        _check(arguments["action"], arguments.get("content"), arguments.get("cell_type"))
        path = self.workspace.paths.locate(arguments["path"])
        name = self.workspace.paths.display(path)

        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            if file is None:
                raise ToolError(
                    f"{missing(path, name)} To create a notebook, give write_to_file its JSON, such as {_EMPTY}, and "
                    "then insert the cells."
                )
            notebook = read_notebook(file.text)
            if notebook is None:
                raise ToolError(
                    f"{name} is no notebook of format 4: it has no cells to edit. Nothing was changed. Use your "
                    "other edit tool on its text, or convert it with `jupyter nbconvert --to notebook`."
                )
            return _changed(notebook, arguments), EditReport(path=name, format="notebook")

        return await prepare_changes(self.workspace, (Wanted(path=arguments["path"], rewrite=rewrite),))


def _check(action: str, content: str | None, cell_type: str | None) -> None:
    if action == "insert" and content is None:
        raise ToolError("insert needs `content`, the text of the new cell. Call again with it.", invalid=True)
    if action == "replace" and content is None and cell_type is None:
        raise ToolError("replace needs `content`, `cell_type` or both. Call again with what is new.", invalid=True)
    if action == "delete" and content:
        raise ToolError("delete takes no `content`. Use replace to change a cell, or leave it out.", invalid=True)


def _changed(notebook: Notebook, arguments: Mapping[str, Any]) -> str:
    """Do what is wanted; a line end after the last line of a text is left out where the cell had none."""
    name, content, cell_type = arguments["cell"], arguments.get("content"), arguments.get("cell_type")
    match arguments["action"]:
        case "insert":
            at = 0 if name == "0" else notebook.find(name) + 1
            return notebook.inserted(at, (content or "").removesuffix("\n"), cell_type or CODE)
        case "delete":
            return notebook.without(notebook.find(name))
        case _:
            at = notebook.find(name)
            if content is not None and not notebook.cells[at].source.endswith("\n"):
                content = content.removesuffix("\n")
            return notebook.changed({at: CellChange(source=content, cell_type=cell_type)})
