"""Recorded replies of real providers, served over HTTP byte for byte, however they are split or cut."""

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.providers.recordings import APIS_THERE, EXPECTED, FOLDER, Recording, may_end, recordings
from tests.providers.support import (
    APIS,
    collect,
    failure_of,
    joined,
    provider_at,
    raw_server,
    request,
    response,
)

from treadle.protocol.models import (
    ErrorKind,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
)
from treadle.providers.endpoint import Endpoint
from treadle.providers.wire import CallFailedError, EventDecoder

PLACE = Endpoint(name="x", base_url="http://x")
ALL = list(recordings())
STREAMS = [recording for recording in ALL if recording.status == 200]
REFUSALS = [recording for recording in ALL if recording.status != 200]
SHARED_CASES = pytest.mark.skipif(not ALL, reason=f"there are no recordings in {FOLDER}")
ENDS_WITH_AN_ERROR = ("error_streaming.yaml#0.0", "streaming_with_text.yaml#0.0", "stream_error.yaml#0.0")


SHORT = 2_000


def by_name(items: list[Recording]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recording", items, ids=[item.name for item in items])


async def play(recording: Recording, split: int = 0, cut: int | None = None) -> list[StreamEvent]:
    """Serve a recording over HTTP in pieces; `cut` ends the connection after so many bytes, without its end marker."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kind = "application/vnd.amazon.eventstream" if recording.api == "bedrock" else "text/event-stream"
        headers = {"Content-Type": kind, "Transfer-Encoding": "chunked"}
        writer.write(response("200 OK", headers, b""))
        body = recording.body[:cut]
        start = 0
        while start < len(body):  # the rest of a long body goes in larger pieces, to keep the time short
            size = (split if start < 2_000 * split else 61 * split) or len(body)
            piece = body[start : start + size]
            start += size
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if cut is None:
            writer.write(b"0\r\n\r\n")

    async with raw_server(answer) as url:
        return await collect(provider_at(recording.api, url), request())


def said(events: list[StreamEvent]) -> tuple[str, str, list[list[Any]]]:
    text = "".join(event.text for event in events if isinstance(event, StreamText))
    thinking = "".join(
        event.text
        for event, after in zip(events, [*events[1:], None], strict=True)
        if isinstance(event, StreamThinking) and not (isinstance(after, StreamThinkingDone) and after.searched)
    )
    calls = {event.index: [event.name, ""] for event in events if isinstance(event, StreamCallStart)}
    for event in events:
        if isinstance(event, StreamCallArguments):
            calls[event.index][1] += event.text
    done = [event.index for event in events if isinstance(event, StreamCallDone)]
    if isinstance(events[-1], StreamStop):
        assert done == list(calls)
    return text, thinking, [[name, json.loads(arguments or "{}")] for name, arguments in calls.values()]


@pytest.mark.sample(46)
@SHARED_CASES
@by_name(STREAMS)
async def test_a_recorded_reply_gives_the_same_right_stream_however_it_is_split(recording: Recording) -> None:
    events = await play(recording)
    split = 1 if len(recording.body) < SHORT else 7
    assert joined(await play(recording, split)) == joined(events)
    expected = EXPECTED[recording.api](recording.body)
    text, thinking, calls = said(events)
    if "google-stream-" not in recording.name:  # their arguments come as pieces, see the test of these
        wanted = [[name, json.loads(arguments or "{}")] for name, arguments in expected.calls.values()]
        assert calls == wanted
    if recording.api != "anthropic" or text:
        assert text == expected.text
    assert thinking.replace("\n", "") == expected.thinking.replace("\n", "")
    last = events[-1]
    if recording.name.endswith(ENDS_WITH_AN_ERROR):
        assert isinstance(last, StreamFailure)
        return
    assert isinstance(last, StreamStop)
    assert last.usage.output_tokens == expected.output
    assert last.usage.context_tokens - last.usage.output_tokens == expected.total_input
    if calls:
        assert last.reason is ReplyStop.TOOL_USE


@pytest.mark.sample(46)
@SHARED_CASES
@by_name(STREAMS)
async def test_a_recorded_reply_that_is_cut_is_a_failure_that_can_be_retried(recording: Recording) -> None:
    ends = boundaries(recording)[:-2]
    step = max(1, len(ends) // 3)
    for number, end in enumerate([0, *ends[::step]]):
        cut = end + 9 * (number % 2)
        events = await play(recording, cut=cut)
        last = events[-1]
        assert isinstance(last, StreamFailure)
        assert last.error.kind in (ErrorKind.NETWORK, ErrorKind.MALFORMED_STREAM)
        assert not any(isinstance(event, StreamStop) for event in events)


def decoder_of(recording: Recording) -> EventDecoder:
    return APIS[recording.api][0](PLACE).framing.decoder(1 << 24)


@cache
def boundaries(recording: Recording) -> list[int]:
    """After how many bytes an event is whole, for each event, found by feeding one byte after the other."""
    decoder = decoder_of(recording)
    found = [len(decoder.feed(recording.body[place : place + 1])) for place in range(len(recording.body))]
    return [place + 1 for place, whole in enumerate(found) for _ in range(whole)]


@SHARED_CASES
@by_name(STREAMS)
def test_at_every_byte_exactly_the_events_are_there_that_are_whole(recording: Recording) -> None:
    whole = decoder_of(recording).feed(recording.body)
    assert len(boundaries(recording)) == len(whole)
    decoder = decoder_of(recording)
    pieces = [recording.body[place : place + 7] for place in range(0, len(recording.body), 7)]
    assert [event for piece in pieces for event in decoder.feed(piece)] == whole


@SHARED_CASES
@by_name(STREAMS)
def test_cut_at_any_event_no_reply_is_whole_and_no_call_that_is_not(recording: Recording) -> None:
    api = APIS[recording.api][0](PLACE)
    events = decoder_of(recording).feed(recording.body)
    wanted = list(EXPECTED[recording.api](recording.body).calls.values())
    last = next((number for number, event in enumerate(events) if may_end(recording.api, event)), len(events))
    for cut in range(last):
        reader = api.reader()
        items: list[StreamEvent] = []
        try:
            items += [item for event in events[:cut] for item in reader.read(event)]
            items += reader.end()
        except CallFailedError:
            continue  # the recording itself has the failure in it
        assert not any(isinstance(item, StreamStop) for item in items)
        for number, (name, arguments) in enumerate(finished(items)):
            if "google-stream-" not in recording.name:
                assert [name, arguments] == [wanted[number][0], json.loads(wanted[number][1] or "{}")]


def finished(items: list[StreamEvent]) -> list[tuple[str, Any]]:
    """The calls that are said to be complete."""
    names = {item.index: item.name for item in items if isinstance(item, StreamCallStart)}
    texts = dict.fromkeys(names, "")
    for item in items:
        if isinstance(item, StreamCallArguments):
            texts[item.index] += item.text
    done = [item.index for item in items if isinstance(item, StreamCallDone)]
    return [(names[index], json.loads(texts[index] or "{}")) for index in done]


@SHARED_CASES
@by_name(REFUSALS)
async def test_a_recorded_refusal_is_typed_and_keeps_the_words_of_the_provider(recording: Recording) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response(f"{recording.status} No", {"Content-Type": "application/json"}, recording.body))
        await writer.drain()

    async with raw_server(answer) as url:
        failed = await failure_of(provider_at(recording.api, url), request())
    kinds = {400: ErrorKind.BAD_REQUEST, 404: ErrorKind.NOT_FOUND, 429: ErrorKind.RATE_LIMIT}
    value = json.loads(recording.body)
    assert (failed.error.kind, failed.error.status) == (kinds[recording.status], recording.status)
    assert (value["message"] if "message" in value else value["error"]["message"])[:1_500] in failed.error.message


def test_the_recordings_are_there_when_the_cases_are() -> None:
    if not Path(FOLDER).is_dir():
        pytest.skip(f"there are no recordings in {FOLDER}")
    assert {recording.api for recording in STREAMS} == APIS_THERE
    assert len(STREAMS) > 90
