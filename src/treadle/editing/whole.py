"""A whole new text: what the model means to be in the file, or why the text cannot be all of it."""

import re
from collections.abc import Sequence
from pathlib import PurePath

from treadle.editing.edit_results import AppliedBlock, EditError, EditResult, ErrorCode, LineRange, Tier
from treadle.editing.elision import placeholders
from treadle.editing.line_keys import TextViews, is_blank
from treadle.editing.markers import MarkerParser, is_path
from treadle.editing.merge import line_changes
from treadle.editing.source import Hunk, WorkingText, plain_lines, read_source

_FENCE = re.compile(r"(```+|~~~+)[^`]*")
_PROSE = frozenset({".md", ".markdown", ".mdx", ".mdc", ".mkd", ".qmd", ".rmd", ".rst", ".txt", ".adoc", ".org"})
_PATCHES = frozenset({".patch", ".diff", ".txt", ".md"})
_DIFF = ("--- ", "+++ ", "@@ ")
_FEW_LINES = 3


def apply_whole(pre: str, text: str, file_name: str | None = None) -> EditResult | EditError:
    """`text` instead of `pre`, with the line ends, byte order mark and final newline of `pre`."""
    source = read_source(pre)
    new = plain_lines(unfenced(text, pre, file_name))
    known = {line.strip() for line in source.lines}
    omitted = placeholders(new, known, TextViews(source.lines)) if source.lines else ()
    if omitted:
        return EditError(
            ErrorCode.ELISION,
            f"The line {new[min(omitted)].strip()!r} stands for omitted lines, which would be lost. Write the whole "
            "text, or change parts of the file with an edit.",
        )
    work = WorkingText(source)
    opcodes = line_changes(source.lines, new)
    if not opcodes:
        return EditError(
            ErrorCode.NO_CHANGE, "The file already has this text. Continue with the next step, or read the file."
        )
    work.splice([Hunk(low, high, new[new_low:new_high]) for _, low, high, new_low, new_high in opcodes])
    lines = LineRange(1, len(source.lines))
    return EditResult(work.text(), (AppliedBlock(Tier.WHOLE, lines),), work.changes())


def unfenced(text: str, pre: str, file_name: str | None) -> str:
    """The text without one code fence around all of it, where the fence cannot be a part of the file."""
    lines = plain_lines(text.strip())
    fence = _FENCE.fullmatch(lines[0]) if len(lines) > 1 else None
    suffix = PurePath(file_name or "").suffix.lower()
    # A new file without a suffix may be prose as well.
    if fence is None or lines[-1].strip() != fence[1] or suffix in _PROSE or not (pre or suffix):
        return text
    # A bare fence ends the first one, so there are several; indented ones are of the code.
    inner = next((line.rstrip() for line in lines[1:-1] if line.startswith(fence[1])), "")
    if inner == fence[1] or _is_fence(pre):
        return text
    return "".join(f"{line}\n" for line in lines[1:-1])


def _is_fence(text: str) -> bool:
    return _FENCE.match(text.lstrip()) is not None


def is_only_blocks(pre: str, text: str) -> bool:
    """Whether the text for a file is SEARCH/REPLACE blocks for it, with at most a few words around them.

    It is the new text itself where the file has such markers, or where there is more around them.
    """
    outside, blocks = _around_blocks(plain_lines(text))
    if not blocks or _around_blocks(plain_lines(pre))[1]:
        return False
    return not outside or (bool(pre) and len(outside) <= _FEW_LINES and not _known(outside, pre))


def is_text_around_blocks(pre: str, text: str) -> bool:
    """Whether the text for a file has blocks, and of what is around them the file has little."""
    outside, blocks = _around_blocks(plain_lines(text))
    return blocks > 0 and not _around_blocks(plain_lines(pre))[1] and 2 * _known(outside, pre) < len(outside)


def _known(outside: Sequence[str], pre: str) -> int:
    known = {line.strip() for line in plain_lines(pre)}
    return sum(line in known for line in outside)


def is_only_patch(text: str, file_name: str) -> bool:
    """Whether the text for a file that is no patch is a patch."""
    suffix = PurePath(file_name).suffix.lower()
    lines = [line for line in plain_lines(text) if not is_blank(line)]
    if not suffix or suffix in _PATCHES or len(lines) < len(_DIFF):
        return False
    if lines[0].strip().removesuffix(" ***") == "*** Begin Patch":
        return lines[-1].strip().removesuffix(" ***") == "*** End Patch"
    return all(line.startswith(mark) for line, mark in zip(lines, _DIFF, strict=False))


def _around_blocks(lines: Sequence[str]) -> tuple[list[str], int]:
    """The stripped visible lines that are in no block, without fences and paths, and how many blocks are begun."""
    parser = MarkerParser()
    outside: list[str] = []
    blocks = 0
    for line in lines:
        was_open = parser.open is not None
        parser.push(line)
        if not was_open and parser.open is not None:
            blocks += 1
        elif not was_open and not is_blank(line) and not _is_fence(line) and not is_path(line):
            outside.append(line.strip())
    return outside, blocks
