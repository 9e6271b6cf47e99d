"""search_files: lines that match a regular expression."""

import asyncio
import os
import stat
from collections.abc import Iterator, Mapping
from functools import partial
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
from treadle.workspace.matches import FoundIn, Line, Matches, Query
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
            "file_pattern": text("A glob such as `*.py` or `src/**/*.ts`, or several with commas: `*.ts,*.tsx`."),
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
        await asyncio.to_thread(_check, query.path, name)
        with place.unchanged(name):
            found = await self.workspace.search.lines(query)
        if not found.files:
            said = [await self._nothing(query, name), *_notes(found)]
            return result_of(Origin.WORKSPACE, Outcome.OK, "\n".join(said))
        kept = HeadTail(_CHARACTERS)
        kept.add("\n\n".join(self._show(each) for each in found.files))
        said = [kept.take("; narrow the search to see them"), *(f"\n{note}" for note in _notes(found))]
        return result_of(Origin.WORKSPACE, Outcome.OK, "\n".join(said))

    async def _nothing(self, query: Query, name: str) -> str:
        if not query.pattern:
            return f"[no match in {name}]"
        if await self.workspace.search.any_file(query.path, query.pattern):
            return f"[no match in {name} in files that match {visible(query.pattern)}]"
        return (
            f"[no file in {name} that is searched matches {visible(query.pattern)}: give a glob such as *.py or "
            "src/**/*.ts, or leave file_pattern out]"
        )

    def _show(self, found: FoundIn) -> str:
        blocks = ("\n".join(map(_show_line, block)) for block in found.blocks)
        return f"{self.workspace.paths.display(found.path)}\n" + "\n...\n".join(blocks)


def _check(path: str, name: str) -> None:
    """Make sure that there is something to search; raises `ToolError`."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a loop of links is told here too
    except FileNotFoundError:
        raise ToolError(missing(path, name)) from None
    except OSError as error:
        raise ToolError(f"{name} cannot be searched: {error.strerror}. Use another path.") from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ToolError(f"{name} is neither a file nor a directory but a pipe, socket or device. Go on without it.")


def _notes(found: Matches) -> Iterator[str]:
    if found.more:
        yield f"[only the first {_MATCHES} matches; narrow the path, the pattern or the expression]"
    if found.binary:
        yield "[a binary file matches too; its matches are not shown]"
    if found.unread:
        yield "[not everything was searched: files cannot be read, or the expression is too complex for them]"


def _show_line(line: Line) -> str:
    where = f" [match at byte {line.column} of the line]" if line.column else ""
    return f"{line.number}{':' if line.matches else '-'} {visible(line.text)}{where}"
