"""A unified diff, file by file: its hunks, and the lines of its new side by their numbers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.words import counted
from treadle.workspace.files.text import visible

_GIT = re.compile(r"diff --git .+")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_ESCAPE = re.compile(r'\\([0-7]{1,3}|[abtnvfr"\\])')
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_NO_FILE = "/dev/null"


class NumberedHunk(Struct, frozen=True, kw_only=True):
    """A hunk: `lines` with their signs, the first of the new side has the number `first`; `about` is its heading."""

    first: int
    lines: tuple[str, ...]
    about: str = ""


class DiffFile(Struct, frozen=True, kw_only=True, dict=True):
    """A file of a diff, by its path in the new side (of a deleted one: the old); `kind` says what became of it."""

    path: str
    kind: str = "changed"
    hunks: tuple[NumberedHunk, ...] = ()

    @cached_property
    def new_side(self) -> Mapping[int, str]:
        """The lines that the new side shows, changed and around changes, by their numbers."""
        return {number: line[1:] for number, line in _numbered(self.hunks) if number}

    @property
    def counts(self) -> str:
        """How many lines came and went."""
        return f"+{self.changed('+')} -{self.changed('-')}"

    def changed(self, sign: str) -> int:
        """Count the lines that came (`+`) or went (`-`)."""
        return sum(line.startswith(sign) for hunk in self.hunks for line in hunk.lines)


def _numbered(hunks: Sequence[NumberedHunk]) -> Iterator[tuple[int, str]]:
    """Give each line with its number in the new side; 0 for one that is not there."""
    for hunk in hunks:
        number = hunk.first
        for line in hunk.lines:
            if line[:1] in ("+", " "):
                yield number, line
                number += 1
            else:
                yield 0, line


def shown_diff(files: Sequence[DiffFile]) -> str:
    """Write a diff for a model: each line with its number in the new side."""
    parts: list[str] = []
    for file in files:
        parts.append(f"### {visible(file.path)} ({file.kind}, {file.counts})")
        for hunk in file.hunks:
            parts.append(f"@@ {visible(hunk.about)}".rstrip())
            parts += [f"{number or '':>6} {visible(line)}" for number, line in _numbered((hunk,))]
        parts.append("")
    return "\n".join(parts)


class _Reader:
    """Reads a diff line by line; the counts of a hunk say where it ends, whatever its lines look like."""

    def __init__(self, text: str) -> None:
        self._lines = text.removesuffix("\n").split("\n")
        self._at = 0
        self.files: list[DiffFile] = []

    def read(self) -> None:
        old = ""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if _GIT.fullmatch(line):
                old = ""
                self._begin(_of_git(line), "changed")
            elif line.startswith("--- "):
                old = _path(line[4:], "a/")
            elif line.startswith("+++ ") and old:
                self._named(old, _path(line[4:], "b/"))
                old = ""
            elif found := _HUNK.fullmatch(line.rstrip("\r")):
                self._hunk(found)
            else:
                self._header(line)

    def _begin(self, path: str, kind: str) -> None:
        self.files.append(DiffFile(path=path, kind=kind))

    def _set(self, **changes: object) -> None:
        if self.files:
            self.files[-1] = replace(self.files[-1], **changes)

    def _named(self, old: str, new: str) -> None:
        if not self.files or self.files[-1].hunks:
            self._begin("", "changed")
        kind = "new" if old == _NO_FILE else "deleted" if new == _NO_FILE else self.files[-1].kind
        self._set(path=old if new == _NO_FILE else new, kind=kind)

    def _header(self, line: str) -> None:
        if not self.files or self.files[-1].hunks:
            return
        if line.startswith("new file mode"):
            self._set(kind="new")
        elif line.startswith("deleted file mode"):
            self._set(kind="deleted")
        elif line.startswith("rename from "):
            self._set(kind=f"renamed from {_path(line[12:], '')}")
        elif line.startswith("rename to "):
            self._set(path=_path(line[10:], ""))
        elif line.startswith(("Binary files ", "GIT binary patch")):
            self._set(kind="binary")

    def _hunk(self, found: re.Match[str]) -> None:
        old, new = (1 if count is None else int(count) for count in (found[1], found[3]))
        lines: list[str] = []
        while (old > 0 or new > 0) and self._at < len(self._lines):
            line = self._lines[self._at]
            if line[:1] not in ("+", "-", " ", "\\", ""):
                break  # it is shorter than it says
            self._at += 1
            if line.startswith("\\"):
                continue
            old -= line[:1] != "+"
            new -= line[:1] != "-"
            lines.append(line or " ")
        if self.files:
            hunk = NumberedHunk(first=int(found[2]), lines=tuple(lines), about=found[4].strip())
            self._set(hunks=(*self.files[-1].hunks, hunk))


def _of_git(line: str) -> str:
    """Give the path that the first line of a file names; what follows says it better, where anything does."""
    rest = line.removeprefix("diff --git ")
    if rest.startswith('"') or rest.endswith('"'):
        return _path(rest[rest.rfind(' "') + 1 :] if rest.endswith('"') else rest.rpartition(" ")[2], "b/")
    half = rest[: len(rest) // 2]
    return half.removeprefix("a/") if rest == f"{half} {half.replace('a/', 'b/', 1)}" else rest.rpartition(" b/")[2]


def _path(text: str, prefix: str) -> str:
    text = text.rstrip("\r")
    if text.startswith('"'):
        raw = text[1 : text.rfind('"')].encode(errors="surrogateescape").decode("latin-1")
        read = _ESCAPE.sub(lambda one: chr(_ESCAPES.get(one[1]) or int(one[1], 8) & 0xFF), raw)
        text = read.encode("latin-1").decode(errors="surrogateescape")
    else:
        text = text.partition("\t")[0]
    return text if text == _NO_FILE else text.removeprefix(prefix)


def files_of_diff(text: str) -> tuple[DiffFile, ...]:
    """Read a unified diff, with or without the headers of git; empty for what is none."""
    reader = _Reader(text)
    reader.read()
    return tuple(file for file in reader.files if file.path)


def fit_into(files: Sequence[DiffFile], most: int) -> tuple[tuple[DiffFile, ...], tuple[str, ...]]:
    """Choose what a model is shown in at most `most` characters, hunk by hunk; and say what is left out."""
    kept: list[DiffFile] = []
    left_out: list[str] = []
    for file in files:
        if file.kind == "binary":
            left_out.append(f"{file.path}: it is binary")
            continue
        hunks: list[NumberedHunk] = []
        for hunk in file.hunks:
            size = sum(len(line) + 8 for line in hunk.lines)
            if size <= most:
                most -= size
                hunks.append(hunk)
        missing = len(file.hunks) - len(hunks)
        if missing:
            part = "" if not hunks else f"{counted(missing, 'hunk')} of {len(file.hunks)}: "
            left_out.append(f"{file.path} ({file.counts}): {part}the diff is too large")
        if hunks or not file.hunks:
            kept.append(replace(file, hunks=tuple(hunks)))
    return tuple(kept), tuple(left_out)
