"""Show how well each model edits, by format, and what is read for it; or apply edits without a model."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

import msgspec

from treadle.editing import Edit, EditError, EditFormat, EditResult, apply_edit, explain_refusal
from treadle.editing.shown_edits import display_diff
from treadle.parsing.readings import SENTENCES
from treadle.protocol.base import Record
from treadle.protocol.codec import encode
from treadle.protocol.errors import ConfigError, ToolError, TreadleError
from treadle.workspace.files.saving import save
from treadle.workspace.files.text_files import read_text

_FORMATS = [form.value for form in EditFormat]


class EditRow(Record, frozen=True, kw_only=True):
    """One edit to apply: the text `pre` of a file `fname`, and the edit as text or as exact replacements."""

    id: str | int
    pre: str
    fname: str = ""
    text: str | None = None
    edits: tuple[Edit, ...] | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    verbs = parser.add_subparsers(dest="verb", metavar="apply")
    apply = verbs.add_parser("apply", help="apply an edit from standard input")
    apply.add_argument("file", nargs="?", type=Path, help="the file to edit; the edit comes on standard input")
    apply.add_argument(
        "--format", choices=_FORMATS, default=EditFormat.SEARCH_REPLACE.value, help="how edits are written"
    )
    apply.add_argument(
        "--jsonl", action="store_true", help="read rows {id, pre, fname, text|edits}, write {id, status, …}"
    )
    apply.add_argument("--write", action="store_true", help="save the file instead of showing the diff")


def execute(arguments: argparse.Namespace) -> int:
    """Print the ledger, or apply what comes on standard input."""
    if arguments.verb is None:
        return _show_ledger(as_json=arguments.json)
    form = EditFormat(arguments.format)
    if arguments.jsonl:
        for line in sys.stdin.buffer:
            if line.strip():
                sys.stdout.write(f"{encode(_answer(line, form)).decode()}\n")
        return 0
    if arguments.file is None:
        raise ConfigError(
            "edits-file", "No file to edit was named.", fix="treadle edits apply FILE < edit, or --jsonl."
        )
    return _edit_file(arguments.file, sys.stdin.read(), form, write=arguments.write)


def _show_ledger(*, as_json: bool) -> int:
    from treadle.door.opening import edit_ledger

    edits, readings = edit_ledger()
    if as_json:
        sys.stdout.writelines(f"{encode(row).decode()}\n" for row in (*edits, *readings))
        return 0
    for row in edits:
        refused = ", ".join(f"{code} {count}" for code, count in row.refused.items()) or "none"
        sys.stdout.write(
            f"{row.model}  {row.format}: {row.first_try_rate:.0%} of {row.first_tries} first tries applied; "
            f"refused: {refused}; {row.repair_tokens} tokens for {row.repairs} repairs; "
            f"last 30 days: {row.recent_low:.0%} to {row.recent_high:.0%} of {row.recent_tries}"
            f"{'; in use' if row.chosen else ''}\n"
        )
    if not edits:
        sys.stderr.write("No edits were made yet.\n")
    for one in readings:
        sys.stdout.write(f"{one.model}  calls in which something was read for the model (none of them is a refusal):\n")
        width = max(len(str(count)) for count in one.readings.values())
        for code, count in one.readings.items():
            sys.stdout.write(f"  {count:>{width}}  {code}: {SENTENCES.get(code, 'A newer Treadle knows it.')}\n")
    return 0


def _answer(line: bytes, form: EditFormat) -> dict[str, object]:
    """Apply one row; a row that cannot be read is answered like an edit that is refused."""
    try:
        row = msgspec.json.decode(line, type=EditRow)
    except msgspec.MsgspecError as error:
        return {"id": None, "status": "err", "error": {"code": "bad_row", "message": f"The row is not valid: {error}"}}
    edit = row.edits if row.edits is not None else row.text or ""
    chosen = EditFormat.OLD_NEW if row.edits is not None else form
    outcome = apply_edit(chosen, row.pre, edit, file_name=row.fname or None)
    match outcome:
        case EditResult(text=text):
            return {"id": row.id, "status": "ok", "out": text}
        case EditError():
            return {"id": row.id, "status": "err", "error": dict(_error(outcome))}
        case _:
            assert_never(outcome)


def _error(error: EditError) -> Iterator[tuple[str, object]]:
    yield "code", error.code.value
    yield "message", error.message
    if error.nearest is not None:
        yield "nearest", error.nearest
    if error.others:
        yield "block", error.block
        yield "others", [{"block": one.block, **dict(_error(one))} for one in error.others]
    if error.candidates:
        yield "candidates", [{"start": one.start, "end": one.end} for one in error.candidates]


def _edit_file(file: Path, edit: str, form: EditFormat, *, write: bool) -> int:
    name = str(file)
    try:
        before = read_text(name, name)
        outcome = apply_edit(form, before.text, edit, file_name=file.name)
        if isinstance(outcome, EditError):
            what = f"The edit of {file} is refused."
            raise TreadleError(f"edit-{outcome.code}", what, why=explain_refusal(outcome, name))
        if write:
            save(name, before.encode(outcome.text), expected=before.digest, name=name)
    except ToolError as error:
        raise TreadleError("edit-file", f"{file} cannot be edited.", why=error.text) from error
    if write:
        sys.stderr.write(f"Saved {file}.\n")
    else:
        sys.stdout.write(f"{display_diff(before.text, outcome.text, path=name)}\n")
    return 0
