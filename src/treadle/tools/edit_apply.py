"""Applying a model's edit to a text: the one place of the tools that knows the edit engine."""

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from treadle.editing import (
    Change,
    EditError,
    EditFormat,
    EditResult,
    ErrorCode,
    Section,
    Tier,
    UpdateFile,
    apply_edit,
    apply_sections,
    explain_refusal,
    is_only_blocks,
    is_only_patch,
    is_text_around_blocks,
    parse_blocks,
    parse_operations,
    parse_unified,
    unfenced,
)
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import EditReport
from treadle.workspace.files.documents import is_text_itself
from treadle.workspace.notebooks import CellChange, Notebook, read_notebook


def apply_blocks(pre: str, diff: str, name: str, *, replace_all: bool = False) -> tuple[str, EditReport]:
    """Apply SEARCH/REPLACE blocks to the text of the file `name`. Raises `ToolError` with what to do next."""
    form = EditFormat.SEARCH_REPLACE
    said = parse_blocks(diff)
    if not replace_all and isinstance(said, EditError) and said.code is ErrorCode.NO_MARKER:
        patch = _patch_of(diff, name)
        if patch is not None:
            return _applied(patch[1], pre, patch[0], name)

    def applied(text: str) -> EditResult | EditError:
        outcome = apply_edit(form, text, diff, file_name=name, replace_all=replace_all)
        if not replace_all and isinstance(outcome, EditError):
            outcome = replace(_offered_all(outcome), others=tuple(map(_offered_all, outcome.others)))
        return outcome

    return _applied(applied, pre, form, name, count=replace_all)


def _patch_of(diff: str, name: str) -> "tuple[EditFormat, _Apply] | None":
    """Read what is no SEARCH/REPLACE but a patch of this one file; None for what is no patch."""
    operations = parse_operations(diff)
    if isinstance(operations, EditError) and operations.code is ErrorCode.NO_MARKER:
        operations = parse_unified(diff)
    match operations:
        case EditError(code=ErrorCode.NO_MARKER):
            return None
        case EditError() as error:
            return EditFormat.APPLY_PATCH, lambda _: error
        case (UpdateFile(path=path, move_to=None, sections=sections, form=form),) if _is_named(path, name):
            return form, lambda text: apply_sections(text, sections)
        case _:
            said = f"The patch does something else than change {name}. Change one file with each call."
            refused = EditError(ErrorCode.WRONG_FILE, said)
            return EditFormat.APPLY_PATCH, lambda _: refused


def _is_named(path: str, name: str) -> bool:
    """Whether a patch with this path, or without one, is for the file that the call names."""
    given = path.replace("\\", "/").removeprefix("./")
    return given in ("", name) or name.endswith(f"/{given}") or (given.startswith("/") and given.endswith(f"/{name}"))


def new_text(diff: str) -> str | None:
    """Give the text of a file that is to be new: the one block of an edit that searches for nothing. None otherwise."""
    sections = parse_blocks(diff)
    if isinstance(sections, EditError) or len(sections) != 1:
        return None
    outcome = apply_sections("", sections)
    empty = all(not any(block.search) for block in sections[0].readings)
    return outcome.text if empty and isinstance(outcome, EditResult) else None


def _offered_all(error: EditError) -> EditError:
    if error.code is not ErrorCode.AMBIGUOUS:
        return error
    return replace(error, message=f"{error.message} If you mean all of them, set replace_all.")


def apply_patch_sections(
    pre: str, sections: Sequence[Section], name: str, form: EditFormat = EditFormat.APPLY_PATCH
) -> tuple[str, EditReport]:
    """Apply the sections of a patch to the text of the file `name`. Raises `ToolError` with what to do next."""
    return _applied(lambda text: apply_sections(text, sections), pre, form, name)


def replace_whole(pre: str, content: str, name: str) -> tuple[str, EditReport]:
    """Take `content` instead of `pre`, in the line ends that `pre` uses; a new file gets a final newline.

    What is only SEARCH/REPLACE blocks is applied as such. Raises `ToolError` for what is not the text of a file.
    """
    blocks = EditFormat.SEARCH_REPLACE
    if is_only_blocks(pre, content):
        if pre or isinstance(apply_edit(blocks, pre, content), EditResult):
            return apply_blocks(pre, content, name)
        raise _no_text(f"The content is only SEARCH/REPLACE blocks, and {name} has no text to replace.", blocks, name)
    if is_text_around_blocks(pre, content) and isinstance(apply_edit(blocks, pre, content), EditResult):
        raise _no_text(f"The content is text with SEARCH/REPLACE blocks that match {name}.", blocks, name)
    if is_only_patch(content, name):
        raise _no_text(f"The content is a patch, not the text of {name}.", EditFormat.WHOLE, name)
    if not pre or _is_json(pre):
        check_notebook(content, name)
    if pre:
        return _outcome(apply_edit(EditFormat.WHOLE, pre, content, file_name=name), EditFormat.WHOLE, name)
    text = unfenced(content, "", name)
    ended = text if not text or text.endswith("\n") else f"{text}\n"
    return ended, EditReport(path=name, format=EditFormat.WHOLE.value)


