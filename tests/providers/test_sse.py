"""Server-sent events from bytes."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.providers.sse import EventTooLargeError, SseDecoder, SseEvent

STREAM = (
    b"\xef\xbb\xbf: comment\n\n"
    b"data: one\r\n\r\n"
    b"event: named\rdata: two\r\r"
    b'data: {"a":\ndata:  1}\nid: 7\nretry: 10\n\n'
    b"event: empty\n\n" + "data: é漢🙂\r\n\n".encode() + b"data: last without an end"
)
EVENTS = [
    SseEvent("", b"one"),
    SseEvent("named", b"two"),
    SseEvent("", b'{"a":\n 1}'),
    SseEvent("", "é漢🙂".encode()),
]


@settings(max_examples=150)
@given(st.lists(st.integers(0, len(STREAM))))
def test_any_split_gives_the_same_events(places: list[int]) -> None:
    decoder = SseDecoder(1_000)
    bounds = [0, *sorted(places), len(STREAM)]
    chunks = [STREAM[start:end] for start, end in pairwise(bounds)]
    assert [event for chunk in chunks for event in decoder.feed(chunk)] == EVENTS


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=30), max_size=20))
def test_no_bytes_break_it(chunks: list[bytes]) -> None:
    whole, pieces = SseDecoder(10_000), SseDecoder(10_000)
    assert [event for chunk in chunks for event in pieces.feed(chunk)] == whole.feed(b"".join(chunks))


@pytest.mark.parametrize("chunk", [b"x" * 60, b"data: x\n" * 60])
def test_an_event_beyond_the_limit_is_refused(chunk: bytes) -> None:
    decoder = SseDecoder(100)
    decoder.feed(chunk[:80])
    with pytest.raises(EventTooLargeError):
        decoder.feed(chunk + chunk)
