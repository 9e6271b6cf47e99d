"""The binary event stream of AWS: any splits, any damage."""

import struct
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.providers.event_stream import DamagedFrameError, EventStreamDecoder, frame
from treadle.providers.sse import EventTooLargeError, SseEvent

LIMIT = 1 << 20
names = st.text("abcdefgXYZ", min_size=1, max_size=12)
messages = st.lists(st.tuples(names, st.binary(max_size=80)), min_size=1, max_size=6)


def body_of(events: list[tuple[str, bytes]]) -> bytes:
    return b"".join(frame(data, message_type="event", event_type=name) for name, data in events)


@settings(max_examples=60)
@given(events=messages, data=st.data())
def test_messages_come_out_as_they_went_in_however_they_are_split(
    events: list[tuple[str, bytes]], data: st.DataObject
) -> None:
    body = body_of(events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    decoder = EventStreamDecoder(LIMIT)
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    found = [event for piece in pieces for event in decoder.feed(piece)]
    assert found == [SseEvent(name, payload) for name, payload in events]


@settings(max_examples=30)
@given(events=messages)
def test_the_reader_of_aws_reads_what_is_written(events: list[tuple[str, bytes]]) -> None:
    theirs = EventStreamBuffer()
    theirs.add_data(body_of(events))
    assert [(message.headers[":event-type"], message.payload) for message in theirs] == events


@settings(max_examples=150)
@given(events=messages, data=st.data())
def test_damage_is_found_and_nothing_behind_it_is_given(events: list[tuple[str, bytes]], data: st.DataObject) -> None:
    body = bytearray(body_of(events))
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] ^= data.draw(st.integers(1, 255))
    decoder = EventStreamDecoder(LIMIT)
    found: list[SseEvent] = []
    try:
        for byte in body:
            found += decoder.feed(bytes([byte]))
    except (DamagedFrameError, EventTooLargeError):
        pass
    whole = [SseEvent(name, payload) for name, payload in events]
    assert found == whole[: len(found)]
    assert len(found) < len(whole)


def test_a_message_larger_than_the_limit_is_refused_before_it_is_there() -> None:
    lengths = struct.pack(">II", 5000, 0)
    with pytest.raises(EventTooLargeError):
        EventStreamDecoder(1000).feed(lengths + struct.pack(">I", crc32(lengths)))


def test_headers_of_other_kinds_are_passed_over_and_cut_ones_are_damage() -> None:
    text = b"\x0b:event-type\x07\x00\x04ping"
    others = b"\x01b\x00" + b"\x01n\x04\x00\x00\x00\x07" + b"\x01r\x06\x00\x02ab" + b"\x01t\x08" + bytes(8)

    def whole(head: bytes) -> bytes:
        lengths = struct.pack(">II", 16 + len(head), len(head))
        start = lengths + struct.pack(">I", crc32(lengths)) + head
        return start + struct.pack(">I", crc32(start))

    assert EventStreamDecoder(LIMIT).feed(whole(others + text)) == [SseEvent("ping", b"")]
    for cut in range(1, len(text)):
        with pytest.raises(DamagedFrameError):
            EventStreamDecoder(LIMIT).feed(whole(others + text[:cut]))


def test_exceptions_and_errors_are_named_as_such() -> None:
    body = frame(b"{}", message_type="exception", exception_type="throttlingException")
    body += frame(b"", message_type="error", error_code="InternalError")
    found = EventStreamDecoder(LIMIT).feed(body)
    assert found == [SseEvent("exception:throttlingException", b"{}"), SseEvent("exception:InternalError", b"")]