def _no_text(what: str, form: EditFormat, name: str) -> ToolError:
    return ToolError(
        f"{what} Nothing was changed; write the whole text of the file, or change parts of it with your edit tool.",
        edit=EditReport(path=name, format=form.value, code=ErrorCode.MALFORMED.value),
    )


def check_notebook(content: str, name: str) -> None:
    """Raise `ToolError` where the file `name` is to be a notebook, and its text could not be read as one."""
    if is_text_itself(name) and not _is_json(content):
        raise _no_text(f"The content is not the JSON of a notebook, which {name} is.", EditFormat.WHOLE, name)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_Apply: TypeAlias = Callable[[str], EditResult | EditError]
_BY_CELL = "edit_notebook changes a cell of it by its number or id."


def _applied(apply: _Apply, pre: str, form: EditFormat, name: str, *, count: bool = False) -> tuple[str, EditReport]:
    """Apply an edit to a text; of a notebook, to what `read_file` shows of its cells, else to its JSON as it stands."""
    notebook = read_notebook(pre) if is_text_itself(name) else None
    if notebook is None:
        return _outcome(apply(pre), form, name, count=count)
    shown = notebook.shown()
    outcome = apply(shown)
    match outcome:
        case EditResult(text=text, changes=changes):
            wanted = None if "\r" in shown else _changed_cells(notebook, text, changes)
            if wanted is None:
                raise _no_text(
                    f"In {name} this would change more than the text of cells: headings and outputs are shown, and "
                    f"cannot be edited. {_BY_CELL}",
                    form,
                    name,
                )
            _, report = _outcome(outcome, form, name, count=count)
            return notebook.changed(wanted), report
        case EditError(code=ErrorCode.NOT_FOUND):
            in_json = apply(pre)
            if isinstance(in_json, EditResult) and all(block.tier is Tier.EXACT for block in in_json.blocks):
                if read_notebook(in_json.text) is None:
                    raise _no_text(f"{name} would be no notebook any more. {_BY_CELL}", form, name)
                return _outcome(in_json, form, name, count=count)
        case EditError():
            pass
        case _:
            assert_never(outcome)
    return _outcome(replace(outcome, message=f"{outcome.message} {_BY_CELL}"), form, name)


def _changed_cells(notebook: Notebook, text: str, changes: Sequence[Change]) -> dict[int, CellChange] | None:
    """Find what an edit of the shown text makes of each cell; None where it reaches beyond the text of one."""
    before, after, places = notebook.shown().split("\n"), text.split("\n"), list(notebook.places())
    grown = 0
    found: dict[int, tuple[int, int]] = {}
    for change in changes:
        cell = bisect_right(places, change.old.start, key=itemgetter(0)) - 1
        first, last = places[cell] if cell >= 0 else (0, -1)
        if not first <= change.old.start <= last + 1 or change.old.end > last:
            return None
        begin = found[cell][0] if cell in found else first - 1 + grown
        grown += change.new.end - change.new.start - change.old.end + change.old.start
        found[cell] = begin, last + grown
    for cell in sorted(found, reverse=True):
        first, last = places[cell]
        before[first - 1 : last] = after[slice(*found[cell])]
    if before != after:
        return None
    return {cell: CellChange(source="\n".join(after[slice(*lines)])) for cell, lines in found.items()}


def _outcome(
    outcome: EditResult | EditError, form: EditFormat, name: str, *, count: bool = False
) -> tuple[str, EditReport]:
    match outcome:
        case EditResult(text=text, blocks=blocks):
            tiers = tuple(block.tier.value for block in blocks)
            places = sum(block.places for block in blocks) if count else 0
            return text, EditReport(path=name, format=form.value, tiers=tiers, places=places)
        case EditError(code=code):
            report = EditReport(path=name, format=form.value, code=code.value)
            part = "hunk" if form in (EditFormat.APPLY_PATCH, EditFormat.UNIFIED) else "block"
            raise ToolError(explain_refusal(outcome, name, part), edit=report)
        case _:
            assert_never(outcome)
