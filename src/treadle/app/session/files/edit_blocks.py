"""The SEARCH/REPLACE blocks of an edit as places in its text, for surfaces that let a person choose among them."""

from collections.abc import Sequence
from itertools import accumulate


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
