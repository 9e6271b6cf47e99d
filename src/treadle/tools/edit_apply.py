"""Applying a model's edit to a text: the one place of the tools that knows the edit engine."""

from collections.abc import Sequence
from typing import assert_never

from treadle.editing import EditError, EditFormat, EditResult, Section, apply_edit, apply_sections
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import EditReport


def apply_blocks(pre: str, diff: str, name: str) -> tuple[str, EditReport]:
    """Apply SEARCH/REPLACE blocks to the text of the file `name`. Raises `ToolError` with what to do next."""
    return _outcome(apply_edit(EditFormat.SEARCH_REPLACE, pre, diff, file_name=name), EditFormat.SEARCH_REPLACE, name)


def apply_patch_sections(pre: str, sections: Sequence[Section], name: str) -> tuple[str, EditReport]:
    """Apply the sections of a patch to the text of the file `name`. Raises `ToolError` with what to do next."""
    return _outcome(apply_sections(pre, sections), EditFormat.APPLY_PATCH, name)


def replace_whole(pre: str, content: str, name: str) -> tuple[str, EditReport]:
    """Take `content` instead of `pre`, in the line ends that `pre` uses; a new file gets a final newline."""
    if not pre:
        text = content if not content or content.endswith("\n") else f"{content}\n"
        return text, EditReport(path=name, format=EditFormat.WHOLE.value)
    return _outcome(apply_edit(EditFormat.WHOLE, pre, content), EditFormat.WHOLE, name)


def _outcome(outcome: EditResult | EditError, form: EditFormat, name: str) -> tuple[str, EditReport]:
    match outcome:
        case EditResult(text=text, blocks=blocks):
            tiers = tuple(block.tier.value for block in blocks)
            return text, EditReport(path=name, format=form.value, tiers=tiers)
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
