"""search_files: lines that match a regular expression."""

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
    Origin,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
)
from treadle.tools.declare import number, parameters, prompt, text
from treadle.tools.words import result_of
from treadle.workspace.files import missing
from treadle.workspace.judged import Judged, judge_path
from treadle.workspace.search import FoundIn, Line, Query
from treadle.workspace.text import HeadTail, visible
from treadle.workspace.workspace import Workspace

_MATCHES = 300
_CHARACTERS = 32 * 1024

_SPEC = ToolSpec(
    name="search_files",
    description=prompt(__file__),
    parameters=parameters(
        {
            "path": text("The directory or file to search, relative to the workspace (`.` is its root) or absolute."),
            "regex": text("The regular expression."),
            "file_pattern": text("A glob; only files that match it are searched."),
            "context_lines": number("Lines to show around each match; 1 if not given.", low=0, high=10),
        },
        optional=("file_pattern", "context_lines"),
    ),
    traits=ToolTraits(kind=ToolKind.SEARCH, effect=ToolEffect.PURE),
    risk=Risk.READ,
)


class SearchFiles(Struct, frozen=True):
    """Searches files with ripgrep."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name what is searched; the run searches, after it was judged."""
        place = judge_path(self.workspace.paths.locate(arguments["path"]))
        query = Query(
            path=place.resolved,
            regex=arguments["regex"],
            pattern=arguments.get("file_pattern", ""),
            context=arguments.get("context_lines", 1),
            limit=_MATCHES,
        )
        name = self.workspace.paths.display(place.asked)
        return Prepared(
            accesses=place.accesses(),
            preview=Preview(title=f"Search {name}", text=query.regex),
            run=partial(self._search, place, query, name),
        )

    async def _search(self, place: Judged, query: Query, name: str, output: Output) -> CallResult:  # noqa: ARG002
        if not await asyncio.to_thread(Path(query.path).exists):
            raise ToolError(await asyncio.to_thread(missing, query.path, name))
        with place.unchanged(name):
            found, more = await self.workspace.search.lines(query)
        if not found:
            only = f" in files that match {query.pattern}" if query.pattern else ""
            return result_of(Origin.WORKSPACE, Outcome.OK, f"[no match in {name}{only}]")
        kept = HeadTail(_CHARACTERS)
        kept.add("\n\n".join(self._show(each) for each in found))
        notice = (
            f"\n\n[only the first {_MATCHES} matches; narrow the path, the pattern or the expression]" if more else ""
        )
        return result_of(Origin.WORKSPACE, Outcome.OK, kept.take("; narrow the search to see them") + notice)

    def _show(self, found: FoundIn) -> str:
        blocks = ("\n".join(map(_show_line, block)) for block in found.blocks)
        return f"{self.workspace.paths.display(found.path)}\n" + "\n...\n".join(blocks)


def _show_line(line: Line) -> str:
    return f"{line.number}{':' if line.matches else '-'} {visible(line.text)}"
