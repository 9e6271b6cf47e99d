"""Reading texts page by page, in bounded memory whatever their size."""

import io
import os
from collections.abc import Iterator
from itertools import islice
from typing import TextIO

from msgspec import Struct

from treadle.workspace.files.encodings import detect
from treadle.workspace.files.judged import JudgedPath
from treadle.workspace.files.text import first_escape, size_of, visible
from treadle.workspace.files.text_files import MAX_WHOLE, decode, open_regular, reading

_SAMPLE = 64 * 1024
_NUMBER = 8
"""Bytes about, of a line's number and end."""


class PageLimits(Struct, frozen=True, kw_only=True):
    """How much of a file is read at once: lines, bytes (UTF-8, as it is shown) in all, and characters of one line."""

    lines: int = 2000
    size: int = 50_000
    width: int = 2000


_USUAL = PageLimits()


class Page(Struct, frozen=True, kw_only=True):
    """Consecutive lines of a file as they are shown, without their ends, the first one numbered `first` (from 1).

    `total` counts the file's lines; None when there are more and the file is too large to count. `digest` is empty
    for such a file. `escape` is the first escape that stands for a control character on it, such as `\\x0c`.
    """

    lines: tuple[str, ...]
    first: int
    total: int | None
    encoding: str
    digest: str
    escape: str = ""

    @property
    def last(self) -> int:
        """The number of the last line of the page."""
        return self.first + len(self.lines) - 1


def read_page(path: str | JudgedPath, name: str, *, first: int = 1, limits: PageLimits = _USUAL) -> Page:
    """Read lines of a file from number `first` on. Raises `ToolError`, calling the file `name`."""
    with open_regular(path, name) as file, reading(name):
        if os.fstat(file.fileno()).st_size <= MAX_WHOLE:
            read = decode(file.read(MAX_WHOLE), name)
            return page_of(read.text, read.digest, encoding=read.encoding, first=first, limits=limits)
        read_as = detect(file.read(_SAMPLE), name)
        file.seek(len(read_as.mark))
        with io.TextIOWrapper(file, encoding=read_as.name, errors="replace", newline="\n") as text:
            pieces = _pieces(text, limits.width)
            before = sum(1 for _ in islice(pieces, first - 1))
            chosen, held, escape = _take(pieces, limits)
    total = None if held else before + len(chosen)
    return Page(lines=chosen, first=first, total=total, encoding=read_as.name, digest="", escape=escape)


def page_of(text: str, digest: str, *, encoding: str = "utf-8", first: int = 1, limits: PageLimits = _USUAL) -> Page:
    """Take lines from number `first` on of a text that comes from a file with this digest."""
    lines = text.removesuffix("\n").split("\n") if text else []
    wanted = islice(lines, first - 1, first + limits.lines)
    chosen, _, escape = _take(((line.removesuffix("\r"), 0) for line in wanted), limits)
    return Page(lines=chosen, first=first, total=len(lines), encoding=encoding, digest=digest, escape=escape)


def _take(lines: Iterator[tuple[str, int]], limits: PageLimits) -> tuple[tuple[str, ...], bool, str]:
    """Take the lines of a page, each with how many characters of it are not here.

    Tells whether there are more, and the first escape of a control character.
    """
    chosen: list[str] = []
    escape = ""
    room = limits.size
    for line, left_out in lines:
        kept = line[: min(limits.width, max(room, 1))] if not chosen else line[: limits.width]
        shown, missing = visible(kept), len(line) - len(kept) + left_out
        room -= size_of(shown) + _NUMBER
        if len(chosen) == limits.lines or (chosen and room < 0):
            return tuple(chosen), True, escape
        escape = escape or (first_escape(kept) if shown != kept else "")
        chosen.append(f"{shown} [... {missing:,} more characters in this line]" if missing else shown)
    return tuple(chosen), False, escape


def _pieces(text: TextIO, width: int) -> Iterator[tuple[str, int]]:
    """Give line after line, as much of it as is shown, and count the rest."""
    while piece := text.readline(width + 2):
        line = piece.rstrip("\n").removesuffix("\r")
        left_out = 0
        while not piece.endswith("\n") and (piece := text.readline(_SAMPLE)):
            left_out += len(piece.rstrip("\r\n"))
        yield line, left_out
