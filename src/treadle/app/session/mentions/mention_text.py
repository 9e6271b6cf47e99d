"""What a text names with an `@`: a path, perhaps with lines or in quotes, an address, or a word such as `@problems`."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct

from treadle.protocol.patterns import regex

MENTION_START = r"(?:(?<=\s)|(?<!.))@"
"""Only after a blank, or at the beginning of a line: the address of a mail names nothing."""

LINE_RANGE = r":\d+(?:-\d*)?"
_WHOLE = regex(rf'{MENTION_START}(?:"([^"\n]+)"({LINE_RANGE})?|([^\s"]\S*))')
_ENDS_IN_LINES = regex(rf"({LINE_RANGE})\Z")
_ADDRESS = regex(r"https?://\S")
_LONGEST_NUMBER = 9

MENTION_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "problems": "what linters and language servers report",
        "terminal": "the output of the last commands",
        "git-changes": "what is not committed yet",
    }
)
"""Mentions that are no paths, and what each brings; a file of that name is written `@./problems`."""

PUNCTUATION = ".,;:!?)]}'"
"""What can follow on a mention and is none of it."""


class Named(Struct, frozen=True, kw_only=True):
    """A mention in a text, from `start` to `end`. `target` is without quotes and lines; `last` is None for the end.

    Lines count from 1; `first` is 0 where no lines are named.
    """

    start: int
    end: int
    target: str
    first: int = 0
    last: int | None = None
    quoted: bool = False

    @property
    def is_address(self) -> bool:
        """Whether it is a web address."""
        return not self.quoted and _ADDRESS.match(self.target) is not None

    @property
    def lines(self) -> str:
        """The lines as they are written behind a path; empty where none are named."""
        if not self.first:
            return ""
        last = "" if self.last is None else self.last
        return f":{self.first}" if self.last == self.first else f":{self.first}-{last}"


def find_named(text: str) -> Iterator[Named]:
    """Find the mentions of a text; punctuation behind one is none of it."""
    if "@" not in text:
        return
    for found in _WHOLE.finditer(text):
        start = found.start()
        if found[1] is not None:
            first, last = _lines(found[2] or "")
            yield Named(start=start, end=found.end(), target=found[1], first=first, last=last, quoted=True)
            continue
        word = found[3].rstrip(PUNCTUATION)
        if not word:
            continue
        end = found.start(3) + len(word)
        lines = None if _ADDRESS.match(word) else _ENDS_IN_LINES.search(word)
        if lines is None or not lines.start():
            yield Named(start=start, end=end, target=word)
        else:
            first, last = _lines(lines[1])
            yield Named(start=start, end=end, target=word[: lines.start()], first=first, last=last)


def without_lines(path: str) -> str:
    """Take the lines off a path that was mentioned."""
    return _ENDS_IN_LINES.sub("", path)


def _lines(written: str) -> tuple[int, int | None]:
    """Read `:10`, `:10-` or `:10-40`; lines that are written the wrong way round are turned."""
    first, dash, last = written.removeprefix(":").partition("-")
    if not first:
        return 0, None
    begin = max(1, int(first[:_LONGEST_NUMBER]))
    if not dash:
        return begin, begin
    end = int(last[:_LONGEST_NUMBER]) if last else None
    return (begin, None) if end is None else (min(begin, max(end, 1)), max(begin, end))
