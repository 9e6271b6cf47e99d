"""From a patch to the changes of files that it wants."""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

from treadle.editing import (
    AddFile,
    DeleteFile,
    EditError,
    EditFormat,
    FileOperation,
    UpdateFile,
    explain_refusal,
    parse_operations,
)
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import EditReport
from treadle.tools.edit_apply import apply_patch_sections, check_notebook
from treadle.tools.file_changes import Rewrite, Wanted
from treadle.workspace.files.text_files import TextFile, missing
from treadle.workspace.workspace import Workspace


def wanted_changes(workspace: Workspace, patch: str) -> tuple[Wanted, ...]:
    """Read a patch; raises `ToolError` for one that cannot be read."""
    operations = parse_operations(patch)
    if isinstance(operations, EditError):
        raise ToolError(explain_refusal(operations), edit=_report("", operations.code.value))
    return tuple(one for operation in operations for one in _Patch(workspace).wanted(operation))


class _Patch:
    """The operations of one patch on the files of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def wanted(self, operation: FileOperation) -> Iterator[Wanted]:
        match operation:
            case AddFile(path=path, text=content):
                yield Wanted(path=path, rewrite=self._adding(path, content))
            case DeleteFile(path=path):
                yield Wanted(path=path, rewrite=self._deleting(path))
            case UpdateFile(path=path, move_to=target):
                if target is None:
                    yield Wanted(path=path, rewrite=self._updating(operation))
                else:
                    yield Wanted(path=target, rewrite=self._moving(operation), moved_from=path)
                    yield Wanted(path=path, rewrite=self._deleting(path))
            case _:
                assert_never(operation)

    def _adding(self, path: str, content: str) -> Rewrite:
        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            if file is not None:
                raise ToolError(f"{path} exists already. Nothing was changed; use `*** Update File:` for it.")
            check_notebook(content, path)
            return content, _report(path)

        return rewrite

    def _deleting(self, path: str) -> Rewrite:
        def rewrite(file: TextFile | None) -> tuple[None, EditReport]:
            self._refuse_link(path)
            if file is None:
                raise ToolError(self._missing(path))
            return None, _report(path)

        return rewrite

    def _updating(self, operation: UpdateFile) -> Rewrite:
        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            if file is None:
                raise ToolError(self._missing(operation.path))
            return self._apply(file, operation)

        return rewrite

    def _moving(self, operation: UpdateFile) -> Rewrite:
        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            self._refuse_link(operation.path)
            if file is None:
                raise ToolError(self._missing(operation.path))
            return self._apply(file, operation)

        return rewrite

    def _apply(self, file: TextFile, operation: UpdateFile) -> tuple[str, EditReport]:
        if not operation.sections:
            return file.text, _report(operation.path)
        return apply_patch_sections(file.text, operation.sections, operation.path, operation.form)

    def _refuse_link(self, path: str) -> None:
        if Path(self.workspace.paths.locate(path)).is_symlink():
            raise ToolError(
                f"{path} is a symbolic link, and a patch does not remove what it points to. Nothing was changed; "
                "remove or move the link with a command, or name the file itself."
            )

    def _missing(self, path: str) -> str:
        located = self.workspace.paths.locate(path)
        return f"Nothing was changed: {missing(located, self.workspace.paths.display(located))}"


def _report(path: str, code: str = "ok") -> EditReport:
    return EditReport(path=path, format=EditFormat.APPLY_PATCH.value, code=code)
