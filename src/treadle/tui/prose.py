"""Cutting a streamed answer into blocks of Markdown that are finished and the one that still grows."""

import re

LONGEST_BLOCK = 8_000
"""Characters that a block may have before it is cut at a line end, so that the living part stays small."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")


def split_finished(text: str) -> tuple[str, str]:
    """Cut `text` after its last finished block: (finished, growing).

    Blocks end at blank lines outside code fences; an indented line goes on with the block before it. A block that
    grows too long is cut at a line end, inside a fence with the fence closed and opened again.
    """
    cut, open_fence = _last_cut(text)
    finished, growing = text[:cut], text[cut:]
    if len(growing) <= LONGEST_BLOCK:
        return finished, growing
    line_end = growing.rfind("\n") + 1 or len(growing)
    head, rest = growing[:line_end], growing[line_end:]
    if open_fence:
        closing = _FENCE.match(open_fence)
        mark = closing.group(1) if closing else "```"
        head, rest = f"{head.rstrip()}\n{mark}\n", f"{open_fence}\n{rest}"
    return finished + head, rest


def _last_cut(text: str) -> tuple[int, str]:
    """Find where the last finished block ends, and the opening line of a fence that is still open."""
    cut = position = 0
    fence = ""
    blank = False
    for line in text.splitlines(keepends=True):
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif not line.strip():
            blank = True
        else:
            if blank and not line[0].isspace():
                cut = position
            blank = False
            fence = _opening(line)
        position += len(line)
    return cut, fence


def _opening(line: str) -> str:
    found = _FENCE.match(line)
    if found is None or (found.group(1)[0] == "`" and "`" in found.group(2)):
        return ""
    return line.rstrip()


def _closes(line: str, opening: str) -> bool:
    start, end = _FENCE.match(opening), _FENCE.match(line)
    if start is None or end is None or end.group(2).strip():
        return False
    return end.group(1).startswith(start.group(1))
