"""list_code_definition_names: outlines of a source file, or of those in a directory."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import (
    CallResult,
    Outcome,
    Preview,
    ReadPath,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)
from treadle.tools.declare import parameters, prompt, text
from treadle.tools.outlines import Grammar, grammar_for, outline
from treadle.workspace.files import missing, read_text
from treadle.workspace.text import visible
from treadle.workspace.workspace import Workspace

_FILES_AT_MOST = 100
_CHARACTERS = 32 * 1024

_SPEC = ToolSpec(
    name="list_code_definition_names",
    description=prompt(__file__),
    parameters=parameters({"path": text("The file or directory, relative to the workspace or absolute.")}),
    traits=ToolTraits(kind=ToolKind.READ, effect=ToolEffect.PURE),
    risk=Risk.READ,
)


class ListCodeDefinitionNames(Struct, frozen=True):
    """Outlines source files."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the place; it is looked at by the run, after it was judged."""
        path = self.workspace.paths.locate(arguments["path"])
        return Prepared(
            accesses=(ReadPath(path=path),),
            preview=Preview(title=f"Outline {self.workspace.paths.display(path)}"),
            run=partial(self._run, path),
        )

    async def _run(self, path: str, output: Output) -> CallResult:  # noqa: ARG002 - the port's shape
        return result_text(Outcome.OK, await asyncio.to_thread(self._outline, path))

    def _outline(self, path: str) -> str:
        place = Path(self.workspace.paths.resolve(path))
        name = self.workspace.paths.display(path)
        if not place.exists():
            raise ToolError(missing(path, name))
        if place.is_dir():
            return self._outline_directory(place, name)
        grammar = grammar_for(place.name)
        if grammar is None:
            raise ToolError(f"{name} is in no language that can be outlined. Use read_file.")
        return "\n".join(_definitions(place, name, grammar)) or f"[{name} defines nothing]"

    def _outline_directory(self, directory: Path, name: str) -> str:
        # Links are left out: what they lead to was not judged.
        entries = [entry for entry in sorted(directory.iterdir()) if entry.is_file() and not entry.is_symlink()]
        sources = [(entry, grammar) for entry in entries if (grammar := grammar_for(entry.name))]
        sections: list[str] = []
        used = 0
        for entry, grammar in sources[:_FILES_AT_MOST]:
            section = _section(entry, self.workspace.paths.display(str(entry)), grammar)
            used += len(section)
            if sections and used > _CHARACTERS:
                break
            sections.append(section)
        if not sections:
            return f"[{name} has no source file in a language that can be outlined]"
        left_out = len(sources) - len(sections)
        notice = [f"[{left_out} more files; outline them one by one]"] if left_out else []
        return "\n\n".join([*sections, *notice])


def _section(file: Path, name: str, grammar: Grammar) -> str:
    try:
        definitions = _definitions(file, name, grammar)
    except ToolError as error:
        definitions = [f"[{error.text}]"]
    return "\n".join([name, *definitions])


def _definitions(file: Path, name: str, grammar: Grammar) -> list[str]:
    return [visible(line) for line in outline(read_text(str(file), name).text, grammar)]
