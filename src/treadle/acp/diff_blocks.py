"""A unified diff as blocks with the old and the new text of each changed place."""

import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from treadle.acp.shapes import CallLocation, ToolContent
from treadle.protocol.patterns import regex

_HUNK = regex(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MOST_CHARACTERS = 1_000_000


class ChangedPlace(Struct, frozen=True):
    """One place of a file: its absolute path, its first line in the new text and in the old one, and both texts.

    A new file has no old text.
    """

    path: str
    line: int
    old: str | None
    new: str
    old_line: int = 1

    @property
    def block(self) -> ToolContent:
        """The place as content of a tool call."""
        old = {} if self.old is None else {"oldText": self.old}
        lines = {"oldLine": self.old_line, "newLine": self.line}
        return {"type": "diff", "path": self.path, **old, "newText": self.new, "_meta": {"treadle": lines}}

    @property
    def location(self) -> CallLocation:
        """Where it is."""
        return CallLocation(path=self.path, line=self.line)


def changed_places(diff: str, root: str) -> tuple[ChangedPlace, ...]:
    """Read a diff whose names are seen from the folder `root`; empty for one that is too long to show, or none."""
    return tuple(_places(diff.split("\n"), root)) if len(diff) <= _MOST_CHARACTERS else ()


def _places(lines: Sequence[str], root: str) -> Iterator[ChangedPlace]:
    before = after = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("--- "):
            before = line[4:]
        elif line.startswith("+++ "):
            after = line[4:]
        elif found := _HUNK.match(line):
            old, new, at = _hunk(lines, at, (int(found[2] or 1), int(found[4] or 1)))
            name = before.removeprefix("a/") if after == "/dev/null" else after.removeprefix("b/")
            missing = before == "/dev/null"
            path = os.path.join(root, name)  # noqa: PTH118
            # A side without lines is numbered by the line before it.
            old_line = max(1, int(found[1]) + (found[2] == "0"))
            yield ChangedPlace(path, max(1, int(found[3])), None if missing else old, new, old_line)


def _hunk(lines: Sequence[str], at: int, counts: tuple[int, int]) -> tuple[str, str, int]:
    """Read a hunk by the number of its lines: what a line begins with is not always what it seems."""
    old: list[str] = []
    new: list[str] = []
    while at < len(lines) and (len(old) < counts[0] or len(new) < counts[1] or lines[at].startswith("\\")):
        sign, text = lines[at][:1], lines[at][1:]
        at += 1
        match sign:
            case "-":
                old.append(f"{text}\n")
            case "+":
                new.append(f"{text}\n")
            case "\\":
                _cut(old, new, lines[at - 2][:1])
            case _:
                old.append(f"{text}\n")
                new.append(f"{text}\n")
    return "".join(old), "".join(new), at


def _cut(old: list[str], new: list[str], sign: str) -> None:
    """Take the line end off the line before, which has none in its file."""
    for side, others in ((old, "+"), (new, "-")):
        if side and sign != others:
            side[-1] = side[-1].removesuffix("\n")
