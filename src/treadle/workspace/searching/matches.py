"""What ripgrep is asked for lines that match, and what it answers."""

import os
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex

_LINE = rb"(?P<path>[^\0]*)\0(?P<number>\d+)(?:(?P<mark>:)%s|-)(?P<text>.*)"
_WITH_COLUMN = regex(_LINE % rb"(?P<column>\d+):", re.DOTALL)
_WITHOUT_COLUMN = regex(_LINE % rb"(?P<column>)", re.DOTALL)
_SEPARATOR = b"\0"
"""Between blocks: unlike a beginning of a name that goes on in the next line."""
_BINARY = regex(rb'binary file (matches|after match) \(found "\\0" byte')
_OVER_LINES = regex(r"(?<!\\)(?:\\\\)*\\n|\n|\(\?[a-zA-Z]*s[a-zA-Z]*[-:)]|\[\\s\\S\]|\[\\S\\s\]")
_WIDTH = 300
_MOST_COUNTED = 10_000


class MatchLine(Struct, frozen=True):
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
    blocks: tuple[tuple[MatchLine, ...], ...]


class Query(Struct, frozen=True, kw_only=True):
    """What to search: a regular expression under `path`, in files that match the glob `pattern` if there is one.

    Several globs are parted by commas. A `frugal` one takes little memory whatever the lines are, and knows no columns.
    """

    path: str
    regex: str
    pattern: str = ""
    context: int = 0
    limit: int = 300
    frugal: bool = False


class Matches(Struct, frozen=True, kw_only=True):
    """What was found, by path: the first matches up to the limit. `count` of them are in `in_files` files.

    With `more` counting was given up. `binary` says that there are matches in binary files, which are not here;
    `unread`, that files could not be read or that the expression was too complex for them.
    """

    files: tuple[FoundIn, ...]
    count: int = 0
    in_files: int = 0
    more: bool = False
    binary: bool = False
    unread: bool = False


def options_of(query: Query, written: str = "") -> list[str]:
    """Put a query into options. Raises `ToolError` for what no program can be given.

    `written` is the expression in another syntax, for a program that knows only that.
    """
    for what, given in (("expression", query.regex), ("pattern", query.pattern)):
        if "\0" in given or not _can_be_sent(given):
            raise ToolError(f"The {what} has a character that cannot be searched for. Write it without.")
    options = ["--null", "--line-number", "--with-filename", "--no-heading", "--color=never"]
    options += [
        f"--context={query.context}",
        r"--context-separator=\x00",
        f"--max-columns={_WIDTH}",
        "--max-columns-preview",
    ]
    options += [f"--glob={glob}" for glob in globs_of(query.pattern)]
    over_lines = _OVER_LINES.search(query.regex) is not None
    options += ["--multiline"] if over_lines else []
    # Mapped: otherwise a whole line, and over lines a whole file, is copied; and with columns all places of a line are.
    options += ["--mmap"] if over_lines or query.frugal else []
    options += [] if query.frugal else ["--column"]
    return [*options, f"--regexp={written or query.regex}"]


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
    """Takes line after line of the answer, keeps matches up to the limit and counts the others.

    What `is_closed` is left out.
    """

    def __init__(self, query: Query, is_closed: Callable[[str], bool]) -> None:
        self._limit = query.limit
        self._line = _WITHOUT_COLUMN if query.frugal else _WITH_COLUMN
        self._is_closed = is_closed
        self._files: dict[bytes, list[list[MatchLine]]] = {}
        self._closed: dict[bytes, bool] = {}
        self._name = b""
        self._fresh = True
        self._count = 0
        self._binary = False

    @property
    def is_full(self) -> bool:
        """Whether there are so many matches that their number says no more."""
        return self._count > _MOST_COUNTED

    def add(self, raw: bytes) -> None:
        """Take a line."""
        found = self._line.fullmatch(self._name + raw.rstrip(b"\r\n"))
        if found is None:
            self._take_other(raw)
            return
        self._name = b""
        path = found["path"]
        if path not in self._closed:
            self._closed[path] = self._is_closed(os.fsdecode(path))
        if not self._closed[path]:
            self._take(path, found)

    def _take_other(self, raw: bytes) -> None:
        """Take a separator, a word on a binary file, or the beginning of a name that holds a line feed."""
        if raw == _SEPARATOR:
            self._fresh = True
        elif _BINARY.search(raw):
            self._binary = True
        elif b"\0" not in raw:
            self._name += raw + b"\n"
            return
        self._name = b""

    def _take(self, path: bytes, found: re.Match[bytes]) -> None:
        self._count += found["mark"] is not None
        if self._count > self._limit:
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
        in_files = sum(not closed for closed in self._closed.values())
        return Matches(
            files=tuple(files),
            count=self._count,
            in_files=in_files,
            more=self.is_full,
            binary=self._binary,
            unread=unread,
        )


def _line(found: re.Match[bytes]) -> MatchLine:
    text = found["text"].decode("utf-8", errors="replace")
    column = int(found["column"] or 0)
    return MatchLine(int(found["number"]), text, found["mark"] is not None, column if column > _WIDTH else 0)


def why_failed(complaint: str) -> str:
    """Say in a sentence what a search program complains about."""
    complaints = [line.removeprefix("error: ") for line in complaint.splitlines() if line.startswith("error: ")]
    if "regex" not in complaint or not complaints:
        return complaint.rstrip(".")
    second = re.search(r"PCRE2: error compiling pattern at offset (\d+): (.+)", complaint)
    where = f"; to PCRE2, which has look-around, at character {second[1]}: {second[2]}" if second else ""
    return f"the expression is not valid: {complaints[0].rstrip('.')}{where}"
