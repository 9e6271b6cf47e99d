"""Finding lines and files with ripgrep, or with `scan.py` where there is none; both can be stopped at any moment."""

import asyncio
import contextlib
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.workspace import scan
from treadle.workspace.programs import program, stream

_LINE = re.compile(rb"(?P<path>[^\0]*)\0(?P<number>\d+)(?P<mark>[:-])(?P<text>.*)", re.DOTALL)
_SEPARATOR = b"--"
_WIDTH = 300
IGNORE_FILES = (".treadleignore", ".agentignore", ".clineignore", ".aiderignore")
"""Besides `.gitignore` and `.ignore`, in the root of a workspace: patterns of what is not listed and not searched."""

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


def no_secrets(path: str) -> bool:  # noqa: ARG001 - no path is one
    """Take no file for a secret."""
    return False


class Search(Struct, frozen=True, kw_only=True):
    """Searches of one workspace, whose folders are `roots` (none lies in another).

    Nothing is told of files below the searched directory that `is_secret`, nor of those with another name that may be
    anywhere (a hard link): to read such a file is a question of its own.
    """

    ripgrep: str
    is_secret: Callable[[str], bool] = no_secrets
    roots: tuple[str, ...] = ()

    async def lines(self, query: Query) -> tuple[tuple[FoundIn, ...], bool]:
        """Find matching lines, by path; the second value says whether there are more than the limit.

        Raises `ToolError` for an invalid regular expression or glob, and for a path that cannot be read.
        """
        options = ["--null", "--line-number", "--with-filename", "--no-heading", "--color=never"]
        options += [f"--context={query.context}", f"--max-columns={_WIDTH}", "--max-columns-preview"]
        options += [f"--glob={query.pattern}"] if query.pattern else []
        files: dict[bytes, list[list[Line]]] = {}
        judged: dict[bytes, bool] = {}
        matches = 0
        async with contextlib.aclosing(self._run([*options, f"--regexp={query.regex}"], query.path, b"\n")) as lines:
            fresh = True
            async for raw in _each(lines):
                found = _LINE.fullmatch(raw.rstrip(b"\r\n"))
                if found is None:
                    fresh = fresh or raw.startswith(_SEPARATOR)
                    continue
                if self._is_closed(found["path"], query.path, judged):
                    continue
                matches += found["mark"] == b":"
                if matches > query.limit:
                    break
                blocks = files.setdefault(found["path"], [])
                if fresh or not blocks:
                    blocks.append([])
                    fresh = False
                blocks[-1].append(_line(found))
        founds = (
            FoundIn(self._absolute(os.fsdecode(path), query.path), tuple(map(tuple, blocks)))
            for path, blocks in sorted(files.items())
        )
        return tuple(founds), matches > query.limit

    def _is_closed(self, path: bytes, searched: str, judged: dict[bytes, bool]) -> bool:
        """Whether a file must not be read through a search; the path that is searched was judged itself."""
        if path not in judged:
            found = self._absolute(os.fsdecode(path), searched)
            below = os.path.relpath(found, searched)
            judged[path] = below != "." and (self.is_secret(below) or _has_other_names(found))
        return judged[path]

    async def files(self, path: str, limit: int) -> Listing:
        """List the files below a directory and their directories, breadth first; ignore files are honoured."""
        prefix = self._place(path)[1].rstrip("/") + "/"
        first = Shallowest(limit)
        async with contextlib.aclosing(self._run(["--files", "--null"], path, b"\0")) as found:
            async for some in found:
                # Decoded all at once: of a large tree this is what takes time.
                names = os.fsdecode(b"\0".join(some)).split("\0") if some else []
                first.add([name.removeprefix(prefix) for name in names])
        return first.listing()

    def _place(self, path: str) -> tuple[str | None, str]:
        """Give the directory to search from and the path as seen from there: patterns are relative to the root."""
        root = self._root_of(path)
        if not root:
            return None, path
        below = os.path.relpath(path, root)
        return root, "." if below == "." else f"./{below}"

    def _root_of(self, path: str) -> str:
        return next((root for root in self.roots if Path(path).is_relative_to(root)), "")

    def _absolute(self, path: str, searched: str) -> str:
        return path if path.startswith("/") else os.path.normpath(f"{self._root_of(searched)}/{path}")

    def _ignoring(self, path: str) -> list[str]:
        root = self._root_of(path) or next(iter(self.roots), "")
        names = (f"{root}/{name}" for name in IGNORE_FILES) if root else ()
        return [f"--ignore-file={name}" for name in names if Path(name).is_file()]

    async def _run(self, options: Sequence[str], path: str, end: bytes) -> AsyncGenerator[list[bytes], None]:
        command = (self.ripgrep, "--no-config", "--no-messages", "--engine=auto") if self.ripgrep else _FALLBACK
        cwd, place = self._place(path)
        argv = (*command, *options, *self._ignoring(path), "--", place)
        try:
            async with program(*argv, cwd=cwd) as process, asyncio.timeout(_TIME_LIMIT):
                async for items in _items(stream(process.stdout), end):
                    yield items
                complaint = (await stream(process.stderr).read(4096)).decode(errors="replace").strip()
        except TimeoutError:
            raise ToolError(f"The search took longer than {_TIME_LIMIT:.0f} s. Narrow the path or pattern.") from None
        if complaint:
            raise ToolError(f"The search failed: {complaint.rstrip('.')}. Mend the expression or the pattern.")


