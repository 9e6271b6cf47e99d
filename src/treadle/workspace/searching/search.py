"""Finding lines and files with ripgrep, or with `scan.py` where there is none; both can be stopped at any moment."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.workspace.commands.installed_programs import program, stream
from treadle.workspace.ignore.ignoring import Ignoring, ignore_files

if TYPE_CHECKING:
    from treadle.workspace.searching.matches import Gathered, Matches, Query

_MOST_PRUNED = 200
_TIME_LIMIT = 30.0
_LONGEST_SILENCE = 5.0
"""Seconds without a name after which ripgrep, which lists, is held by a pipe among the ignore files."""
_LIST = ("--files", "--null")
_NOT_ALL = 2
"""The exit status of a search that could not look at everything."""
_OUT_OF_MEMORY = -signal.SIGABRT
_MEMORY = 128 * 1024 * 1024
"""Bytes that the program may take besides what it maps: its buffer grows with the longest line."""
_CHUNK = 1024 * 1024


def find_ripgrep(variables: Mapping[str, str]) -> str:
    """Find ripgrep: `TREADLE_RG`, then `PATH`, then the program installed beside Python; empty when there is none."""
    if named := variables.get("TREADLE_RG"):
        return shutil.which(named) or ""
    if found := shutil.which("rg", path=variables.get("PATH")):
        return found
    return shutil.which("rg", path=str(Path(sys.executable).parent)) or _find_among_scripts()


def _find_among_scripts() -> str:
    """Look where Python puts programs, which is most often beside it."""
    import sysconfig

    return shutil.which("rg", path=sysconfig.get_path("scripts")) or ""


class Listing(Struct, frozen=True, kw_only=True):
    """Paths relative to the directory listed, directories with a slash; `more` when not all are here.

    `count` is about how many files there are, or entries of one directory. `unread` could not be looked into.
    """

    entries: tuple[str, ...]
    more: bool
    count: int = 0
    unread: tuple[str, ...] = ()


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

    async def lines(self, query: "Query") -> "Matches":
        """Find matching lines.

        Raises `ToolError` for an invalid regular expression or glob, and for a path that cannot be read.
        """
        status, found = await self._lines(query)
        if status == _OUT_OF_MEMORY:  # a line of a hundred million characters, or a place in it for each of them
            status, found = await self._lines(replace(query, frugal=True))
        return found.matches(lambda path: self._absolute(path, query.path), unread=status in (_NOT_ALL, _OUT_OF_MEMORY))

    async def _lines(self, query: "Query") -> "tuple[int, Gathered]":
        from treadle.workspace.searching.matches import Gathered, options_of

        options = ["--no-messages", *options_of(query, "" if self.ripgrep else await _in_python(query.regex))]
        ignoring = self._ignoring(query.path)
        is_listed = self._listed_below(query.path)
        gathered = Gathered(query, lambda path: self._is_closed(path, query.path, ignoring) or is_listed(path))
        ended = _Ended()
        async with contextlib.aclosing(self._run(options, ignoring, b"\n", ended)) as lines:
            async for raw in _each(lines):
                gathered.add(raw)
                if gathered.is_full:
                    break
        return ended.status, gathered

    def _listed_below(self, searched: str) -> Callable[[str], bool]:
        """Tell which files an ignore file keeps from being read; what is searched by its name was judged itself."""
        from treadle.workspace.ignore.access_lists import AccessLists

        lists = AccessLists(self.roots)
        if lists.reason(searched):
            return lambda _: False
        return lambda path: bool(lists.reason(self._absolute(path, searched)))

    def _is_closed(self, path: str, searched: str, ignoring: Ignoring) -> bool:
        """Whether a file is not shown by a search; the path that is searched was judged itself."""
        found = self._absolute(path, searched)
        below = os.path.relpath(found, searched)
        return below != "." and (self.is_secret(below) or ignoring.hides_file(below) or _has_other_names(found))

    async def files(self, path: str, limit: int) -> Listing:
        """List the files below a directory and their directories, breadth first; ignore files are honoured."""
        try:
            return await self._files(path, limit)
        except _HeldError:
            return await replace(self, ripgrep="").files(path, limit)

    async def _files(self, path: str, limit: int) -> Listing:
        prefix = self._place(path)[1].rstrip("/") + "/"
        ignoring = self._ignoring(path)
        first, ended = Shallowest(limit, ignoring), _Ended()
        async with contextlib.aclosing(self._run(_LIST, ignoring, b"\0", ended)) as found:
            async for some in found:
                # Decoded all at once: of a large tree this is what takes time.
                names = os.fsdecode(b"\0".join(some)).split("\0") if some else []
                first.add([name.removeprefix(prefix) for name in names])
        unread = tuple(name.removeprefix(prefix) for name in ended.unread)
        return replace(first.listing(), unread=tuple(name for name in unread if not ignoring.hides_file(name)))

    async def any_file(self, path: str, pattern: str) -> bool:
        """Whether any file that is searched below a directory matches a glob. Raises `ToolError`."""
        try:
            return await self._any_file(path, pattern)
        except _HeldError:
            return await replace(self, ripgrep="").any_file(path, pattern)

    async def _any_file(self, path: str, pattern: str) -> bool:
        from treadle.workspace.searching.matches import globs_of

        globs = [f"--glob={glob}" for glob in globs_of(pattern)]
        ignoring = self._ignoring(path)
        async with contextlib.aclosing(
            self._run([*_LIST, "--no-messages", *globs], ignoring, b"\0", _Ended())
        ) as found:
            async for some in found:
                if any(not self._is_closed(os.fsdecode(raw), path, ignoring) for raw in some):
                    return True
        return False

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

    def shown_in(self, directory: str, names: Sequence[str]) -> list[str]:
        """Choose those files directly in a directory that no ignore file hides."""
        base = self._root_of(directory) or directory
        ignoring = Ignoring(base, directory, ignore_files(base, git_is_known=False))
        is_listed = self._listed_below(directory)
        return [name for name in ignoring.shown_of(names, ("",)) if not is_listed(f"{directory}/{name}")]

    def _ignoring(self, path: str) -> Ignoring:
        base = self._root_of(path) or path
        return Ignoring(base, path, ignore_files(base, git_is_known=bool(self.ripgrep)))

    def _pruned(self, ignoring: Ignoring) -> list[str]:
        """Keep ripgrep out of directories that nobody sees; what it finds in deeper ones is left out later."""
        root, place = self._place(ignoring.shown)
        if root is None or not self.ripgrep:
            return []
        hidden = islice(filter(_can_be_glob, ignoring.hidden_at_top()), _MOST_PRUNED)
        return [f"--glob=!{_GLOB_SIGN.sub(_ESCAPED, f'{place[1:]}/{name}')}/" for name in hidden]

    async def _run(
        self, options: Sequence[str], ignoring: Ignoring, end: bytes, ended: "_Ended"
    ) -> AsyncGenerator[list[bytes], None]:
        """Run the program and give its answer as it comes, cut at `end`; `ended` takes how it went."""
        command = (self.ripgrep, "--no-config", "--no-ignore-messages", "--engine=auto") if self.ripgrep else _FALLBACK
        cwd, place = self._place(ignoring.shown)
        argv = (*command, *options, *self._pruned(ignoring), "--", place)
        try:
            async with program(*argv, cwd=cwd, memory=_MEMORY) as process, asyncio.timeout(_TIME_LIMIT):
                silence = _LONGEST_SILENCE if self.ripgrep and tuple(options[: len(_LIST)]) == _LIST else None
                async for items in _items(stream(process.stdout), end, silence):
                    yield items
                said = (await stream(process.stderr).read(_CHUNK)).decode(errors="replace")
                ended.status = await process.wait()
        except TimeoutError:
            raise ToolError(f"The search took longer than {_TIME_LIMIT:.0f} s. Narrow the path or pattern.") from None
        if not said:
            return
        ended.unread = tuple(_UNREAD.findall(said))
        complaint = _UNREAD.sub("", said).strip()
        if complaint and ended.status != _OUT_OF_MEMORY:
            from treadle.workspace.searching.matches import why_failed

            raise ToolError(f"The search failed: {why_failed(complaint)}. Correct the expression or the pattern.")


async def _in_python(expression: str) -> str:
    from treadle.workspace.searching.python_expressions import in_python

    return await asyncio.to_thread(in_python, expression)


class _Ended:
    """How a program ended: its exit status, and what it could not read."""

    def __init__(self) -> None:
        self.status = 0
        self.unread: tuple[str, ...] = ()


_UNREAD = regex(r"^rg: (.+): .+ \(os error \d+\)$", re.MULTILINE)
_GLOB_SIGN = regex(r"[*?\[\]{}\\!]")
_ESCAPED = r"\\\g<0>"


def _can_be_glob(name: str) -> bool:
    """Whether ripgrep takes a file's name as a pattern: it must be UTF-8."""
    return name.isascii() or not any("\udc80" <= character <= "\udcff" for character in name)


