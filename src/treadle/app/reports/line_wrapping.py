"""Lines for people, broken at blanks where the screen ends; what is piped stays as it is."""

import os
from typing import Protocol
from unicodedata import combining, east_asian_width

from treadle.protocol.patterns import regex

_FIRST_COLUMN = regex(r"\s*(?:[-*•>#~!?] |\d{1,3}[.)] |\w+: |\S+(?: \S+)*? {2,})?")
"""What the continuation of a line is indented by: a bullet, a label, the first column of a list."""

_FENCE = "```"
_VERBATIM = ("    ", "\t", "|")
"""How lines begin that are no prose: code, what a program wrote, tables."""


class Stream(Protocol):
    """A stream that may be a terminal."""

    def write(self, text: str, /) -> object:
        """Take text."""
        ...

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...

    def fileno(self) -> int:
        """Give its number."""
        ...


def harmless(text: str) -> str:
    """Escape what could steer a terminal, or whatever else reads our output as plain lines."""
    from treadle.workspace.files.text import visible

    return visible(text)


def write_wrapped(stream: Stream, text: str) -> None:
    """Write lines, broken at the width of the screen where the stream is one."""
    stream.write(f"{wrapped(text, screen_width(stream))}\n")


def screen_width(stream: Stream) -> int | None:
    """Give the width of the screen that a stream writes to, None where it is no terminal or does not say."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):
        return None


def wrapped(text: str, width: int | None) -> str:
    """Break the lines of a text that are longer than `width`; code, tables and long words stay whole."""
    if width is None:
        return text
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        if line.lstrip().startswith(_FENCE):
            is_code = not is_code
        keep = is_code or line.startswith(_VERBATIM) or columns(line) <= width
        lines += [line] if keep else _broken(line, width)
    return "\n".join(lines)


def columns(text: str) -> int:
    """Give how many columns of a screen a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def shortened(text: str, width: int) -> str:
    """Cut a text to so many columns, with a mark where it was cut."""
    if columns(text) <= width:
        return text
    while text and columns(text) > width - 1:
        text = text[:-1]
    return f"{text.rstrip()}…"


def shortened_front(text: str, width: int) -> str:
    """Cut a text at its front, as folders differ at their end."""
    return shortened(text[::-1], width)[::-1]


def _broken(line: str, width: int) -> list[str]:
    found = _FIRST_COLUMN.match(line)
    first = found[0] if found is not None else ""
    if columns(first) > width // 2:
        first = line[: len(line) - len(line.lstrip())]
    indent = " " * columns(first)
    lines = [first]
    for word in line[len(first) :].split(" "):
        if lines[-1].strip() and columns(lines[-1]) + columns(word) + 1 > width and lines[-1] != first:
            lines.append(indent + word)
        else:
            lines[-1] += word if lines[-1] == first else f" {word}"
    return [one.rstrip() for one in lines]
