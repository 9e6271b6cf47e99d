"""A list as plain lines, answered by the number of a row. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.escape import printable
from treadle.tui.lists.choice_list import Choosing, ListRow, fitting_rows
from treadle.tui.lists.filter_list import PickerRow
from treadle.tui.reader.numbered import NotUnderstood

_MOST = 20
"""Rows that are read out; the others are found by some of their letters."""

_DETAILS = "details"
_LONGEST_NUMBER = 9


class NumberedList(Struct, frozen=True, kw_only=True):
    """What is to be chosen, what is typed to filter it, and whether its details are wanted.

    `words` are lines that do something else, each with what it does; `after` may follow a number, as `hint` says.
    """

    choosing: Choosing
    typed: str = ""
    opened: bool = False
    words: Mapping[str, str] = {}
    after: frozenset[str] = frozenset()
    hint: str = ""


class TakenRow(Struct, frozen=True):
    """The place of the row that was taken, None for none, and the words that followed its number."""

    row: int | None
    words: tuple[str, ...] = ()


class ListWord(Struct, frozen=True):
    """One of the lines that do something else."""

    text: str


def list_rows(rows: Sequence[PickerRow], wide: int) -> tuple[ListRow, ...]:
    """Give the rows of a picker with columns, of which the one at `wide` is the name."""
    return tuple(
        ListRow(
            row.columns[wide],
            ", ".join(filter(None, (*row.columns[:wide], *row.columns[wide + 1 :], row.flaw or row.below))),
        )
        for row in rows
    )


def listing_lines(listing: NumberedList) -> list[str]:
    """Write what is asked, the rows with their numbers, and how to answer."""
    choosing = listing.choosing
    title = " ".join(filter(None, (choosing.title, choosing.about)))
    details = choosing.details if listing.opened else ()
    rows = [f"{number + 1}. {_row(choosing.rows[number])}" for number in _shown(listing)]
    above = [_line(one) for one in (title, *filter(None, [choosing.problem]), *choosing.text, *details)]
    return [*above, *rows, *_more(listing), _how(listing)]


def _row(row: ListRow) -> str:
    return _line(f"{row.label} - {row.about}" if row.about else row.label)


def _line(text: str) -> str:
    """A text that goes on in a new line could look like a row of the list."""
    return printable(" ".join(text.split()))


def _fitting(listing: NumberedList) -> Sequence[int]:
    return fitting_rows(listing.choosing, listing.typed)


def _shown(listing: NumberedList) -> Sequence[int]:
    return _fitting(listing)[:_MOST]


def _more(listing: NumberedList) -> list[str]:
    more = len(_fitting(listing)) - _MOST
    if more > 0:
        return [f"{more} more."]
    return [] if _shown(listing) else [f"Nothing fits {_line(listing.typed)}." if listing.typed else "Nothing."]


def _how(listing: NumberedList) -> str:
    choosing = listing.choosing
    said = ["Type a number and press Enter."] if _shown(listing) else []
    said += [listing.hint] if listing.hint and _shown(listing) else []
    if choosing.filters and len(choosing.rows) > 1:
        said.append("Letters search.")
    if choosing.details and not listing.opened:
        said.append(f"{_DETAILS}: more about it.")
    said += [f"{word}: {about}." for word, about in listing.words.items()]
    return " ".join([*said, f"Enter alone: {'the whole list' if listing.typed else choosing.leaving}."])


def take_row(listing: NumberedList, text: str) -> NumberedList | TakenRow | ListWord | NotUnderstood:
    """Take a line; only a number that was read out takes a row."""
    first, *rest = text.split() or [""]
    if not first:
        return replace(listing, typed="") if listing.typed else TakenRow(listing.choosing.escape)
    if first.isascii() and first.isdecimal():
        number = int(first[:_LONGEST_NUMBER]) - 1
        taken = number in _shown(listing) and listing.after.issuperset(rest)
        return TakenRow(number, tuple(rest)) if taken else NotUnderstood()
    if not rest and first == _DETAILS and listing.choosing.details:
        return replace(listing, opened=True)
    if not rest and first in listing.words:
        return ListWord(first)
    return replace(listing, typed=text.strip()) if listing.choosing.filters else NotUnderstood()
