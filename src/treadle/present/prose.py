"""Cutting a streamed answer into blocks of Markdown that are finished and the one that still grows."""

import re

from msgspec import Struct
from msgspec.structs import replace

LONGEST_BLOCK = 8_000
"""Characters that a block may have before it is cut at a line end, so that the living part stays small."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")


class Growing(Struct, frozen=True, kw_only=True):
    """Markdown since the last cut. `line` is where its last line begins; `fence` opened a code fence that is open.

    What nobody wrote: the first `opened` characters open a fence again, the last `closed` of the block before end it.
    `cut` says that the block before was cut because it was too long.
    """

    text: str = ""
    line: int = 0
    fence: str = ""
    after_blank: bool = False
    opened: int = 0
    closed: int = 0
    cut: bool = False


def grow(growing: Growing, more: str) -> tuple[str, Growing]:
    """Add text; gives the blocks that are finished by it, and the rest. Every line is looked at once.

    A block that grows too long is cut at a line end, inside a fence with the fence closed and opened again.
    """
    blocks, growing = cut_blocks(growing, more)
    finished = "".join(blocks)
    if len(growing.text) <= LONGEST_BLOCK:
        return finished, growing
    head, growing = _cut_long(growing)
    return finished + head, growing


def cut_blocks(growing: Growing, more: str) -> tuple[list[str], Growing]:
    """Add text; gives each block that is finished by it, and the rest, however long that is.

    Blocks end at blank lines outside code fences; an indented line goes on with the block before it.
    """
    text, begins = growing.text + more, growing.line
    fence, after_blank, opened = growing.fence, growing.after_blank, growing.opened
    may_open = "```" in text or "~~~" in text
    blocks: list[str] = []
    cut = 0
    while (end := text.find("\n", begins)) >= 0:
        line = text[begins:end]
        words = line.strip()
        if after_blank and words and not line[0].isspace():
            blocks.append(text[cut:begins])
            cut, opened = begins, 0
        if fence:
            fence = "" if closes_fence(line, fence) else fence
        else:
            fence, after_blank = opening_fence(line) if may_open else "", not words
        begins = end + 1
    return blocks, Growing(text=text[cut:], line=begins - cut, fence=fence, after_blank=after_blank, opened=opened)


def _split(growing: Growing, cut: int) -> tuple[str, Growing]:
    opened = 0 if cut else growing.opened
    return growing.text[:cut], replace(growing, text=growing.text[cut:], line=growing.line - cut, opened=opened)


def _cut_long(growing: Growing) -> tuple[str, Growing]:
    opening = f"{growing.fence}\n" if growing.fence else ""
    whole_lines = growing.line > len(opening)
    head, rest = _split(growing, growing.line if whole_lines else len(growing.text))
    closing = "" if head.endswith("\n") else "\n"
    closing += f"{_mark(growing.fence)}\n" if growing.fence else ""
    size = len(opening)
    return head + closing, replace(
        rest, text=opening + rest.text, line=size, opened=size, closed=len(closing), cut=True
    )


def opening_fence(line: str) -> str:
    """Give the line when it opens a code fence, without the blanks behind it; empty for any other."""
    found = _FENCE.match(line)
    if found is None or (found.group(1)[0] == "`" and "`" in found.group(2)):
        return ""
    return line.rstrip()


def closes_fence(line: str, opening: str) -> bool:
    """Whether a line ends what `opening` began."""
    end = _FENCE.match(line)
    return end is not None and not end.group(2).strip() and end.group(1).startswith(_mark(opening))


def _mark(opening: str) -> str:
    found = _FENCE.match(opening)
    return found.group(1) if found is not None else "```"
