"""Applying a model's edit to a text: the one place of the tools that knows the edit engine."""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from treadle.editing import (
    EditError,
    EditFormat,
    EditResult,
    ErrorCode,
    Section,
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


def apply_blocks(pre: str, diff: str, name: str, *, replace_all: bool = False) -> tuple[str, EditReport]:
    """Apply SEARCH/REPLACE blocks to the text of the file `name`. Raises `ToolError` with what to do next."""
    form = EditFormat.SEARCH_REPLACE
    outcome = apply_edit(form, pre, diff, file_name=name, replace_all=replace_all)
    if isinstance(outcome, EditError) and outcome.code is ErrorCode.NO_MARKER and not replace_all:
        form, outcome = _patched(pre, diff, name) or (form, outcome)
    if not replace_all and isinstance(outcome, EditError):
        outcome = replace(_offered_all(outcome), others=tuple(map(_offered_all, outcome.others)))
    return _outcome(outcome, form, name, count=replace_all)


def _patched(pre: str, diff: str, name: str) -> tuple[EditFormat, EditResult | EditError] | None:
    """Apply what is no SEARCH/REPLACE but a patch of this one file; None for what is no patch."""
    operations = parse_operations(diff)
    if isinstance(operations, EditError) and operations.code is ErrorCode.NO_MARKER:
        operations = parse_unified(diff)
    match operations:
        case EditError(code=ErrorCode.NO_MARKER):
            return None
        case EditError():
            return EditFormat.APPLY_PATCH, operations
        case (UpdateFile(path=path, move_to=None, sections=sections, form=form),) if _is_named(path, name):
            return form, apply_sections(pre, sections)
        case _:
            said = f"The patch does something else than change {name}. Change one file with each call."
            return EditFormat.APPLY_PATCH, EditError(ErrorCode.WRONG_FILE, said)


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
    return _outcome(apply_sections(pre, sections), form, name)


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
