"""A memory file: its entries, what they cost in each request, and the text with one added, replaced or forgotten.

The file is the person's own to edit, so whatever is in it is read: bullets and paragraphs are entries, headings,
headers and comments are not.
"""

from collections.abc import Iterator, Sequence
from datetime import date

from msgspec import Struct

from treadle.context.transcript import estimated_tokens
from treadle.protocol.patterns import regex

MOST_REMEMBERED = 1_000
"""Tokens of one file that are sent, and up to which it may grow by proposals."""

LONGEST_ENTRY = 600
"""Characters of an entry that is added."""

_OLD_DAYS = 180
_LARGE_TOKENS = 100

_BULLET = regex(r"[ \t]?(?:[-*+]|\d{1,3}[.)])[ \t]+(?=\S)")
_DATE = regex(r"[(\[]?(\d{4}-\d{2}-\d{2})[)\]]?[ \t]*:?[ \t]*(?=\S)")
_NO_ENTRY = regex(r"#{1,6}(?:[ \t].*)?|[-*_= \t]{3,}|<!--.*-->")


class MemoryEntry(Struct, frozen=True, kw_only=True):
    """One thing that is remembered, from line `begin` to before line `end` of the file; `day` is None without one."""

    text: str
    begin: int
    end: int
    day: date | None = None

    @property
    def line(self) -> str:
        """The entry as the model reads it."""
        return f"{self.day}: {self.text}" if self.day is not None else f"(no date) {self.text}"

    @property
    def tokens(self) -> int:
        """An estimate of what it costs in each request."""
        return estimated_tokens(len(f"{self.line}\n".encode()))

    def notes(self, today: date) -> tuple[str, ...]:
        """Say what speaks for looking at it again: it is old, large, or nobody knows of when it is."""
        days = 0 if self.day is None else (today - self.day).days
        return (
            *(("without a date",) if self.day is None else ()),
            *((f"old: {days} days",) if days > _OLD_DAYS else ()),
            *(("large",) if self.tokens > _LARGE_TOKENS else ()),
        )


def read_memory(text: str) -> tuple[MemoryEntry, ...]:
    """Find the entries of a file, in its order."""
    lines = [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]
    return tuple(_entry(lines, begin, end) for begin, end in _places(lines))


def _places(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Give where entries begin and end: at a bullet, at the first line of a paragraph; both go on in the next line."""
    begin = None
    for number in range(_after_header(lines), len(lines)):
        line = lines[number]
        over = not line.strip() or _NO_ENTRY.fullmatch(line.strip()) is not None
        if begin is not None and (over or _BULLET.match(line)):
            yield begin, number
            begin = None
        if begin is None and not over:
            begin = number
    if begin is not None:
        yield begin, len(lines)


def _after_header(lines: Sequence[str]) -> int:
    """Give the first line after a header between two lines of `---`, where the file begins with one."""
    if lines[0].strip() != "---":
        return 0
    return next((number + 1 for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)


def _entry(lines: Sequence[str], begin: int, end: int) -> MemoryEntry:
    bullet = _BULLET.match(lines[begin])
    text = " ".join(" ".join((lines[begin][bullet.end() if bullet else 0 :], *lines[begin + 1 : end])).split())
    found = _DATE.match(text)
    day = None if found is None else _day(found[1])
    if found is not None and day is not None:
        text = text[found.end() :]
    return MemoryEntry(text=text, begin=begin, end=end, day=day)


def _day(written: str) -> date | None:
    try:
        return date.fromisoformat(written)
    except ValueError:
        return None


def sent_entries(entries: Sequence[MemoryEntry]) -> tuple[MemoryEntry, ...]:
    """Give the entries that are sent: all, or of a file that grew by hand the first ones within the bound."""
    left, sent = MOST_REMEMBERED, list[MemoryEntry]()
    for entry in entries:
        left -= entry.tokens
        if left < 0:
            break
        sent.append(entry)
    return tuple(sent)


def with_entry(text: str, said: str, day: date, replaced: MemoryEntry | None = None) -> str:
    """Give the file with one more entry at its end, or with one in the place of another; all else stays as it is."""
    end = "\r\n" if "\r\n" in text else "\n"
    line = f"- {day}: {' '.join(said.split())}"
    if replaced is None:
        gap = end if text.removeprefix("\ufeff") and not text.endswith("\n") else ""
        return f"{text}{gap}{line}{end}"
    return _spliced(text, replaced, [line])


def without_entry(text: str, entry: MemoryEntry) -> str:
    """Give the file without an entry; all else stays as it is."""
    return _spliced(text, entry, [])


def _spliced(text: str, entry: MemoryEntry, instead: Sequence[str]) -> str:
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = text.removeprefix(mark).split("\n")
    cr = "\r" if lines[entry.begin].endswith("\r") else ""
    return mark + "\n".join([*lines[: entry.begin], *(f"{line}{cr}" for line in instead), *lines[entry.end :]])