def _has_other_names(path: str) -> bool:
    try:
        return os.lstat(path).st_nlink > 1
    except OSError:
        return True


_FALLBACK = (sys.executable, "-I", "-S", scan.__file__)


async def _items(pipe: asyncio.StreamReader, end: bytes) -> AsyncIterator[list[bytes]]:
    """Cut a stream at `end`, and give what is there as it comes."""
    rest = b""
    while data := await pipe.read(_CHUNK):
        *items, rest = (rest + data).split(end)
        yield items
    if rest:
        yield [rest]


async def _each(batches: AsyncIterator[list[bytes]]) -> AsyncIterator[bytes]:
    async for items in batches:
        for item in items:
            yield item


class Shallowest:
    """Of any number of paths the first ones by depth and then name, with every directory that they lie in.

    Memory depends on `limit` alone. Directories are marked by a slash.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: set[str] = set()
        self._slack = _SLACK
        self._deepest = 0
        self._more = False

    def add(self, names: Sequence[str]) -> None:
        """Take files by their paths."""
        directories = {name.rpartition("/")[0] for name in names}
        near = {directory for directory in directories if self._is_near(f"{directory}/" if directory else "")}
        if len(near) == len(directories):
            self._entries.update(names)
        elif near:
            self._entries.update(name for name in names if name.rpartition("/")[0] in near)
        for directory in directories:
            self._add_directory(directory)
        if len(self._entries) > 4 * self._limit + self._slack:
            self._more = True
            kept = self._ordered()
            self._entries = set(kept)
            self._deepest = _depth_and_name(kept[-1])[0]

    def _is_near(self, beginning: str) -> bool:
        """Whether what is directly below a beginning of paths may still be among the first."""
        return not self._more or beginning.count("/") <= self._deepest

    def _add_directory(self, directory: str) -> None:
        """Take a directory and those that it lies in; where one is, those around it are."""
        while directory and f"{directory}/" not in self._entries:
            if self._is_near(directory):
                self._entries.add(f"{directory}/")
            directory = directory.rpartition("/")[0]

    def listing(self) -> Listing:
        """Give what was kept."""
        more = self._more or len(self._entries) > self._limit
        return Listing(entries=tuple(self._ordered()), more=more)

    def _ordered(self) -> list[str]:
        return sorted(self._entries, key=_depth_and_name)[: self._limit]


_SLACK = 4_000


def _depth_and_name(entry: str) -> tuple[int, str]:
    return entry.rstrip("/").count("/"), entry


def _line(found: re.Match[bytes]) -> Line:
    text = found["text"].decode("utf-8", errors="replace")
    return Line(int(found["number"]), text, found["mark"] == b":")
