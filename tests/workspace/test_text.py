"""Output as harmless, bounded text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.workspace.text import Decoder, HeadTail, settle, visible

_PIECES = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from([b"\x1b[31mred\x1b[0m", b"\r\n", b"10%\r20%\r\n", "€ä".encode(), b"\x1b]0;t\x07", b"\xff"]),
    ),
    max_size=12,
).map(b"".join)


def _decode(data: bytes, size: int) -> str:
    decoder = Decoder()
    parts = [decoder.feed(data[at : at + size]) for at in range(0, len(data), size)]
    return "".join([*parts, decoder.feed(b"", final=True)])


@settings(max_examples=200, deadline=None)
@given(_PIECES, st.integers(1, 7))
def test_the_text_does_not_depend_on_how_the_bytes_are_cut(data: bytes, size: int) -> None:
    assert _decode(data, size) == _decode(data, len(data) or 1)


@settings(max_examples=200, deadline=None)
@given(_PIECES)
def test_no_control_character_gets_through(data: bytes) -> None:
    assert not any((ord(c) < 32 and c not in "\t\n\r") or 0x7F <= ord(c) < 0xA0 for c in _decode(data, 5))


def test_colours_go_and_other_controls_are_shown_escaped() -> None:
    assert _decode(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07 \x08 \xff", 3) == r"red \x1b]0;title\x07 \x08 " + "\ufffd"


def test_direction_overrides_and_tags_are_shown_escaped() -> None:
    assert visible("a\u202eb\U000e0041") == r"a\u202eb\U000e0041"


def test_of_a_progress_bar_only_the_last_state_is_kept() -> None:
    assert settle("start\n10%\r50%\r100%\ndone\r") == "start\n100%\ndone"


def test_a_long_text_keeps_its_beginning_and_end_and_counts_the_rest() -> None:
    kept = HeadTail(10)
    for piece in ("abc", "def", "0123456789", "vwxyz"):
        kept.add(piece)
    assert kept.overflowed
    assert kept.take("; see file") == "abcde\n[... 11 characters left out; see file ...]\nvwxyz"
    assert kept.empty
    assert kept.take() == ""


@settings(max_examples=200, deadline=None)
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
