"""Recorded replies of real providers, served over HTTP byte for byte, however they are split or cut."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.providers.support import (
    APIS,
    SHARED,
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
)
from treadle.providers.endpoint import Endpoint
from treadle.providers.sse import SseDecoder

FOLDER = SHARED / "recordings"
MARKS = {"anthropic": "message_start", "chat": "chat.completion", "responses": '"response.', "gemini": '"candidates"'}


@dataclass(frozen=True)
class Recording:
    """One recorded reply and the wire API that it belongs to."""

    name: str
    api: str
    status: int
    body: bytes


def recordings() -> Iterator[Recording]:
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            body = row.get("body") or ""
            apis = [api for api, mark in MARKS.items() if mark in body]
            if row["stream"] and row["status"] == 200 and "moonshot" in row["id"]:
                apis = ["chat"]  # the only chat stream that does not name its kind
            name = f"{path.stem}:{row['id'].rpartition('/')[2]}"
            if row["status"] >= 400:
                yield Recording(name, "chat", row["status"], body.encode())
            for api in apis:
                for number, reply in enumerate(replies(api, body.encode())):
                    yield Recording(f"{name}.{number}", api, 200, reply)


def replies(api: str, body: bytes) -> list[bytes]:
    """Some recordings hold the replies of several requests, one behind the other."""
    end = {"anthropic": b'"message_stop"', "responses": b'"response.completed"', "chat": b"[DONE]"}.get(api)
    found = [b""]
    for block in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        if block.strip():
            found[-1] += block + b"\n\n"
            if end is not None and end in block:
                found.append(b"")
    return [reply for reply in found if len(reply) > 40]


def may_end(api: str, data: bytes) -> bool:
    """Whether a reply may be whole with this event."""
    if data == b"[DONE]":
        return True
    value = json.loads(data)
    match api:
        case "anthropic":
            return bool(value["type"] == "message_stop")
        case "chat":
            return any(choice.get("finish_reason") for choice in value.get("choices") or ())
        case "responses":
            return value["type"] in ("response.completed", "response.incomplete")
        case _:
            return any(candidate.get("finishReason") for candidate in value["candidates"])


ALL = list(recordings())
STREAMS = [recording for recording in ALL if recording.status == 200]
REFUSALS = [recording for recording in ALL if recording.status != 200]
SHARED_CASES = pytest.mark.skipif(not ALL, reason=f"there are no recordings in {FOLDER}")
ENDS_WITH_AN_ERROR = ("error_streaming.yaml#0.0", "streaming_with_text.yaml#0.0", "stream_error.yaml#0.0")


def by_name(items: list[Recording]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recording", items, ids=[item.name for item in items])


@dataclass
class Reply:
    """What a reply says, read from the recording without any of the code that is tested."""

    text: str = ""
    thinking: str = ""
    calls: dict[Any, list[str]] = field(default_factory=dict)
    output: int = 0
    total_input: int = 0


def values_of(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.replace(b"\r", b"").split(b"\n"):
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            yield json.loads(data)


def expected_anthropic(body: bytes) -> Reply:
    reply = Reply()
    for value in values_of(body):
        usage = value.get("usage") or (value.get("message") or {}).get("usage") or {}
        reply.output = usage.get("output_tokens", reply.output)
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        if usage.get("input_tokens") is not None:
            reply.total_input = sum(usage.get(name) or 0 for name in names)
        block, delta = value.get("content_block") or {}, value.get("delta") or {}
        reply.text += block.get("text", "") + delta.get("text", "")
        reply.thinking += delta.get("thinking", "")
        if block.get("type") == "tool_use":
            reply.calls[value["index"]] = [block["name"], json.dumps(block["input"])]
        if delta.get("partial_json") and value["index"] in reply.calls:
            known = reply.calls[value["index"]]
            known[1] = known[1].removeprefix("{}") + delta["partial_json"]
    return reply


def expected_chat(body: bytes) -> Reply:
    reply = Reply()
    for value in values_of(body):
        usage = value.get("usage") or (value.get("x_groq") or {}).get("usage") or {}
        for choice in value.get("choices") or ():
            usage = usage or choice.get("usage") or {}
            delta = choice.get("delta") or {}
            content: Any = delta.get("content") or ""
            parts: list[dict[str, Any]] = content if isinstance(content, list) else [{"text": content}]
            for part in parts:
                reply.text += part.get("text") or ""
                reply.thinking += "".join(inner["text"] for inner in part.get("thinking") or ())
            reply.thinking += delta.get("reasoning_content") or delta.get("reasoning") or ""
            for call in delta.get("tool_calls") or ():
                known = reply.calls.setdefault(call.get("index"), ["", ""])
                known[0] += (call["function"].get("name") or "") if not known[0] else ""
                known[1] += call["function"].get("arguments") or ""
        reply.output = usage.get("completion_tokens", reply.output)
        reply.total_input = usage.get("prompt_tokens", reply.total_input)
    return reply


def expected_responses(body: bytes) -> Reply:
    reply = Reply()
    for value in values_of(body):
        if value["type"] == "response.output_text.delta":
            reply.text += value["delta"]
        if value["type"] in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
            reply.thinking += value["delta"]
        item = value.get("item") or {}
        if value["type"] == "response.output_item.done" and item["type"] == "function_call":
            reply.calls[value["output_index"]] = [item["name"], item["arguments"]]
        usage = (value.get("response") or {}).get("usage") or {}
        reply.output = usage.get("output_tokens", reply.output)
        reply.total_input = usage.get("input_tokens", reply.total_input)
    return reply


def expected_gemini(body: bytes) -> Reply:
    reply = Reply()
    for value in values_of(body):
        usage = value["usageMetadata"]
        reply.output = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
        reply.total_input = usage.get("promptTokenCount", 0) + usage.get("toolUsePromptTokenCount", 0)
        for candidate in value["candidates"]:
            for part in candidate["content"].get("parts") or ():
                if part.get("thought"):
                    reply.thinking += part["text"]
                else:
                    reply.text += part.get("text", "")
                call = part.get("functionCall") or {}
                if "name" in call:
                    reply.calls[len(reply.calls)] = [call["name"], json.dumps(call.get("args") or {})]
    return reply


EXPECTED = {
    "anthropic": expected_anthropic,
    "chat": expected_chat,
    "responses": expected_responses,
    "gemini": expected_gemini,
}


async def play(recording: Recording, split: int = 0, cut: int | None = None) -> list[StreamEvent]:
    """Serve a recording over HTTP in pieces; `cut` ends the connection after so many bytes, without its end marker."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        headers = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
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
    thinking = "".join(event.text for event in events if isinstance(event, StreamThinking))
    calls = {event.index: [event.name, ""] for event in events if isinstance(event, StreamCallStart)}
    for event in events:
        if isinstance(event, StreamCallArguments):
            calls[event.index][1] += event.text
    done = [event.index for event in events if isinstance(event, StreamCallDone)]
    if isinstance(events[-1], StreamStop):
        assert done == list(calls)
    return text, thinking, [[name, json.loads(arguments or "{}")] for name, arguments in calls.values()]


