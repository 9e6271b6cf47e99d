"""Lines are broken at blanks; nothing but blanks is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.reports.line_wrapping import columns, shortened, wrapped


@given(st.text(alphabet=st.characters(exclude_characters="\n`|\t"), max_size=300), st.integers(8, 80))
def test_no_line_is_too_long_but_for_a_long_word_and_no_word_is_cut(text: str, width: int) -> None:
    lines = wrapped(text, width).split("\n")
    assert " ".join(lines).split() == text.split()
    if not text.startswith("    "):
        too_long = [line for line in lines if columns(line) > width]
        assert [
            line for line in too_long if columns(line.rpartition(" ")[2]) <= width // 2 and " " in line.strip()
        ] == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("aaa bbb ccc ddd", ["aaa bbb ccc", "ddd"]),
        ("  w: aaaa bbbb", ["  w: aaaa", "     bbbb"]),
        ("- aaaaa bbbbb", ["- aaaaa", "  bbbbb"]),
        ("ab  ccccc ddddd", ["ab  ccccc", "    ddddd"]),
        ("    aaaaa bbbbb ccccc", ["    aaaaa bbbbb ccccc"]),
        ("```\naaaaa bbbbb ccccc\n```\naaaaa bbbbbb", ["```", "aaaaa bbbbb ccccc", "```", "aaaaa", "bbbbbb"]),
        ("| aaaa | bbbb |", ["| aaaa | bbbb |"]),
        ("漢字漢字漢 漢字", ["漢字漢字漢", "漢字"]),
        ("", [""]),
    ],
)
def test_lines_are_broken_under_their_beginning(text: str, lines: list[str]) -> None:
    assert wrapped(text, 11).split("\n") == lines


def test_what_is_piped_stays_as_it_is() -> None:
    assert wrapped("a " * 500, None) == "a " * 500


@given(st.text(max_size=100), st.integers(2, 40))
def test_a_shortened_text_fits(text: str, width: int) -> None:
    assert columns(shortened(text, width)) <= max(width, 1)
