"""Applying a model's edit to a text: the one place of the tools that knows the edit engine."""

from typing import assert_never

from treadle.editing import EditError, EditFormat, EditResult, apply_edit
from treadle.protocol.errors import ToolError


def apply_blocks(pre: str, diff: str, name: str) -> str:
    """Apply SEARCH/REPLACE blocks to the text of the file `name`. Raises `ToolError` with what to do next."""
    return _text_of(apply_edit(EditFormat.SEARCH_REPLACE, pre, diff, file_name=name))


def replace_whole(pre: str, content: str) -> str:
    """Take `content` instead of `pre`, in the line ends that `pre` uses; a new file gets a final newline."""
    if not pre:
        return content if not content or content.endswith("\n") else f"{content}\n"
    return _text_of(apply_edit(EditFormat.WHOLE, pre, content))


def _text_of(outcome: EditResult | EditError) -> str:
    match outcome:
        case EditResult(text=text):
            return text
        case EditError():
            raise ToolError(explain(outcome))
        case _:
            assert_never(outcome)


def explain(error: EditError) -> str:
    """Tell the model why an edit was refused, what really stands there, and that nothing was changed."""
    where = f" (block {error.block})" if error.block is not None else ""
    parts = [f"Refused [{error.code}]{where}: {error.message} Nothing was changed."]
    if error.candidates:
        places = ", ".join(f"lines {one.start}-{one.end}" for one in error.candidates)
        parts.append(f"Places that fit: {places}.")
    if error.nearest:
        parts.append(f"The nearest text in the file:\n{error.nearest}")
    return "\n".join(parts)
