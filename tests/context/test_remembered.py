from datetime import date

import pytest

from treadle.context.remembered import (
    MOST_REMEMBERED,
    MemoryEntry,
    read_memory,
    sent_entries,
    with_entry,
    without_entry,
)

DAY = date(2026, 11, 27)
ODD = (
    "\ufeff---\r\nowner: me\r\n---\r\n# What I know\r\n<!-- by hand -->\r\n- 2026-01-02: Use pnpm,\r\n  not npm.\r\n"
    "* [2026-13-45] no day\r\n\r\nA paragraph\r\nof two lines\r\n1. (2024-02-29) Numbered.\r\n- # no heading"
)


def texts(text: str) -> list[tuple[str, str]]:
    return [(str(entry.day), entry.text) for entry in read_memory(text)]


def test_bullets_and_paragraphs_are_entries_and_headings_headers_and_comments_are_not() -> None:
    assert texts(ODD) == [
        ("2026-01-02", "Use pnpm, not npm."),
        ("None", "[2026-13-45] no day"),
        ("None", "A paragraph of two lines"),
        ("2024-02-29", "Numbered."),
        ("None", "# no heading"),
    ]


@pytest.mark.parametrize("text", ["", "\ufeff", "\n\r\n", "# Only a heading\n", "---\nx: y\n---\n", "---"])
def test_a_file_without_entries_has_none(text: str) -> None:
    assert read_memory(text) == ()
    assert texts(with_entry(text, "New.", DAY)) == [("2026-11-27", "New.")]


def test_what_is_added_replaced_or_forgotten_leaves_every_other_byte() -> None:
    entries = read_memory(ODD)
    assert with_entry(ODD, "New\n thing.", DAY) == f"{ODD}\r\n- 2026-11-27: New thing.\r\n"
    for number, entry in enumerate(entries):
        others = [one for at, one in enumerate(texts(ODD)) if at != number]
        gone = without_entry(ODD, entry)
        assert texts(gone) == others
        assert gone.startswith("\ufeff---\r\nowner: me\r\n---\r\n# What I know\r\n")
        replaced = texts(with_entry(ODD, "New.", DAY, entry))
        assert replaced == [*texts(ODD)[:number], ("2026-11-27", "New."), *texts(ODD)[number + 1 :]]
    assert without_entry("- a\n- b\n", read_memory("- a\n- b\n")[1]) == "- a\n"


def test_an_entry_says_why_to_look_at_it_again() -> None:
    def notes(line: str) -> tuple[str, ...]:
        (entry,) = read_memory(line)
        return entry.notes(DAY)

    assert notes("- 2026-11-01: Short.") == ()
    assert notes("- 2026-05-31: 180 days ago.") == ()
    assert notes("- 2026-05-30: 181 days ago.") == ("old: 181 days",)
    assert notes("- Undated.") == ("without a date",)
    assert notes(f"- 2026-11-01: {'long ' * 100}") == ("large",)


def test_of_a_file_that_grew_by_hand_the_first_entries_within_the_bound_are_sent() -> None:
    entries = read_memory("".join(f"- 2026-01-01: Thing {number} {'x' * 100}\n" for number in range(100)))
    sent = sent_entries(entries)
    assert sent == entries[: len(sent)]
    assert sum(entry.tokens for entry in sent) <= MOST_REMEMBERED
    assert sum(entry.tokens for entry in entries[: len(sent) + 1]) > MOST_REMEMBERED
    assert sent_entries(entries[:3]) == entries[:3]
    assert sent_entries([MemoryEntry(text="y" * 10_000, begin=0, end=1)]) == ()
