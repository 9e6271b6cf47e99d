"""list_code_definition_names: outlines of a source file, or of those in a directory."""

import asyncio
import stat
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import (
    CallResult,
    Origin,
    Outcome,
    Preview,
    ToolSpec,
)
from treadle.tools.declarations import LIST_CODE_DEFINITION_NAMES
from treadle.tools.outlines import Grammar, grammar_for, how_to_install, is_ready, outline
from treadle.tools.quoted_words import result_of
from treadle.workspace.files.judged import JudgedPath, judge_path
from treadle.workspace.files.text import HeadTail, size_of, visible
from treadle.workspace.files.text_files import missing
from treadle.workspace.workspace import Workspace

_FILES_AT_MOST = 100
_BYTES = 16_000


class ListCodeDefinitionNames(Struct, frozen=True):
    """Outlines source files."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return LIST_CODE_DEFINITION_NAMES

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the place; it is looked at by the run, after it was judged."""
        place = judge_path(self.workspace.paths.locate(arguments["path"]))
        return Prepared(
            accesses=place.accesses(),
            preview=Preview(title=f"Outline {self.workspace.paths.display(place.asked)}"),
            run=partial(self._run, place),
        )

    async def _run(self, place: JudgedPath, output: Output) -> CallResult:  # noqa: ARG002 - the port's shape
        return result_of(Origin.WORKSPACE, Outcome.OK, await asyncio.to_thread(self._outline, place))

    def _outline(self, place: JudgedPath) -> str:
        path = Path(place.resolved)
        name = self.workspace.paths.display(place.asked)
        if not path.exists():
            raise ToolError(missing(place.asked, name))
        if path.is_dir():
            with place.unchanged(name):
                return self._outline_directory(path, name)
        grammar = grammar_for(path.name)
        if grammar is None:
            raise ToolError(f"{name} is not in a language that can be outlined. Use read_file.")
        kept = HeadTail(_BYTES)
        kept.add("\n".join(self._definitions(place, name, grammar)))
        hint = f"; search_files finds definitions in {name} by name"
        return kept.take(hint, self._room) or f"[{name} defines nothing]"

    def _section(self, file: JudgedPath, name: str, grammar: Grammar) -> str:
        try:
            definitions = self._definitions(file, name, grammar)
        except ToolError as error:
            definitions = [f"[{error.text}]"]
        return "\n".join([name, *definitions])

    def _definitions(self, file: JudgedPath, name: str, grammar: Grammar) -> list[str]:
        return [visible(line) for line in outline(self.workspace.files.read_text(file, name).text, grammar)]

    @property
    def _room(self) -> int:
        return min(_BYTES, self.workspace.conversation.room())

    def _outline_directory(self, directory: Path, name: str) -> str:
        # Links of both kinds are left out: what they lead to was not judged.
        plain = [entry.name for entry in sorted(directory.iterdir()) if _is_plain(entry)]
        entries = [directory / shown for shown in self.workspace.search.shown_in(str(directory), plain)]
        known = [(entry, grammar) for entry in entries if (grammar := grammar_for(entry.name))]
        sources = [(entry, grammar) for entry, grammar in known if is_ready(grammar)]
        sections: list[str] = []
        room = self._room
        for entry, grammar in sources[:_FILES_AT_MOST]:
            place = JudgedPath(asked=str(entry), resolved=str(entry))
            section = self._section(place, self.workspace.paths.display(place.asked), grammar)
            room -= size_of(section) + 2
            if sections and room < 0:
                break
            sections.append(section)
        notices = []
        if left_out := len(sources) - len(sections):
            notices.append(f"[{left_out} more files; outline them one by one]")
        if missing_here := {grammar.name for _, grammar in known if not is_ready(grammar)}:
            names = ", ".join(sorted(missing_here))
            notices.append(f"[files in {names} need the extra `code`, which is not installed: {how_to_install()}]")
        if not known:
            notices.append(f"[{name} has no source file in a language that can be outlined]")
        return "\n\n".join([*sections, *notices])


def _is_plain(entry: Path) -> bool:
    found = entry.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1
