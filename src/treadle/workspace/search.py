"""Finding lines and files with ripgrep, or with `scan.py` where there is none; both can be stopped at any moment."""

import asyncio
import contextlib
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.workspace import scan
from treadle.workspace.programs import program, stream

_LINE = re.compile(rb"(?P<path>[^\0]*)\0(?P<number>\d+)(?P<mark>[:-])(?P<text>.*)", re.DOTALL)
_SEPARATOR = b"--"
_WIDTH = 300
_FILES_AT_MOST = 50_000
_TIME_LIMIT = 30.0
_CHUNK = 1024 * 1024


def find_ripgrep(variables: Mapping[str, str]) -> str:
    """Find ripgrep: `TREADLE_RG`, then `PATH`, then the program installed beside Python; empty when there is none."""
    if named := variables.get("TREADLE_RG"):
        return shutil.which(named) or ""
    if found := shutil.which("rg", path=variables.get("PATH")):
        return found
    for directory in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if found := shutil.which("rg", path=str(directory)):
            return found
    return ""


class Line(Struct, frozen=True):
    """A line of a file; `matches` tells a match from its context."""

    number: int
    text: str
    matches: bool


class FoundIn(Struct, frozen=True):
    """What was found in one file, in blocks of consecutive lines; `path` is absolute."""

    path: str
    blocks: tuple[tuple[Line, ...], ...]


class Query(Struct, frozen=True, kw_only=True):
    """What to search: a regular expression under `path`, in files that match the glob `pattern` if there is one."""

    path: str
    regex: str
    pattern: str = ""
    context: int = 1
    limit: int = 300


class Listing(Struct, frozen=True, kw_only=True):
    """Paths relative to the directory listed, directories with a slash; `more` when not all are here."""

    entries: tuple[str, ...]
    more: bool


class Search(Struct, frozen=True, kw_only=True):
    """Searches of one workspace. Files that match a glob of `hidden` are never searched."""

    ripgrep: str
    hidden: tuple[str, ...] = ()

    async def lines(self, query: Query) -> tuple[tuple[FoundIn, ...], bool]:
        """Find matching lines, by path; the second value says whether there are more than the limit.

        Raises `ToolError` for an invalid regular expression or glob, and for a path that cannot be read.
        """
        options = ["--null", "--line-number", "--with-filename", "--no-heading", "--color=never"]
        options += [f"--context={query.context}", f"--max-columns={_WIDTH}", "--max-columns-preview"]
        options += [f"--glob={query.pattern}"] if query.pattern else []
        files: dict[bytes, list[list[Line]]] = {}
        matches = 0
        async with contextlib.aclosing(self._run([*options, f"--regexp={query.regex}"], query.path, b"\n")) as lines:
            fresh = True
            async for raw in lines:
                found = _LINE.fullmatch(raw.rstrip(b"\r\n"))
                if found is None:
                    fresh = fresh or raw.startswith(_SEPARATOR)
                    continue
                matches += found["mark"] == b":"
                if matches > query.limit:
                    break
                blocks = files.setdefault(found["path"], [])
                if fresh or not blocks:
                    blocks.append([])
                    fresh = False
                blocks[-1].append(_line(found))
        founds = (FoundIn(os.fsdecode(path), tuple(map(tuple, blocks))) for path, blocks in sorted(files.items()))
        return tuple(founds), matches > query.limit

    async def files(self, path: str, limit: int) -> Listing:
        """List the files below a directory and their directories, breadth first; ignore files are honoured."""
        prefix = os.fsencode(path).rstrip(b"/") + b"/"
        names: list[str] = []
        async with contextlib.aclosing(self._run(["--files", "--null"], path, b"\0")) as found:
            async for raw in found:
                names.append(os.fsdecode(raw.removeprefix(prefix)))
                if len(names) == _FILES_AT_MOST:
                    break
        ordered = _breadth_first(names)
        return Listing(entries=tuple(ordered[:limit]), more=len(names) == _FILES_AT_MOST or len(ordered) > limit)

    async def _run(self, options: Sequence[str], path: str, end: bytes) -> AsyncGenerator[bytes, None]:
        command = (self.ripgrep, "--no-config", "--no-messages", "--engine=auto") if self.ripgrep else _FALLBACK
        excluded = [f"--glob=!{glob}" for glob in self.hidden]
        try:
            async with program(*command, *options, *excluded, "--", path) as process, asyncio.timeout(_TIME_LIMIT):
                async for item in _items(stream(process.stdout), end):
                    yield item
                complaint = (await stream(process.stderr).read(4096)).decode(errors="replace").strip()
        except TimeoutError:
            raise ToolError(f"The search took longer than {_TIME_LIMIT:.0f} s. Narrow the path or pattern.") from None
        if complaint:
            raise ToolError(f"The search failed: {complaint}")


_FALLBACK = (sys.executable, "-I", "-S", scan.__file__)


async def _items(pipe: asyncio.StreamReader, end: bytes) -> AsyncIterator[bytes]:
    """Cut a stream at `end`."""
    rest = b""
    while data := await pipe.read(_CHUNK):
        *items, rest = (rest + data).split(end)
        for item in items:
            yield item
    if rest:
        yield rest


def _breadth_first(names: Iterable[str]) -> list[str]:
    """Order paths by depth and then name, with every directory that they lie in, marked by a slash."""
    entries = set(names)
    for name in tuple(entries):
        directory = name.rpartition("/")[0]
        while directory and f"{directory}/" not in entries:
            entries.add(f"{directory}/")
            directory = directory.rpartition("/")[0]
    return sorted(entries, key=lambda entry: (entry.rstrip("/").count("/"), entry))


def _line(found: re.Match[bytes]) -> Line:
    text = found["text"].decode("utf-8", errors="replace")
    return Line(int(found["number"]), text, found["mark"] == b":")
