"""What ripgrep is asked for lines that match, and what it answers."""

import os
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from treadle.protocol.errors import ToolError

_LINE = re.compile(rb"(?P<path>[^\0]*)\0(?P<number>\d+)(?:(?P<mark>:)(?P<column>\d+):|-)(?P<text>.*)", re.DOTALL)
_SEPARATOR = b"--"
_BINARY = re.compile(rb'binary file (matches|after match) \(found "\\0" byte')
_OVER_LINES = re.compile(r"(?<!\\)(?:\\\\)*\\n|\n|\(\?[a-zA-Z]*s[a-zA-Z]*[-:)]|\[\\s\\S\]|\[\\S\\s\]")
_WIDTH = 300


class Line(Struct, frozen=True):
    """A line of a file, or its beginning; `matches` tells a match from its context, `column` where it begins.

    Columns are bytes, counted from 1, and 0 where the match is among what is shown.
    """

    number: int
    text: str
    matches: bool
    column: int = 0


class FoundIn(Struct, frozen=True):
    """What was found in one file, in blocks of consecutive lines; `path` is absolute."""

    path: str
    blocks: tuple[tuple[Line, ...], ...]


class Query(Struct, frozen=True, kw_only=True):
    """What to search: a regular expression under `path`, in files that match the glob `pattern` if there is one.

    Several globs are parted by commas.
    """

    path: str
    regex: str
    pattern: str = ""
    context: int = 1
    limit: int = 300


class Matches(Struct, frozen=True, kw_only=True):
    """What was found, by path; `more` when there is more than the limit.

    `binary` says that there are matches in binary files, which are not here; `unread`, that files could not be read
    or that the expression was too complex for them.
    """

    files: tuple[FoundIn, ...]
    more: bool = False
    binary: bool = False
    unread: bool = False


def options_of(query: Query) -> list[str]:
    """Put a query into options. Raises `ToolError` for what no program can be given."""
    for what, given in (("expression", query.regex), ("pattern", query.pattern)):
        if "\0" in given or not _can_be_sent(given):
            raise ToolError(f"The {what} holds a character that cannot be searched for. Write it without.")
    options = ["--null", "--line-number", "--column", "--with-filename", "--no-heading", "--color=never"]
    options += [f"--context={query.context}", f"--max-columns={_WIDTH}", "--max-columns-preview"]
    options += [f"--glob={glob}" for glob in globs_of(query.pattern)]
    # Mapped, since a whole file must lie in memory then.
    options += ["--multiline", "--mmap"] if _OVER_LINES.search(query.regex) else []
    return [*options, f"--regexp={query.regex}"]


def _can_be_sent(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def globs_of(pattern: str) -> Iterator[str]:
    """Part globs at the commas that stand outside of braces and brackets."""
    depth, begin = 0, 0
    for at, character in enumerate(f"{pattern},"):
        depth += (character in "{[") - (character in "}]")
        if character == "," and (depth <= 0 or at == len(pattern)):
            if glob := pattern[begin:at].strip():
                yield glob
            begin = at + 1


class Gathered:
    """Takes line after line of the answer until there are more matches than `limit`; leaves out what `is_closed`."""

    def __init__(self, limit: int, is_closed: Callable[[str], bool]) -> None:
        self._limit = limit
        self._is_closed = is_closed
        self._files: dict[bytes, list[list[Line]]] = {}
        self._closed: dict[bytes, bool] = {}
        self._fresh = True
        self._count = 0
        self._binary = False

    @property
    def is_full(self) -> bool:
        """Whether there are more matches than the limit."""
        return self._count > self._limit

    def add(self, raw: bytes) -> None:
        """Take a line."""
        found = _LINE.fullmatch(raw.rstrip(b"\r\n"))
        if found is None:
            self._fresh = self._fresh or raw.startswith(_SEPARATOR)
            self._binary = self._binary or _BINARY.search(raw) is not None
            return
        path = found["path"]
        if path not in self._closed:
            self._closed[path] = self._is_closed(os.fsdecode(path))
        if self._closed[path]:
            return
        self._count += found["mark"] is not None
        if self.is_full:
            return
        blocks = self._files.setdefault(path, [])
        if self._fresh or not blocks:
            blocks.append([])
            self._fresh = False
        blocks[-1].append(_line(found))

    def matches(self, absolute: Callable[[str], str], *, unread: bool) -> Matches:
        """Give what was taken; `absolute` makes a path of the answer absolute."""
        files = (
            FoundIn(absolute(os.fsdecode(path)), tuple(map(tuple, blocks)))
            for path, blocks in sorted(self._files.items())
        )
        return Matches(files=tuple(files), more=self.is_full, binary=self._binary, unread=unread)


def _line(found: re.Match[bytes]) -> Line:
    text = found["text"].decode("utf-8", errors="replace")
    column = int(found["column"] or 0)
    return Line(int(found["number"]), text, found["mark"] is not None, column if column > _WIDTH else 0)


def why_failed(complaint: str) -> str:
    """Say in a sentence what a search program complains about."""
    told = [line.removeprefix("error: ") for line in complaint.splitlines() if line.startswith("error: ")]
    if "regex" not in complaint or not told:
        return complaint.rstrip(".")
    second = re.search(r"PCRE2: error compiling pattern at offset (\d+): (.+)", complaint)
    where = f"; to PCRE2, which has look-around, at character {second[1]}: {second[2]}" if second else ""
    return f"the expression is not valid: {told[0].rstrip('.')}{where}"
