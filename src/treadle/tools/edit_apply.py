"""Applying a model's edit to a text: the one place of the tools that knows the edit engine."""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from treadle.editing import EditError, EditFormat, EditResult, ErrorCode, Section, apply_edit, apply_sections
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import EditReport


def apply_blocks(pre: str, diff: str, name: str, *, replace_all: bool = False) -> tuple[str, EditReport]:
    """Apply SEARCH/REPLACE blocks to the text of the file `name`. Raises `ToolError` with what to do next."""
    form = EditFormat.SEARCH_REPLACE
    outcome = apply_edit(form, pre, diff, file_name=name, replace_all=replace_all)
    if not replace_all and isinstance(outcome, EditError) and outcome.code is ErrorCode.AMBIGUOUS:
        outcome = replace(outcome, message=f"{outcome.message} If all are meant, set replace_all.")
    return _outcome(outcome, form, name, count=replace_all)


def apply_patch_sections(pre: str, sections: Sequence[Section], name: str) -> tuple[str, EditReport]:
    """Apply the sections of a patch to the text of the file `name`. Raises `ToolError` with what to do next."""
    return _outcome(apply_sections(pre, sections), EditFormat.APPLY_PATCH, name)


def replace_whole(pre: str, content: str, name: str) -> tuple[str, EditReport]:
    """Take `content` instead of `pre`, in the line ends that `pre` uses; a new file gets a final newline."""
    if not pre:
        text = content if not content or content.endswith("\n") else f"{content}\n"
        return text, EditReport(path=name, format=EditFormat.WHOLE.value)
    return _outcome(apply_edit(EditFormat.WHOLE, pre, content), EditFormat.WHOLE, name)


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
            raise ToolError(explain(outcome), edit=report)
        case _:
            assert_never(outcome)


def explain(error: EditError) -> str:
    """Tell the model why an edit was refused, what really stands there, and that nothing was changed."""
    where = f" (block {error.block})" if error.block is not None else ""
    parts = [f"Refused [{error.code}]{where}: nothing was changed. {error.message}"]
    if error.nearest:
        parts.append(f"The nearest text in the file:\n{error.nearest}")
    return "\n".join(parts)
