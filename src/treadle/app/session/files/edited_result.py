"""An edit whose result a person changed before allowing it: the arguments with which the call makes that text."""

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

from treadle.editing import EditFormat, EditResult, apply_edit
from treadle.editing.edit_results import AddFile, EditError, UpdateFile
from treadle.editing.patches import parse_patch
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import WritePath
from treadle.workspace.checkpoints.merging import LineChange, line_edits, split_lines
from treadle.workspace.files.text_files import decode

_CONTEXT = 3
_CELL = "cell"


def writes_one_text(arguments: Mapping[str, Any]) -> bool:
    """Whether a call with these arguments writes one file of text, which a person can then write otherwise."""
    return _form(arguments) is not None


def arguments_for_text(arguments: Mapping[str, Any], old: str, new: str) -> dict[str, Any] | None:
    """Give the arguments with which an edit of one file makes `old` into `new`; None where it cannot.

    They are tried on `old` first. Line ends are those of the file, whatever they are in the two texts.
    """
    before, after = _unix(old), _unix(new)
    form = _form(arguments)
    if form is None:
        return None
    name, notation = form
    # An edit keeps a last line as it ends; an empty line after it is how one gets the line end that it lacks.
    written = f"{after}\n" if before and not before.endswith("\n") and after.endswith("\n") else after
    if notation is EditFormat.WHOLE:
        return {**arguments, name: written} if not before or _makes(notation, before, written, after) else None
    lines, wanted = split_lines(before.encode()), split_lines(written.encode())
    parts = _parts(lines, wanted, line_edits(lines, wanted))
    if notation is EditFormat.SEARCH_REPLACE:
        text = "".join(map(_block, parts))
    else:
        text = _patch(str(arguments[name]), before, after, parts)
    if not text or not _makes(notation, before, text, after):
        return None
    kept = {key: value for key, value in arguments.items() if key != "replace_all"}
    return {**kept, name: text}


def is_text_of(text: str, file: WritePath) -> bool:
    """Whether a text is that of a file as it was when a call was prepared, with whatever line ends it was shown."""
    if not file.before:
        return not text
    with suppress(ToolError, OSError):
        raw = Path(file.path).read_bytes()
        if sha256(raw).hexdigest() == file.before:
            return _unix(decode(raw, file.path).text) == _unix(text)
    # What is typed and not saved, or a file of a subagent's copy.
    texts = {text, _unix(text), _unix(text).replace("\n", "\r\n")}
    return any(sha256(mark + one.encode()).hexdigest() == file.before for one in texts for mark in (b"", BOM_UTF8))


def _form(arguments: Mapping[str, Any]) -> tuple[str, EditFormat] | None:
    """Find the argument that says what becomes of one file, and how it says that."""
    if _CELL in arguments:
        return None
    named = isinstance(arguments.get("path"), str)
    if named and isinstance(arguments.get("content"), str):
        return "content", EditFormat.WHOLE
    if named and isinstance(arguments.get("diff"), str):
        return "diff", EditFormat.SEARCH_REPLACE
    patch = arguments.get("patch")
    if isinstance(patch, str) and _operation(patch) is not None:
        return "patch", EditFormat.APPLY_PATCH
    return None


def _operation(patch: str) -> AddFile | UpdateFile | None:
    """Give what a patch does, if that is one change to the text of one file."""
    operations = parse_patch(patch)
    if isinstance(operations, EditError) or len(operations) != 1:
        return None
    only = operations[0]
    if isinstance(only, AddFile):
        return only
    return only if isinstance(only, UpdateFile) and only.move_to is None else None


_Part = tuple[Sequence[str], Sequence[str]]
"""Lines of the old text, and what they become, both with the same lines around the change."""


def _parts(old: Sequence[bytes], new: Sequence[bytes], changes: Sequence[LineChange]) -> list[_Part]:
    """Cut both texts into the changed places, with as many lines around each as make it the only one of its kind."""
    spans = [(change.start, change.end) for change in changes]
    wide = [_widened(old, start, end) for start, end in spans]
    joined: list[tuple[int, int, int]] = []
    for number, (start, end) in enumerate(wide):
        if joined and start <= joined[-1][1]:
            joined[-1] = (min(start, joined[-1][0]), max(end, joined[-1][1]), number)
        else:
            joined.append((start, end, number))
    shifts = [0, *accumulate((change.new_end - change.new_start) - (change.end - change.start) for change in changes)]
    parts: list[_Part] = []
    first = 0
    for start, end, last in joined:
        before, after = old[start:end], new[start + shifts[first] : end + shifts[last + 1]]
        parts.append(([line.decode() for line in before], [line.decode() for line in after]))
        first = last + 1
    return parts


def _widened(lines: Sequence[bytes], start: int, end: int) -> tuple[int, int]:
    context = _CONTEXT
    while True:
        first, last = max(0, start - context), min(len(lines), end + context)
        if (first == 0 and last == len(lines)) or _times(lines, lines[first:last]) == 1:
            return first, last
        context *= 2


def _times(lines: Sequence[bytes], wanted: Sequence[bytes]) -> int:
    size = len(wanted)
    return sum(lines[at] == wanted[0] and lines[at : at + size] == wanted for at in range(len(lines) - size + 1))


def _block(part: _Part) -> str:
    old, new = ("".join(_ended(line) for line in side) for side in part)
    return f"------- SEARCH\n{old}=======\n{new}+++++++ REPLACE\n"


def _patch(patch: str, before: str, after: str, parts: Sequence[_Part]) -> str:
    only = _operation(patch)
    if isinstance(only, AddFile) and not before:
        lines = [f"+{line}" for line in after.removesuffix("\n").split("\n")]
        return "\n".join(["*** Begin Patch", f"*** Add File: {only.path}", *lines, "*** End Patch", ""])
    if not isinstance(only, UpdateFile):
        return ""
    pieces = ["*** Begin Patch\n", f"*** Update File: {only.path}\n"]
    for old, new in parts:
        pieces += ["@@\n", *(f"-{_ended(line)}" for line in old), *(f"+{_ended(line)}" for line in new)]
    return "".join([*pieces, "*** End Patch\n"])


def _makes(notation: EditFormat, before: str, edit: str, after: str) -> bool:
    made = apply_edit(notation, before, edit)
    if isinstance(made, EditResult):
        return made.text == after
    only = _operation(edit) if notation is EditFormat.APPLY_PATCH else None
    return isinstance(only, AddFile) and not before and only.text == after


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")