@SHARED_CASES
@by_name(STREAMS)
async def test_a_recorded_reply_gives_the_same_right_stream_however_it_is_split(recording: Recording) -> None:
    events = await play(recording)
    streams = [joined(await play(recording, split)) for split in (1, 7)]
    assert streams == [joined(events)] * 2
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


@SHARED_CASES
@by_name(STREAMS)
async def test_a_recorded_reply_that_is_cut_is_a_failure_that_can_be_retried(recording: Recording) -> None:
    ends = [place + 2 for place in range(len(recording.body)) if recording.body[place : place + 2] == b"\n\n"][:-2]
    step = max(1, len(ends) // 6)
    for cut in [0, *ends[::step], *(end + 9 for end in ends[::step])]:
        events = await play(recording, cut=cut)
        last = events[-1]
        assert isinstance(last, StreamFailure)
        assert last.error.kind in (ErrorKind.NETWORK, ErrorKind.MALFORMED_STREAM)
        assert not any(isinstance(event, StreamStop) for event in events)


@SHARED_CASES
@by_name(STREAMS)
def test_no_reply_is_whole_before_its_last_words(recording: Recording) -> None:
    make = APIS[recording.api][0]
    api = make(Endpoint(name="x", base_url="http://x"))
    events = SseDecoder(1 << 24).feed(recording.body)
    last = next((number for number, event in enumerate(events) if may_end(recording.api, event.data)), len(events))
    for cut in range(0, last, max(1, last // 25)):
        reader = api.reader()
        items = [item for event in events[:cut] for item in reader.read(event)]
        assert not any(isinstance(item, StreamStop) for item in (*items, *reader.end()))


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
    assert {recording.api for recording in STREAMS} == set(MARKS)
    assert len(STREAMS) > 90
