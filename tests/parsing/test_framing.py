"""The framing line breaks of a value."""

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.parsing.framing import FramedText, unframe


@settings(max_examples=200)
@given(st.lists(st.text("a\r\n", max_size=3), max_size=6))
def test_a_streamed_value_is_the_whole_value_without_its_frame(pieces: list[str]) -> None:
    framed = FramedText()
    streamed = [framed.push(piece) for piece in pieces]
    assert "".join([*streamed, framed.close()]) == unframe("".join(pieces))
