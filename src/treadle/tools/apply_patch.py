"""apply_patch: change several files by one patch."""

from collections.abc import Iterator, Mapping
from os.path import lexists
from typing import Any, assert_never

from msgspec import Struct

from treadle.editing import AddFile, DeleteFile, EditError, EditFormat, FileOperation, UpdateFile, parse_patch
from treadle.engine.ports import Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import EditReport, Risk, ToolEffect, ToolKind, ToolSpec, ToolTraits
from treadle.tools.changes import Rewrite, Wanted, prepare_changes
from treadle.tools.declare import parameters, prompt, text
from treadle.tools.edit_apply import apply_patch_sections, explain
from treadle.workspace.files import TextFile, missing, read_text
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
        operations = parse_patch(arguments["patch"])
        if isinstance(operations, EditError):
            raise ToolError(explain(operations), edit=_report("", operations.code.value))
        wanted = tuple(one for operation in operations for one in self._wanted(operation))
        return await prepare_changes(self.workspace, wanted, echo=True)

    def _wanted(self, operation: FileOperation) -> Iterator[Wanted]:
        match operation:
            case AddFile(path=path, text=content):
                yield Wanted(path=path, rewrite=self._adding(path, content))
            case DeleteFile(path=path):
                yield Wanted(path=path, rewrite=self._deleting(path))
            case UpdateFile(path=path, move_to=target):
                if target is None:
                    yield Wanted(path=path, rewrite=self._updating(operation))
                else:
                    yield Wanted(path=target, rewrite=self._moving(operation, target))
                    yield Wanted(path=path, rewrite=self._deleting(path))
            case _:
                assert_never(operation)

    def _adding(self, path: str, content: str) -> Rewrite:
        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            if file is not None:
                raise ToolError(f"{path} exists already. Nothing was changed; use `*** Update File:` for it.")
            return content, _report(path)

        return rewrite

    def _deleting(self, path: str) -> Rewrite:
        def rewrite(file: TextFile | None) -> tuple[None, EditReport]:
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

    def _moving(self, operation: UpdateFile, target: str) -> Rewrite:
        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            if file is not None:
                raise ToolError(f"{target} exists already, so {operation.path} cannot be moved there.")
            paths = self.workspace.paths
            source = paths.resolve(paths.locate(operation.path))
            if not lexists(source):
                raise ToolError(self._missing(operation.path))
            return self._apply(read_text(source, paths.display(source)), operation)

        return rewrite

    def _apply(self, file: TextFile, operation: UpdateFile) -> tuple[str, EditReport]:
        if not operation.sections:
            return file.text, _report(operation.path)
        return apply_patch_sections(file.text, operation.sections, operation.path)

    def _missing(self, path: str) -> str:
        located = self.workspace.paths.locate(path)
        return f"{missing(located, self.workspace.paths.display(located))} Nothing was changed."


def _report(path: str, code: str = "ok") -> EditReport:
    return EditReport(path=path, format=EditFormat.APPLY_PATCH.value, code=code)
