"""What a model answers in a review: read from JSON in one possible way, and held against the diff and the files."""

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from treadle.app.code_review.diff_files import DiffFile
from treadle.present.words import counted
from treadle.protocol.base import Record
from treadle.protocol.errors import ToolError
from treadle.tools.edit_apply import apply_blocks
from treadle.workspace.files.text_files import read_text

_T = TypeVar("_T", bound=Struct)


class FindingSeverity(StrEnum):
    """How bad a finding is: `error` is what must not be merged."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class ReviewFinding(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What a review found at a line of the new side; `change` is an edit of that file, None where there is none."""

    file: str
    line: Annotated[int, Meta(ge=0)]
    severity: FindingSeverity
    confidence: Annotated[float, Meta(ge=0, le=1)]
    title: Annotated[str, Meta(min_length=1)]
    text: str
    change: str | None = None


class FoundAnswer(Struct, frozen=True):
    """What the first pass answers."""

    findings: tuple[ReviewFinding, ...]


class FindingVerdict(Struct, frozen=True):
    """What the second pass says of the finding of that number."""

    number: int
    confirmed: bool
    why: str = ""


class CheckedAnswer(Struct, frozen=True):
    """What the second pass answers."""

    verdicts: tuple[FindingVerdict, ...]


class UnreadableAnswerError(Exception):
    """An answer is not in the form; the text says why, for the model."""


def read_review_answer(text: str, form: type[_T]) -> _T:
    """Read the one JSON object of this form that an answer has, whatever stands around it.

    Raises `UnreadableAnswerError` where there is none, where it does not fit, and where there are several different.
    """
    (wanted,) = (one.name for one in msgspec.structs.fields(form))
    objects = [one for one in _objects(text) if wanted in one]
    different = {json.dumps(one, sort_keys=True) for one in objects}
    if not objects:
        raise UnreadableAnswerError(f'There is no JSON object with "{wanted}" in it.')
    if len(different) > 1:
        raise UnreadableAnswerError(f'There are {len(different)} different JSON objects with "{wanted}" in them.')
    try:
        read = msgspec.convert(objects[0], form)
        msgspec.json.encode(read)
        return read
    except UnicodeEncodeError as error:
        raise UnreadableAnswerError("A text in it has half of a character.") from error
    except msgspec.ValidationError as error:
        raise UnreadableAnswerError(f"{error}.") from error


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Give the JSON objects of a text that are in no other."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


class HeldFindings(Struct, frozen=True, kw_only=True):
    """The findings that lie in the diff, each with a change that applies; `notes` say what was dropped."""

    findings: tuple[ReviewFinding, ...]
    notes: tuple[str, ...] = ()


def hold_against(found: Sequence[ReviewFinding], files: Sequence[DiffFile], folder: Path) -> HeldFindings:
    """Drop what is not at a line of the diff's new side, and changes that do not apply to the files in `folder`.

    Takes its time. Of a deleted file line 0 is the whole.
    """
    by_path = {file.path: file for file in files}
    kept: list[ReviewFinding] = []
    outside: list[str] = []
    notes: list[str] = []
    for one in found:
        path = one.file.removeprefix("./")
        file = by_path.get(path) or by_path.get(path.removeprefix("b/"))
        if file is None or not (one.line in file.new_side or (one.line == 0 and file.kind == "deleted")):
            outside.append(f"{one.file}:{one.line}")
            continue
        title = " ".join(one.title.split())
        held = msgspec.structs.replace(one, file=file.path, title=title, change=one.change or None)
        if held.change is not None and (why := change_problem(held, folder)):
            notes.append(f"The change for {held.file}:{held.line} is left out: {why}")
            held = msgspec.structs.replace(held, change=None)
        kept.append(held)
    if outside:
        notes.insert(0, f"{counted(len(outside), 'finding')} outside the diff left out: {', '.join(outside)}.")
    return HeldFindings(findings=tuple(kept), notes=tuple(notes))


def change_problem(finding: ReviewFinding, folder: Path) -> str:
    """Say why the change of a finding does not apply to its file as it is now; empty where it does."""
    path = Path(folder, finding.file)
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return "the file is not in the folder."
        before = read_text(str(path), finding.file)
        after, _ = apply_blocks(before.text, finding.change or "", finding.file)
    except ToolError as error:
        return _first_sentence(error.text)
    return "" if after != before.text else "it changes nothing."


def _first_sentence(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return f"{line.split('. ', 1)[0].rstrip('.')}."
