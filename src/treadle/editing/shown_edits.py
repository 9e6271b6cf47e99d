"""Show a change to a person or a model: a unified diff, and the final text around each change."""

import re
from collections.abc import Sequence
from difflib import unified_diff

from treadle.editing.edit_refusals import numbered_context
from treadle.editing.edit_results import EditResult
from treadle.editing.source import plain_lines

_NEAR = 6
_FAR = 400
"""Lines above a change among which its function is searched."""

_HEAD = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_DEFINITION = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|static|abstract|async|pub|final)\s+)*"
    r"(def|class|func|function|fn|interface|struct|enum|trait|impl|module)\s+([A-Za-z_][\w.]*)"
)


def display_diff(pre: str, post: str, *, path: str = "", context: int = 3) -> str:
    """A unified diff with right counts; line ends are left out, so a change of these alone shows nothing.

    The head of each part names the function or class that its first change is in, as git does.
    """
    old, new = plain_lines(pre), plain_lines(post)
    diff = list(unified_diff(old, new, path, path, n=context, lineterm=""))
    heads = [number for number, line in enumerate(diff) if _HEAD.match(line)]
    for number in heads:
        diff[number] += _section(old, diff, number)
    return "\n".join(diff)


def _section(old: Sequence[str], diff: Sequence[str], head: int) -> str:
    """Find the nearest definition at or above the first changed line of the part whose head is at `head`."""
    found = _HEAD.match(diff[head])
    assert found is not None  # noqa: S101 - `head` is one
    same = next(number for number, line in enumerate(diff[head + 1 :]) if line[:1] != " ")
    changed = int(found[1]) + same
    for line in reversed(old[max(0, changed - _FAR) : max(0, changed - 1)]):
        if definition := defined_in(line):
            return f" {definition}"
    return ""


def defined_in(line: str) -> str:
    """Give what a line begins to define, such as `def total`; empty where it defines nothing."""
    found = _DEFINITION.match(line)
    return f"{found[1]} {found[2]}" if found else ""


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
    return "\n...\n".join(numbered_context(lines, start, end, most=None) for start, end in spans)
