"""Show a change to a person or a model: a unified diff, and the final text around each change."""

from difflib import unified_diff

from treadle.editing.refusals import numbered
from treadle.editing.results import EditResult
from treadle.editing.source import plain_lines

_NEAR = 6


def display_diff(pre: str, post: str, *, path: str = "", context: int = 3) -> str:
    """A unified diff with right counts; line ends are left out, so a change of these alone shows nothing."""
    old, new = plain_lines(pre), plain_lines(post)
    return "\n".join(unified_diff(old, new, path, path, n=context, lineterm=""))


def final_text(result: EditResult) -> str:
    """The final text around every change with line numbers, near ones together, `...` between others."""
    lines = plain_lines(result.text)
    spans: list[tuple[int, int]] = []
    for change in result.changes:
        start, end = change.new.start - 1, max(change.new.end, change.new.start - 1)
        if spans and start - spans[-1][1] <= _NEAR:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return "\n...\n".join(numbered(lines, start, end, most=None) for start, end in spans)
