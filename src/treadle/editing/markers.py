"""Parse SEARCH/REPLACE blocks, with the markers models really write."""

import re
from dataclasses import dataclass, field

from treadle.editing.edit_results import EditBlock, EditError, ErrorCode, Section
from treadle.editing.source import plain_lines

_START = re.compile(
    r"\s*(-{3,}|<{3,})\s*(?:SEARCH|ORIGINAL)\b\s*>?[\s:(\[]*(?:lines?\s*)?(\d{1,9})?[\s:)\]-]*", re.IGNORECASE
)
_SEPARATOR = re.compile(r"\s*(={3,})\s*")
_END = re.compile(r"\s*(\+{3,}|>{3,})\s*(?:REPLACE|UPDATED)\s*>?\s*", re.IGNORECASE)
_START_LINE = re.compile(r"\s*:start_line:\s*(\d{1,9})\s*")
_END_LINE = re.compile(r"\s*:end_line:\s*\d+\s*")
_RULE = re.compile(r"\s*-{3,}\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
_PATH = re.compile(r"[\w./\\@+-]*[\w-]\.\w{1,10}|[\w.@+-]+(?:/[\w.@+-]+)+")

_AROUND_PATH = "`*#: \t"
_LONGEST_MARKER = 200
_MOST_READINGS = 50


def is_path(line: str) -> bool:
    """Whether the line may be the path of the file that a block below it is for."""
    return _PATH.fullmatch(line.strip(_AROUND_PATH)) is not None


def is_block_start(line: str) -> bool:
    """Whether the line begins a SEARCH/REPLACE block."""
    return len(line) <= _LONGEST_MARKER and _START.fullmatch(line) is not None


@dataclass(slots=True)
class OpenBlock:
    """A block whose end has not been seen yet."""

    marker: str
    hint: int | None
    path: str | None
    fenced: bool
    body: list[str] = field(default_factory=list)
    separators: list[int] = field(default_factory=list)


class MarkerParser:
    """Takes a text line by line; a line completes a section, is refused, or is only remembered."""

    def __init__(self) -> None:
        self.open: OpenBlock | None = None
        self._path: str | None = None
        self._fenced = False

    def push(self, line: str) -> Section | EditError | None:
        """The section or the refusal that this line completes."""
        is_short = len(line) <= _LONGEST_MARKER
        start = _START.fullmatch(line) if is_short else None
        if self.open is None:
            return self._outside(line, start)
        if start is not None:
            return _error(ErrorCode.MALFORMED, "A block starts inside another one. End each with `+++++++ REPLACE`.")
        if is_short and _END.fullmatch(line) is not None:
            section = finished_section(self.open)
            self.open = None
            return section
        self._inside(self.open, line)
        return None

    def close(self, *, ended: bool) -> Section | EditError | None:
        """The end of the text; `ended` says that its last line is complete."""
        if self.open is None:
            return None
        block, self.open = self.open, None
        if block.separators and ended and _is_complete(block):
            return finished_section(block)
        missing = "its end marker" if block.separators else "the separator"
        return _error(
            ErrorCode.TRUNCATED,
            f"The block is cut off: {missing} is missing. Write it again, whole.",
        )

    def _outside(self, line: str, start: re.Match[str] | None) -> EditError | None:
        if start is not None:
            hint = int(start[2]) if start[2] else None
            self.open = OpenBlock(start[1], hint, self._path, self._fenced)
            return None
        if _END.fullmatch(line) is not None:
            return _error(
                ErrorCode.MALFORMED,
                "An end marker has no block, or a line of the content looks like one. Use longer markers then.",
            )
        if _FENCE.match(line) is not None:
            self._fenced = not self._fenced
        elif line.strip():
            self._path = line.strip(_AROUND_PATH) if is_path(line) else None
        return None

    def _inside(self, block: OpenBlock, line: str) -> None:
        if not block.body and not block.separators:
            hint = _START_LINE.fullmatch(line)
            if hint is not None:
                block.hint = int(hint[1])
                return
            if _END_LINE.fullmatch(line) is not None or (block.hint is not None and _RULE.fullmatch(line) is not None):
                return
        if _SEPARATOR.fullmatch(line) is not None:
            block.separators.append(len(block.body))
        block.body.append(line)


def parse_blocks(text: str) -> tuple[Section, ...] | EditError:
    """All blocks of a text; prose between them is ignored. `no_marker` when there is none."""
    sections, error = read_blocks(text)
    return sections if error is None else error


def read_blocks(text: str) -> tuple[tuple[Section, ...], EditError | None]:
    """The blocks of a text up to the first that cannot be read, and why it cannot."""
    parser = MarkerParser()
    sections: list[Section] = []
    for line in plain_lines(text):
        outcome = parser.push(line)
        if isinstance(outcome, EditError):
            return tuple(sections), outcome
        if outcome is not None:
            sections.append(outcome)
    last = parser.close(ended=text.endswith("\n"))
    if isinstance(last, EditError):
        return tuple(sections), last
    if last is not None:
        sections.append(last)
    if sections:
        return tuple(sections), None
    return (), _error(
        ErrorCode.NO_MARKER,
        "No SEARCH/REPLACE block found. Write `------- SEARCH`, the lines to find, `=======`, the new "
        "lines and `+++++++ REPLACE`, each marker on its own line.",
    )


def finished_section(block: OpenBlock) -> Section | EditError:
    """Every way to split a finished block at a line that may be its separator."""
    likely = [at for at in block.separators if len(block.body[at].strip()) == len(block.marker)]
    if len(likely) == 2 and likely[1] == len(block.body) - 1:
        return _error(
            ErrorCode.MALFORMED,
            "There is a second separator right above the end marker. Leave it out, or use longer markers if the file "
            "has such a line.",
        )
    places = likely or block.separators
    readings = tuple(
        EditBlock(tuple(block.body[:at]), tuple(_without_place(block, block.body[at + 1 :])), hint=block.hint)
        for at in places[: _MOST_READINGS + 1]
    )
    if not 0 < len(readings) <= _MOST_READINGS:
        return _error(
            ErrorCode.MALFORMED, "A block is not in two parts. Write one `=======` between search text and replacement."
        )
    return Section(readings, block.path)


def _without_place(block: OpenBlock, lines: list[str]) -> list[str]:
    """Leave out the line numbers that a model repeats above the new lines; they are for the place alone."""
    if block.hint is None or not lines or _START_LINE.fullmatch(lines[0]) is None:
        return lines
    rest = lines[2:] if len(lines) > 1 and _END_LINE.fullmatch(lines[1]) else lines[1:]
    return rest[1:] if rest and _RULE.fullmatch(rest[0]) else rest


def _is_complete(block: OpenBlock) -> bool:
    """Whether a block without an end marker is surely whole.

    The fence around it was closed, or its replacement ends in the telling line in which its search text ends.
    """
    search, new = block.body[: block.separators[0]], block.body[block.separators[0] + 1 :]
    written = [line for line in new if line.strip()]
    if block.fenced and written and written[-1].strip() == "```":
        while block.body[-1].strip() != "```":
            block.body.pop()
        block.body.pop()
        return len(block.separators) == 1
    wanted = [line for line in search if line.strip()]
    if len(block.separators) > 1 or len(wanted) < 2 or len(written) < 2 or wanted == written:
        return False
    last = wanted[-1].strip()
    return (
        written[-1].strip() == last
        and sum(map(str.isalnum, last)) >= 8
        and [line.strip() for line in written].count(last) == 1
        and [line.strip() for line in wanted].count(last) == 1
    )


def _error(code: ErrorCode, message: str) -> EditError:
    return EditError(code, message)