def _has_other_names(path: str) -> bool:
    try:
        return os.lstat(path).st_nlink > 1
    except OSError:
        return True


_FALLBACK = (sys.executable, "-I", "-S", "-W", "ignore", str(Path(__file__).with_name("scan.py")))


class _HeldError(Exception):
    """The program reads a file that never ends."""


async def _items(pipe: asyncio.StreamReader, end: bytes, silence: float | None) -> AsyncIterator[list[bytes]]:
    """Cut a stream at `end`, and give what is there as it comes. Raises `_HeldError` after `silence` (s)."""
    rest = b""
    while True:
        try:
            async with asyncio.timeout(silence):
                data = await pipe.read(_CHUNK)
        except TimeoutError:
            raise _HeldError from None
        if not data:
            break
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

    What is ignored is left out. Memory depends on `limit` alone. Directories are marked by a slash.
    """

    def __init__(self, limit: int, ignoring: Ignoring) -> None:
        self._limit = limit
        self._ignoring = ignoring
        self._entries: set[str] = set()
        self._slack = _SLACK
        self._last = (sys.maxsize, "")
        self._count = 0
        self._more = False

    def add(self, names: Sequence[str]) -> None:
        """Take files by their paths."""
        directories = {name.rpartition("/")[0] for name in names}
        seen = {directory for directory in directories if not self._ignoring.hides_directory(directory)}
        names = _in(names, seen, directories)
        self._count += len(names)
        near = {directory for directory in seen if self._is_near(f"{directory}/" if directory else "")}
        shown = self._ignoring.shown_of(_in(names, near, seen), near)
        self._entries.update(name for name in shown if _depth_and_name(name) < self._last)
        for directory in directories:
            self._add_directory(directory)
        if len(self._entries) > 4 * self._limit + self._slack:
            self._more = True
            kept = self._ordered()
            self._entries = set(kept)
            self._last = _depth_and_name(kept[-1])

    def _is_near(self, beginning: str) -> bool:
        """Whether what is directly below a beginning of paths may still be among the first."""
        return beginning.count("/") <= self._last[0]

    def _add_directory(self, directory: str) -> None:
        """Take a directory and those that it lies in; where one is, those around it are."""
        while directory and f"{directory}/" not in self._entries:
            if self._is_near(directory) and not self._ignoring.hides_directory(directory):
                self._entries.add(f"{directory}/")
            directory = directory.rpartition("/")[0]

    def listing(self) -> Listing:
        """Give what was kept."""
        more = self._more or len(self._entries) > self._limit
        return Listing(entries=tuple(self._ordered()), more=more, count=self._count)

    def _ordered(self) -> list[str]:
        return sorted(self._entries, key=_depth_and_name)[: self._limit]


def _in(names: Sequence[str], some: Collection[str], directories: Collection[str]) -> Sequence[str]:
    """Choose the paths that lie directly in some of their directories."""
    return names if len(some) == len(directories) else [name for name in names if name.rpartition("/")[0] in some]


_SLACK = 4_000


def _depth_and_name(entry: str) -> tuple[int, str]:
    return entry.rstrip("/").count("/"), entry
