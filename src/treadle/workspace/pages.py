"""Reading texts page by page, in bounded memory whatever their size."""

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TextIO

from treadle.workspace.encodings import detect
from treadle.workspace.files import MAX_WHOLE, open_regular, sha256

_SAMPLE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """How much of a file is read at once: lines, characters in all, and characters of one line."""

    lines: int = 2000
    characters: int = 128 * 1024
    width: int = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Consecutive lines of a file without their ends, the first one numbered `first` (from 1).

    `total` counts the file's lines; None when there are more and the file is too large to count. `digest` is empty
    for such a file.
    """

    lines: tuple[str, ...]
    first: int
    total: int | None
    encoding: str
    digest: str

    @property
    def last(self) -> int:
        """The number of the last line of the page."""
        return self.first + len(self.lines) - 1


def read_page(path: str, name: str, *, first: int = 1, limits: PageLimits = PageLimits()) -> Page:
    """Read lines of a file from number `first` on. Raises `ToolError`, calling the file `name`."""
    with open_regular(path, name) as file:
        whole = os.fstat(file.fileno()).st_size <= MAX_WHOLE
        sample = file.read(MAX_WHOLE if whole else _SAMPLE)
        mark, encoding = detect(sample, name)
        file.seek(len(mark))
        with io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="\n") as text:
            lines, total = _page(text, first, limits, count=whole)
    return Page(lines=lines, first=first, total=total, encoding=encoding, digest=sha256(sample) if whole else "")


def page_of(text: str, digest: str, *, first: int = 1, limits: PageLimits = PageLimits()) -> Page:
    """Take lines from number `first` on of a text that was taken from a file with this digest."""
    lines, total = _page(io.StringIO(text), first, limits, count=True)
    return Page(lines=lines, first=first, total=total, encoding="utf-8", digest=digest)


def _page(text: TextIO, first: int, limits: PageLimits, *, count: bool) -> tuple[tuple[str, ...], int | None]:
    """Take the lines of a page, and the number of all lines: None where there are more that need no counting."""
    lines = _lines(text, limits.width)
    before = sum(1 for _ in islice(lines, first - 1))
    chosen, held = _take(lines, limits)
    if not held:
        return tuple(chosen), before + len(chosen)
    return tuple(chosen), before + len(chosen) + 1 + sum(1 for _ in lines) if count else None


def _take(lines: Iterator[str], limits: PageLimits) -> tuple[list[str], bool]:
    """Take the lines of a page, and tell whether one more was taken than fits."""
    chosen: list[str] = []
    used = 0
    for line in lines:
        used += len(line)
        if len(chosen) == limits.lines or (chosen and used > limits.characters):
            return chosen, True
        chosen.append(line)
    return chosen, False


def _lines(text: TextIO, width: int) -> Iterator[str]:
    """Give line after line, cut at `width` characters with a note of what was left out."""
    while piece := text.readline(width + 2):
        line = piece.rstrip("\n").removesuffix("\r")
        left_out = max(0, len(line) - width)
        while not piece.endswith("\n") and (piece := text.readline(_SAMPLE)):
            left_out += len(piece.rstrip("\r\n"))
        yield f"{line[:width]} [... {left_out:,} more characters in this line]" if left_out else line
