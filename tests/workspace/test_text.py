"""Output as harmless, bounded text."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.workspace.files.text import Decoder, HeadTail, ShortLines, as_displayed, flowing, visible

_PIECES = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from(
            [
                b"\x1b[31mred\x1b[0m",
                b"\r\n",
                b"10%\r20%\r\n",
                "€ä".encode(),
                b"\x1b]0;t\x07",
                b"\xff",
                b"\x1b[",
                b"\x1b]",
                b"\x1b\\",
                b"\b",
            ]
        ),
    ),
    max_size=12,
).map(b"".join)


def _decode(data: bytes, size: int) -> str:
    decoder = Decoder()
    parts = [decoder.feed(data[at : at + size]) for at in range(0, len(data), size)]
    return "".join([*parts, decoder.feed(b"", final=True)])


@settings(max_examples=200)
@given(_PIECES, st.integers(1, 7))
def test_the_text_does_not_depend_on_how_the_bytes_are_cut(data: bytes, size: int) -> None:
    assert _decode(data, size) == _decode(data, len(data) or 1)


@settings(max_examples=200)
@given(_PIECES)
def test_no_control_character_gets_through(data: bytes) -> None:
    assert not any((ord(c) < 32 and c not in "\t\n\r\b") or 0x7F <= ord(c) < 0xA0 for c in _decode(data, 5))


@pytest.mark.parametrize(
    "sequence",
    [
        *(b"\x1b[1;31m", b"\x1b[2J", b"\x1b[?25l", b"\x1b[3A", b"\xc2\x9b2K", b"\x1b[0 q"),
        *(b"\x1b]0;title\x07", b"\x1b]8;;http://x\x1b\\", b"\x1bPq#0;2\x1b\\", b"\x1b_x\x1b\\"),
        *(b"\x1b(B", b"\x1b=", b"\x1b7", b"\x1bM", b"\x1bc"),
    ],
)
def test_what_only_a_terminal_understands_goes(sequence: bytes) -> None:
    for size in (1, 3, 100):
        assert _decode(b"a" + sequence + b"b", size) == "ab"


def test_other_controls_are_shown_escaped() -> None:
    assert _decode(b"\x07 \x1b] no end \xff", 3) == r"\x07 \x1b] no end " + "\ufffd"
    endless = b"\x1b]" + b"x" * 10_000
    assert _decode(endless, 10) == r"\x1b]" + "x" * 10_000


def test_backspaces_take_away_what_is_before_them() -> None:
    assert as_displayed(_decode(b"|\b/\b-\bdone\n_\bN\bNA\b\b\b\bx\n\bz", 3)) == "done\nx\nz"
    assert flowing("10%\r2\b0%") == "10%\n0%"


def test_direction_overrides_and_tags_are_shown_escaped() -> None:
    assert visible("a\u202eb\U000e0041") == r"a\u202eb\U000e0041"


def test_of_a_progress_bar_only_the_last_state_is_kept() -> None:
    assert as_displayed("start\n10%\r50%\r100%\ndone\r") == "start\n100%\ndone"


def test_a_long_text_keeps_its_beginning_and_end_and_counts_the_rest() -> None:
    kept = HeadTail(10)
    for piece in ("abc", "def", "0123456789", "vwxyz"):
        kept.add(piece)
    assert kept.overflowed
    assert kept.take("; see file") == "abcde\n[... 11 characters left out; see file ...]\nvwxyz"
    assert kept.empty
    assert kept.take() == ""


@settings(max_examples=200)
@given(st.lists(st.text("ab", max_size=30), max_size=20))
def test_what_is_kept_and_what_is_counted_make_the_whole(pieces: list[str]) -> None:
    kept = HeadTail(20)
    for piece in pieces:
        kept.add(piece)
    text = "".join(pieces)
    if len(text) <= 20:
        assert kept.take() == text
    else:
        assert kept.take() == f"{text[:10]}\n[... {len(text) - 20:,} characters left out ...]\n{text[-10:]}"


def _through(lines: ShortLines, pieces: list[str]) -> str:
    return "".join(map(lines.feed, pieces)) + lines.finish()


def _cut(text: str, at: list[int]) -> list[str]:
    places = sorted({0, len(text), *(place for place in at if place < len(text))})
    return [text[begin:end] for begin, end in pairwise(places)]


@given(st.text("ab\r\b\n", max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_short_lines_are_settled_however_they_are_cut(text: str, at: list[int]) -> None:
    lines = ShortLines(100)
    assert _through(lines, _cut(text, at)) == as_displayed(text)
    assert not lines.cut


@given(st.lists(st.text("ab", max_size=30), max_size=8), st.lists(st.integers(0, 200), max_size=8))
def test_of_long_lines_the_rest_is_counted_however_they_are_cut(lines: list[str], at: list[int]) -> None:
    def short(line: str) -> str:
        return line if len(line) <= 10 else f"{line[:10]} [... {len(line) - 10} more characters in this line]"

    passed = ShortLines(10)
    assert _through(passed, _cut("\n".join(lines), at)) == "\n".join(map(short, lines))
    assert passed.cut is any(len(line) > 10 for line in lines)


def test_a_progress_bar_of_any_length_leaves_its_last_state() -> None:
    lines = ShortLines(10)
    assert _through(lines, [f"\r{number:5}%" for number in range(5000)]) == " 4999%"
    assert _through(lines, ["x" * 50, "\r", "100%\r", "\ndone\n"]) == "100%\ndone\n"


def test_what_is_kept_can_be_given_in_fewer_bytes() -> None:
    kept = HeadTail(20)
    kept.add("ä" * 20)
    assert (kept.exceeds(20), kept.take("; see file", 20)) == (
        True,
        f"{'ä' * 5}\n[... 10 characters left out; see file ...]\n{'ä' * 5}",
    )
    for _ in range(3):
        kept.add("0123456789")
    assert kept.take(size=10) == "01234\n[... 20 characters left out ...]\n56789"
