"""Parse patches over several files: the V4A form (`*** Begin Patch`) and unified diffs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from treadle.editing.edit_results import (
    AddFile,
    DeleteFile,
    EditBlock,
    EditError,
    EditFormat,
    ErrorCode,
    FileOperation,
    Section,
    UpdateFile,
)
from treadle.editing.markers import is_block_start, parse_blocks
from treadle.editing.source import plain_lines

_BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_STARS = " ***"
"""Some models end the first and the last line of a patch as they begin it."""
_HEADER = re.compile(r"\*\*\* (Add|Update|Delete) File: ?(.+)")
_MOVE = re.compile(r"\*\*\* Move to: ?(.+)")
_HUNK = re.compile(r"@@+ *(?:-(\d{1,9})(?:,\d+)? +\+\d+(?:,\d+)? *@@+)? ?(.*)")
_OLD_PATH = re.compile(r"--- (?:a/)?([^\t]+?)(?:\t.*)?")
_NEW_PATH = re.compile(r"\+\+\+ (?:b/)?([^\t]+?)(?:\t.*)?")
_NO_FILE = "/dev/null"


@dataclass(slots=True)
class _Chunk:
    hint: int | None = None
    anchors: list[str] = field(default_factory=list)
    search: list[str] = field(default_factory=list)
    replace: list[str] = field(default_factory=list)
    at_end: bool = False
    changes: bool = False
    loose_tail: int = 0

    def push(self, line: str) -> None:
        mark, rest = line[:1], line[1:]
        self.loose_tail = 0 if line else self.loose_tail + 1
        if mark == "-":
            self.search.append(rest)
        elif mark == "+":
            self.replace.append(rest)
        else:
            # Models leave out the blank in front of context, most of all on empty lines.
            kept = rest if mark == " " else line
            self.search.append(kept)
            self.replace.append(kept)
        self.changes = self.changes or mark in ("-", "+")

    def block(self) -> EditBlock:
        """The block without the empty lines after it, which only part it from what follows."""
        return EditBlock(
            tuple(self.search[: len(self.search) - self.loose_tail]),
            tuple(self.replace[: len(self.replace) - self.loose_tail]),
            hint=self.hint,
            anchors=tuple(self.anchors),
            at_end=self.at_end,
            lines_only=True,
        )


@dataclass(slots=True)
class _File:
    kind: str
    path: str
    move_to: str | None = None
    added: list[str] = field(default_factory=list)
    chunks: list[_Chunk] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    form: EditFormat = EditFormat.APPLY_PATCH

    def start_chunk(self, header: str) -> None:
        last = self.chunks[-1] if self.chunks else None
        match = _HUNK.fullmatch(header)
        if last is None or last.search or last.replace:
            last = _Chunk()
            self.chunks.append(last)
        if match is not None:
            last.hint = int(match[1]) if match[1] else None
            anchor = match[2].removesuffix("@@").strip()
            if anchor and anchor != "...":
                last.anchors.append(anchor)

    def push(self, line: str) -> None:
        """The next line below the header of the file, in the V4A form."""
        mark = line.rstrip()
        move = _MOVE.fullmatch(mark)
        if self.kind == "Add":
            self.added.append(line.removeprefix("+"))
        elif move is not None:
            self.move_to = move[1].strip()
        elif self.blocks or (not self.chunks and is_block_start(line)):
            self.blocks.append(line)
        elif mark == "*** End of File":
            if self.chunks:
                self.chunks[-1].at_end = True
        elif line.startswith("@@"):
            self.start_chunk(line)
        elif self.kind == "Update":
            if not self.chunks:
                self.start_chunk("@@")
            self.chunks[-1].push(line)

    def operation(self) -> FileOperation | EditError:
        if self.kind == "Delete":
            return DeleteFile(self.path)
        if self.kind == "Add":
            return AddFile(self.path, "".join(f"{line}\n" for line in self.added))
        if self.blocks:
            parsed = parse_blocks("".join(f"{line}\n" for line in self.blocks))
            if isinstance(parsed, EditError):
                return parsed
            return UpdateFile(self.path, parsed, self.move_to, EditFormat.SEARCH_REPLACE)
        sections = tuple(Section((chunk.block(),), self.path) for chunk in self.chunks if chunk.changes)
        if not sections and self.move_to is None:
            return EditError(
                ErrorCode.NO_CHANGE,
                f"The patch of {self.path} has no line with `+` or `-`. Write one before each changed line.",
            )
        return UpdateFile(self.path, sections, self.move_to, self.form)


def parse_patch(text: str) -> tuple[FileOperation, ...] | EditError:
    """The file operations of a V4A patch; `truncated` without its end, `no_marker` without its beginning."""
    lines = _body(plain_lines(text))
    if isinstance(lines, EditError):
        return lines
    files: list[_File] = []
    for line in lines:
        header = _HEADER.fullmatch(line.rstrip())
        if header is not None:
            files.append(_File(header[1], header[2].strip()))
        elif line.strip() and (not files or files[-1].kind == "Delete"):
            return _stray(line)
        elif files:
            files[-1].push(line)
    return _operations(files)


def parse_operations(text: str) -> tuple[FileOperation, ...] | EditError:
    """The file operations of a patch in any notation: V4A, a unified diff, SEARCH/REPLACE blocks below their path.

    What is in none of them is refused as a V4A patch would be.
    """
    operations = parse_patch(text)
    if not isinstance(operations, EditError) or operations.code is not ErrorCode.NO_MARKER:
        return operations
    others = (_parse_named_blocks(text), parse_unified(text))
    return next(
        (one for one in others if not isinstance(one, EditError) and all(each.path for each in one)), operations
    )


def _parse_named_blocks(text: str) -> tuple[FileOperation, ...] | EditError:
    sections = parse_blocks(text)
    if isinstance(sections, EditError):
        return sections
    paths = dict.fromkeys(section.path or "" for section in sections)
    return tuple(
        UpdateFile(path, tuple(one for one in sections if one.path == path), form=EditFormat.SEARCH_REPLACE)
        if path
        else UpdateFile("", ())
        for path in paths
    )


def chunk_section(lines: Sequence[str]) -> Section | None:
    """One chunk of a patch or diff, from its `@@` lines on; None when it changes nothing."""
    file = _File("Update", "")
    for line in lines:
        file.push(line)
    return Section((file.chunks[0].block(),)) if file.chunks and file.chunks[0].changes else None


def is_chunk_edge(line: str) -> bool:
    """Whether a line of a patch or diff ends the chunk before it."""
    return line.startswith(("@@", "*** ", "diff --git ")) or _OLD_PATH.fullmatch(line) is not None


def _body(lines: tuple[str, ...]) -> tuple[str, ...] | EditError:
    marks = [_mark(line) for line in lines]
    headed = any(_HEADER.fullmatch(mark) for mark in marks)
    if _BEGIN not in marks and not headed:
        return EditError(
            ErrorCode.NO_MARKER,
            f"No patch found. Start with `{_BEGIN}` and end with `{_END}`, each on its own line.",
        )
    if _END not in marks:
        return EditError(ErrorCode.TRUNCATED, f"The patch is cut off: `{_END}` is missing. Write it again, whole.")
    start = marks.index(_BEGIN) + 1 if _BEGIN in marks else 0
    return lines[start : len(marks) - 1 - marks[::-1].index(_END)]


def _mark(line: str) -> str:
    mark = line.strip()
    plain = mark.removesuffix(_STARS)
    return plain if plain in (_BEGIN, _END) else mark


def _stray(line: str) -> EditError:
    return EditError(
        ErrorCode.MALFORMED, f"This line of the patch belongs to no file: {line[:80]!r}. Put a file line above it."
    )


def parse_unified(text: str) -> tuple[FileOperation, ...] | EditError:
    """The file operations of a unified diff; counts in hunk headers and fences around it are ignored."""
    files: list[_File] = []
    lines = _without_fences(plain_lines(text))
    at = 0
    while at < len(lines):
        old, new = (
            _OLD_PATH.fullmatch(lines[at]),
            _NEW_PATH.fullmatch(lines[at + 1]) if at + 1 < len(lines) else None,
        )
        if old is not None and new is not None:
            files.append(_unified_file(old[1], new[1]))
            at += 2
            continue
        _push_unified_line(files, lines[at])
        at += 1
    if not any(file.chunks or file.kind != "Update" for file in files):
        return EditError(
            ErrorCode.NO_MARKER, "No diff found. Write `--- path`, `+++ path` and hunks that start with `@@`."
        )
    return _operations(files)


def _without_fences(lines: tuple[str, ...]) -> tuple[str, ...]:
    start = next((at for at, line in enumerate(lines) if line.startswith(("```", "~~~"))), None)
    first = next((at for at, line in enumerate(lines) if line.startswith(("--- ", "@@"))), 0)
    if start is None or start > first:
        return lines
    stop = next((at for at in range(len(lines) - 1, start, -1) if lines[at].strip() == lines[start][:3]), len(lines))
    return lines[start + 1 : stop]


def _unified_file(old: str, new: str) -> _File:
    if old == _NO_FILE:
        return _File("Add", new)
    if new == _NO_FILE:
        return _File("Delete", old)
    return _File("Update", old, move_to=None if old == new else new, form=EditFormat.UNIFIED)


def _push_unified_line(files: list[_File], line: str) -> None:
    if line.startswith("@@"):
        if not files:
            files.append(_File("Update", "", form=EditFormat.UNIFIED))
        files[-1].start_chunk(line)
    elif not files or (not files[-1].chunks and files[-1].kind != "Add") or line.startswith("\\"):
        return
    elif files[-1].kind == "Add":
        if line.startswith("+"):
            files[-1].added.append(line[1:])
    elif not re.match(r"(diff --git|index [0-9a-f]+\.\.|(new|deleted) file mode|rename (from|to)) ?", line):
        files[-1].chunks[-1].push(line)


def _operations(files: list[_File]) -> tuple[FileOperation, ...] | EditError:
    operations: list[FileOperation] = []
    for file in files:
        operation = file.operation()
        if isinstance(operation, EditError):
            return operation
        operations.append(operation)
    if not operations:
        return EditError(ErrorCode.NO_MARKER, "The patch names no file. Name each file above its hunks.")
    return tuple(operations)
