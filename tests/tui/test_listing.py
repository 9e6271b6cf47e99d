"""A list as plain lines: which lines take a row, which filter, and which do nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui.test_harmless import FORBIDDEN
from treadle.tui.lists.choice_list import Choosing, ListRow
from treadle.tui.lists.filter_list import PickerRow
from treadle.tui.reader.numbered import NotUnderstood
from treadle.tui.reader.plain_list import ListWord, NumberedList, TakenRow, list_rows, listing_lines, take_row

NAMES = tuple(f"model-{number}" for number in range(1, 31))
LONG = NumberedList(
    choosing=Choosing(title="Which?", rows=tuple(ListRow(name) for name in NAMES), escape=None, filters=True),
    words={"all": "the others"},
    after=frozenset({"low", "default"}),
)
SHORT = NumberedList(
    choosing=Choosing(title="Sure?", rows=(ListRow("No"), ListRow("Yes")), details=("  why",), leaving="no")
)


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("1", TakenRow(0)),
        (" 20 ", TakenRow(19)),
        ("3 low default", TakenRow(2, ("low", "default"))),
        ("3 and more", NotUnderstood()),
        ("21", NotUnderstood()),
        ("0", NotUnderstood()),
        ("-1", NumberedList(choosing=LONG.choosing, typed="-1", words=LONG.words, after=LONG.after)),
        ("9" * 5_000, NotUnderstood()),
        ("", TakenRow(None)),
        ("all", ListWord("all")),
    ],
)
def test_a_number_that_was_read_out_takes_its_row(line: str, taken: object) -> None:
    assert take_row(LONG, line) == taken


@pytest.mark.parametrize("line", ["y", "yes", "Yes", "2 things", "1+", "1.", "²", "２", "3", "all", "1 2"])
def test_a_list_without_a_filter_takes_nothing_but_its_numbers(line: str) -> None:
    assert take_row(SHORT, line) == NotUnderstood()


def test_what_is_typed_filters_and_the_numbers_stay_those_of_the_whole_list() -> None:
    filtered = take_row(LONG, "model-27")
    assert isinstance(filtered, NumberedList)
    assert "27. model-27" in listing_lines(filtered)
    assert take_row(filtered, "1") == NotUnderstood()
    assert take_row(filtered, "27") == TakenRow(26)
    assert take_row(filtered, "") == LONG
    nothing = take_row(LONG, "zzz")
    assert isinstance(nothing, NumberedList)
    assert "Nothing fits zzz." in listing_lines(nothing)


def test_a_list_is_read_with_its_numbers_the_details_only_when_they_are_wanted() -> None:
    assert listing_lines(SHORT) == [
        "Sure?",
        "1. No",
        "2. Yes",
        "Type a number and press Enter. details: more about it. Enter alone: no.",
    ]
    opened = take_row(SHORT, "details")
    assert isinstance(opened, NumberedList)
    assert listing_lines(opened)[1] == "why"
    assert listing_lines(LONG)[-2:] == [
        "10 more.",
        "Type a number and press Enter. Letters search. all: the others. Enter alone: back.",
    ]


def test_the_columns_of_a_picker_are_read_after_its_name() -> None:
    rows = (PickerRow(id="a", columns=("2 h", "Fix it", "", "+3 -1"), search="", below="first"),)
    assert list_rows(rows, 1) == (ListRow("Fix it", "2 h, +3 -1, first"),)


@settings(max_examples=60)
@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=4), st.text(max_size=10))
def test_nothing_in_a_list_steers_the_terminal(title: str, names: list[str], typed: str) -> None:
    rows = tuple(ListRow(name, name) for name in names)
    choosing = Choosing(title=title, rows=rows, text=(title,), problem=title, details=(title,), filters=True)
    listing = NumberedList(choosing=choosing, typed=typed, opened=True)
    assert not FORBIDDEN.search("".join(listing_lines(listing)))
    assert not any("\n" in row for row in listing_lines(listing))
    assert isinstance(take_row(listing, typed), NumberedList | TakenRow | NotUnderstood | ListWord)
