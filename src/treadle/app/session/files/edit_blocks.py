"""The SEARCH/REPLACE blocks of an edit's text: where each one is, what is kept of them, and what they write."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from treadle.editing.edit_results import EditBlock, Section

BlockTexts = tuple[str, str]
"""The text that a block finds, and the one that it puts there; each line of both ends."""


def block_spans(text: str) -> tuple[slice, ...]:
    """Find the blocks, each with its markers, in characters of `text`; none when a part of it cannot be read."""
    from treadle.editing.edit_results import EditError
    from treadle.editing.markers import MarkerParser
    from treadle.editing.source import read_source

    source = read_source(text)
    sizes = [len(line) + len(end) for line, end in zip(source.lines, source.ends, strict=True)]
    edges = list(accumulate(sizes, initial=len(text) - sum(sizes)))
    parser = MarkerParser()
    spans: list[slice] = []
    begin = 0
    for number, line in enumerate(source.lines):
        was_open = parser.open is not None
        outcome = parser.push(line)
        if isinstance(outcome, EditError):
            return ()
        if outcome is not None:
            spans.append(slice(begin, edges[number + 1]))
        elif parser.open is not None and not was_open:
            begin = edges[number]
    last = parser.close(ended=text.endswith("\n"))
    if isinstance(last, EditError):
        return ()
    return tuple(spans) if last is None else (*spans, slice(begin, len(text)))


def keep_blocks(text: str, spans: Sequence[slice], kept: Sequence[bool]) -> str:
    """Leave out the blocks that are not kept; everything else stays verbatim."""
    pieces: list[str] = []
    end = 0
    for span, keep in zip(spans, kept, strict=True):
        pieces.append(text[end : span.stop] if keep else text[end : span.start])
        end = span.stop
    return "".join([*pieces, text[end:]])


def block_texts(text: str) -> tuple[BlockTexts, ...]:
    """Give what each block finds and what it puts there; none where one of them can be read in several ways."""
    sections = _sections(text)
    readings = [one.readings[0] for one in sections]
    found = tuple((_joined(one.search), _joined(one.replace)) for one in readings)
    return found if with_block_texts(text, [new for _, new in found]) == text else ()


def with_block_texts(text: str, texts: Sequence[str]) -> str | None:
    """Let the blocks put these texts there instead; None where the edit would not be read as exactly that.

    A block stays verbatim if its text is the same but for line ends. One that the last line of a text lacks is added.
    """
    spans, sections = block_spans(text), _sections(text)
    if not len(spans) == len(sections) == len(texts) or any(len(one.readings) != 1 for one in sections):
        return None
    pieces: list[str] = []
    meant: list[tuple[EditBlock, ...]] = []
    end = 0
    for span, section, new in zip(spans, sections, texts, strict=True):
        (old,) = section.readings
        lines = tuple(_ended(_unix(new)).split("\n")[:-1])
        same = _joined(lines) == _unix(_joined(old.replace))
        pieces += [text[end : span.start], text[span] if same else _with_new(text[span], len(old.replace), lines)]
        meant.append((old if same else replace(old, replace=lines),))
        end = span.stop
    changed = "".join([*pieces, text[end:]])
    return changed if [one.readings for one in _sections(changed)] == meant else None


def _with_new(block: str, count: int, lines: Sequence[str]) -> str:
    """Put lines where the last `count` ones above the end marker of a block are."""
    from treadle.editing.source import read_source

    source = read_source(block)
    whole = [f"{line}{end}" for line, end in zip(source.lines, source.ends, strict=True)]
    return "".join([*whole[: len(whole) - 1 - count], _joined(lines), *whole[-1:]])


def _sections(text: str) -> "tuple[Section, ...]":
    from treadle.editing.edit_results import EditError
    from treadle.editing.markers import parse_blocks

    sections = parse_blocks(text)
    return () if isinstance(sections, EditError) else sections


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
