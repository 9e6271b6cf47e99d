"""What changed between two trees, in numbers and as a unified diff."""

from collections.abc import Iterator

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.workspace.checkpoints.merging import is_binary, line_edits, split_lines
from treadle.workspace.checkpoints.trees import BlobReader, TreeEntry, TreeKind, TreeReader, tree_differences
from treadle.workspace.files.diffs import Diff, DiffHunk
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.text_files import decode

_WIDE = ("utf-16", "utf-32")
_NO_NEWLINE = "\n\\ No newline at end of file"


class TreeChange(Struct, frozen=True, kw_only=True):
    """A path that differs, what it was and is, and how many lines were added and removed; None where it is no text.

    The path is as `os.fsdecode` gives it. What is not covered in one of the trees is not compared. Text in UTF-16 or
    UTF-32 has lines that are counted, but not `by_lines`: its bytes cannot be put together line by line.
    """

    path: str
    before: TreeEntry | None
    after: TreeEntry | None
    added: int | None
    removed: int | None
    by_lines: bool


class _Sides(Struct, frozen=True):
    path: str
    before: TreeEntry | None
    after: TreeEntry | None
    old: bytes
    new: bytes

    @property
    def by_lines(self) -> bool:
        """Whether the bytes of both are lines."""
        return not (is_binary(self.old) or is_binary(self.new))

    @property
    def diff(self) -> Diff | None:
        """The lines that differ; None for what is no text."""
        texts = (self.old, self.new) if self.by_lines else _in_utf8(self.old, self.new)
        if texts is None:
            return None
        old, new = map(split_lines, texts)
        hunks = tuple(DiffHunk(*change) for change in line_edits(old, new))
        return Diff([_shown(line) for line in old], [_shown(line) for line in new], hunks)


def _in_utf8(*sides: bytes) -> tuple[bytes, ...] | None:
    """Give in UTF-8 what is text in one wide encoding, with one mark; None where it is not, on either side."""
    try:
        texts = [decode(side, "The file") if side else None for side in sides]
    except ToolError:
        return None
    forms = {(text.read_as.name, text.read_as.mark) for text in texts if text is not None}
    if len(forms) != 1 or not all(name.startswith(_WIDE) for name, _ in forms):
        return None
    return tuple(b"" if text is None else text.text.encode() for text in texts)


def _shown(line: bytes) -> str:
    text = line.decode(errors="backslashreplace")
    return text[:-1] if text.endswith("\n") else text + _NO_NEWLINE


def _differing(old: str, new: str, read: TreeReader, blob: BlobReader) -> Iterator[_Sides]:
    for path, before, after in tree_differences(old, new, read):
        if TreeKind.NOT_COVERED not in (_kind(before), _kind(after)):
            name = path.decode(errors="surrogateescape")
            same = before is not None and after is not None and before.what == after.what
            was = b"" if same or before is None else blob(before.what)
            now = b"" if same or after is None else blob(after.what)
            yield _Sides(name, before, after, was, now)


def _kind(entry: TreeEntry | None) -> TreeKind | None:
    return None if entry is None else entry.kind


def lines_between(old: bytes, new: bytes) -> tuple[int | None, int | None]:
    """Count the lines that were added and removed; None for what is no text."""
    diff = _Sides("", None, None, old, new).diff
    return (None, None) if diff is None else (diff.added, diff.removed)


def compare_trees(old: str, new: str, read: TreeReader, blob: BlobReader) -> tuple[TreeChange, ...]:
    """Give each path that differs, by its bytes in order."""
    found: list[TreeChange] = []
    for sides in _differing(old, new, read, blob):
        added, removed = lines_between(sides.old, sides.new)
        found.append(
            TreeChange(
                path=sides.path,
                before=sides.before,
                after=sides.after,
                added=added,
                removed=removed,
                by_lines=sides.by_lines,
            )
        )
    return tuple(found)


def unified_diff(old: str, new: str, read: TreeReader, blob: BlobReader) -> str:
    """Write a unified diff of two trees; names are shown names, and bytes that are no UTF-8 are escaped."""
    return "".join(part for sides in _differing(old, new, read, blob) for part in _parts(sides))


def bytes_diff(path: str, old: bytes, new: bytes) -> str:
    """Write a unified diff of one file, whose path is as `os.fsdecode` gives it; that of a binary file says so."""
    name = shown_name(path)
    diff = _Sides(path, None, None, old, new).diff
    return f"Binary files a/{name} and b/{name} differ\n" if diff is None else diff.unified(name)


def entry_diff(path: str, before: TreeEntry | None, after: TreeEntry | None, sides: tuple[bytes, bytes]) -> str:
    """Write a unified diff of one path (as `os.fsdecode` gives it), from one entry with its bytes to another."""
    return "".join(_parts(_Sides(path, before, after, *sides)))


def _parts(sides: _Sides) -> Iterator[str]:
    name = shown_name(sides.path)
    yield f"diff a/{name} b/{name}\n"
    yield from _heads(sides.before, sides.after)
    if sides.old == sides.new:
        return
    diff = sides.diff
    yield f"Binary files a/{name} and b/{name} differ\n" if diff is None else diff.unified(name)


def _heads(before: TreeEntry | None, after: TreeEntry | None) -> Iterator[str]:
    """Say in git's words what became of an entry as a whole."""
    if before is not None and after is not None:
        was, now = _described(before), _described(after)
        if was != now:
            yield f"old {was}\nnew {now}\n"
    elif after is not None:
        yield f"new file {_described(after)}\n"
    elif before is not None:
        yield f"deleted file {_described(before)}\n"


def _described(entry: TreeEntry) -> str:
    return "link" if entry.kind is TreeKind.LINK else f"mode {entry.mode:o}"
