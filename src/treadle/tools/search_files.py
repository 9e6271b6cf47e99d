"""search_files: lines that match a regular expression."""

import asyncio
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
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
from treadle.tools.declarations import SEARCH_FILES
from treadle.tools.quoted_words import result_of
from treadle.workspace.files.judged import JudgedPath, judge_path
from treadle.workspace.files.text import size_of, visible
from treadle.workspace.files.text_files import missing
from treadle.workspace.searching.matches import FoundIn, Matches, MatchLine, Query
from treadle.workspace.workspace import Workspace

_MATCHES = 300
_BYTES = 16_000


class SearchFiles(Struct, frozen=True):
    """Searches files with ripgrep."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return SEARCH_FILES

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name what is searched; the run searches, after it was judged."""
        place = judge_path(self.workspace.paths.locate(arguments["path"]))
        query = Query(
            path=place.resolved,
            regex=arguments["regex"],
            pattern=arguments.get("file_pattern", ""),
            context=arguments.get("context_lines", 0),
            limit=_MATCHES,
        )
        name = self.workspace.paths.display(place.asked)
        return Prepared(
            accesses=place.accesses(),
            preview=Preview(title=f"Search {name}", text=query.regex),
            run=partial(self._search, place, query, name),
        )

    async def _search(self, place: JudgedPath, query: Query, name: str, output: Output) -> CallResult:  # noqa: ARG002
        await asyncio.to_thread(_check, query.path, name)
        with place.unchanged(name):
            found = await self.workspace.search.lines(query)
        if not found.files:
            said = [await self._nothing(query, name), *_notes(found)]
            return result_of(Origin.WORKSPACE, Outcome.OK, "\n".join(said))
        room = min(_BYTES, self.workspace.conversation.room())
        lines, shown, in_files = _fitting(map(self._show, found.files), room)
        said = [*lines, f"\n[{_count(found, shown, in_files)}]", *_notes(found)]
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

    def _show(self, found: FoundIn) -> tuple[str, Iterator[tuple[str, bool]]]:
        """Give a file's name and its lines, each with whether it matches."""
        blocks = ([(_show_line(line), line.matches) for line in block] for block in found.blocks)
        first, *others = blocks
        lines = chain(first, *([("...", False), *block] for block in others))
        return self.workspace.paths.display(found.path), lines


def _fitting(files: Iterable[tuple[str, Iterable[tuple[str, bool]]]], room: int) -> tuple[list[str], int, int]:
    """Take lines while they fit; also count the matches among them, and the files."""
    kept: list[str] = []
    shown = in_files = 0
    for name, lines in files:
        title = f"\n{name}" if kept else name
        room -= size_of(title) + 1
        for line, matches in lines:
            room -= size_of(line) + 1
            if room < 0 and kept:
                return kept, shown, in_files
            if title:
                kept.append(title)
                title = ""
                in_files += 1
            kept.append(line)
            shown += matches
    return kept, shown, in_files


def _count(found: Matches, shown: int, in_files: int) -> str:
    """Say how many matches there are, and what to do when not all of them are shown."""
    if shown == found.count and not found.more:
        return f"{found.count} match{'' if found.count == 1 else 'es'} in {found.in_files} file{_s(found.in_files)}"
    total = f"more than {found.count - 1:,} matches" if found.more else f"{found.count:,} matches"
    return (
        f"{shown} of {total} shown, from {in_files} of {found.in_files:,} file{_s(found.in_files)}; "
        "narrow the path, file_pattern or regex to see the others"
    )


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _check(path: str, name: str) -> None:
    """Make sure that there is something to search; raises `ToolError`."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a loop of links is told here too
    except FileNotFoundError:
        raise ToolError(missing(path, name)) from None
    except OSError as error:
        raise ToolError(f"{name} cannot be searched: {error.strerror}. Use another path.") from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ToolError(f"{name} is a pipe, socket or device, not a file or directory. Continue without it.")


def _notes(found: Matches) -> Iterator[str]:
    if found.binary:
        yield "[a binary file matches too; its matches are not shown]"
    if found.unread:
        yield "[not everything was searched: files cannot be read, or the expression is too complex for them]"


def _show_line(line: MatchLine) -> str:
    where = f" [match at byte {line.column} of the line]" if line.column else ""
    return f"{line.number}{':' if line.matches else '-'} {visible(line.text)}{where}"
