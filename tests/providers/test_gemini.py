"""Requests of the Gemini API as written, and what its replies may contain."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.providers.support import READ, request, result, user

from treadle.protocol.messages import Image, Message, Role, Text, Thinking, ToolResult, ToolUse, WireData
from treadle.protocol.models import (
    ErrorKind,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
)
from treadle.protocol.usage import Usage
from treadle.providers.endpoint import Endpoint, Quirks
from treadle.providers.gemini import UNSIGNED, Gemini
from treadle.providers.gemini_arguments import PartialArgument, add_argument
from treadle.providers.sse import SseEvent
from treadle.providers.wire import CallFailedError

PLACE = Endpoint(name="google", base_url="https://g.example/v1beta", api_key="k")
SOURCE = "gemini:google"


def wire(signature: str = "") -> WireData:
    return WireData(api=SOURCE, data={"thoughtSignature": signature} if signature else {})


def read(*parts: dict[str, Any], finish: str | None = "STOP", **chunk: Any) -> list[StreamEvent]:
    reader = Gemini(PLACE).reader()
    chunks: list[dict[str, Any]] = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    chunks.append({"candidates": [{"finishReason": finish}], **chunk})
    items = [item for value in chunks for item in reader.read(SseEvent("", msgspec.json.encode(value)))]
    return [*items, *reader.end()]


def stop(reason: ReplyStop = ReplyStop.END_TURN) -> StreamStop:
    return StreamStop(reason=reason, usage=Usage())


def test_a_whole_request_is_written() -> None:
    said = Message(
        role=Role.ASSISTANT,
        content=(
            Thinking(text="Hm", wire=WireData(api="gemini:other", data={"thoughtSignature": "no"})),
            Text(text="Let me look."),
            Thinking(text="", wire=wire("t")),
            ToolUse(id="c1", name="read_file", arguments={"path": "a"}, wire_id="i1", wire=wire("s")),
            ToolUse(id="c2", name="read_file", arguments={}, wire=wire()),
            ToolUse(id="c3", name="read_file", arguments={}, wire_id="toolu_1"),
        ),
    )
    picture = ToolResult(call_id="c2", name="read_file", content=(Image(media_type="image/png", data="aGk="),))
    answer = Message(role=Role.USER, content=(Text(text="Go on."), result("print()", "i1"), picture))
    broken = Message(role=Role.USER, content=(result("no such file", "toolu_1", is_error=True),))
    asked = msgspec.structs.replace(request(user("Hi"), said, answer, broken), max_tokens=99, thinking_budget=500)
    sent = Gemini(PLACE).prepare(asked)
    assert sent.url == "https://g.example/v1beta/models/scripted:streamGenerateContent?alt=sse"
    assert dict(sent.headers) == {"x-goog-api-key": "k"}
    read_file = {"name": "read_file", "description": "Reads a file.", "parametersJsonSchema": READ.parameters}
    assert json.loads(sent.body) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [read_file]}],
        "generationConfig": {
            "maxOutputTokens": 99,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 500},
        },
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Let me look."},
                    {"text": "", "thoughtSignature": "t"},
                    {"functionCall": {"name": "read_file", "args": {"path": "a"}, "id": "i1"}, "thoughtSignature": "s"},
                    {"functionCall": {"name": "read_file", "args": {}}},
                    {"functionCall": {"name": "read_file", "args": {}, "id": "toolu_1"}, "thoughtSignature": UNSIGNED},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "read_file", "response": {"output": "print()"}, "id": "i1"}},
                    {"functionResponse": {"name": "read_file", "response": {"output": ""}}},
                    {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                    {"text": "Go on."},
                    {"functionResponse": {"name": "read_file", "response": {"error": "no such file"}, "id": "toolu_1"}},
                ],
            },
        ],
    }


def test_vertex_takes_a_token_and_models_of_any_publisher() -> None:
    place = Endpoint(name="vertex", base_url="https://v/p", api_key="tok", quirks=Quirks(key_header="authorization"))
    sent = Gemini(place).prepare(msgspec.structs.replace(request(), model="publishers/google/models/g-3"))
    assert sent.url == "https://v/p/publishers/google/models/g-3:streamGenerateContent?alt=sse"
    assert sent.headers["authorization"] == "Bearer tok"


def test_signatures_of_thoughts_calls_and_texts_are_kept() -> None:
    events = read(
        {"text": "Hm", "thought": True},
        {"text": "", "thoughtSignature": "s0"},
        {"text": "Yes", "thoughtSignature": "s1"},
        {"functionCall": {"name": "x", "args": {"a": 1}, "id": "i"}, "thoughtSignature": "s2"},
        {"functionCall": {"name": "y"}},
    )
    assert events == [
        StreamThinking(text="Hm"),
        StreamThinkingDone(wire=wire("s0")),
        StreamText(text="Yes"),
        StreamThinkingDone(wire=wire("s1")),
        StreamCallStart(index=0, name="x", wire_id="i"),
        StreamCallArguments(index=0, text='{"a":1}'),
        StreamCallDone(index=0, wire=wire("s2")),
        StreamCallStart(index=1, name="y"),
        StreamCallArguments(index=1, text="{}"),
        StreamCallDone(index=1, wire=wire()),
        stop(ReplyStop.TOOL_USE),
    ]


def piece(path: str, **value: object) -> dict[str, Any]:
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}


def test_arguments_that_come_as_pieces_are_put_together() -> None:
    events = read(
        {"functionCall": {"name": "x", "willContinue": True}},
        piece("$.items[0].name", stringValue="app", willContinue=True),
        piece("$.items[0].name", stringValue="le"),
        piece("$.items[0].price", numberValue=0.5),
        piece("$.items[1]['full name']", stringValue="b"),
        piece("$.count", numberValue=2),
        piece("$.ok", boolValue=True),
        piece("$.none", nullValue=None),
        {"functionCall": {}},
        {"functionCall": {}},
    )
    items = '[{"name":"apple","price":0.5},{"full name":"b"}]'
    assert events == [
        StreamCallStart(index=0, name="x"),
        StreamCallArguments(index=0, text='{"items":' + items + ',"count":2,"ok":true,"none":null}'),
        StreamCallDone(index=0, wire=wire()),
        stop(ReplyStop.TOOL_USE),
    ]


def test_a_call_that_was_cut_never_looks_whole() -> None:
    events = read(
        {"functionCall": {"name": "x", "willContinue": True}}, piece("$.a", stringValue="b"), finish="MAX_TOKENS"
    )
    assert events == [StreamCallStart(index=0, name="x"), stop(ReplyStop.MAX_TOKENS)]


@settings(max_examples=80)
@given(st.lists(st.text(alphabet="$.[]'0129ab", max_size=12), max_size=5))
def test_no_path_breaks_the_arguments(paths: list[str]) -> None:
    arguments: dict[str, Any] = {}
    for path in paths:
        add_argument(arguments, PartialArgument(json_path=path, string_value="x"))
    assert isinstance(msgspec.json.encode(arguments), bytes)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("STOP", "end_turn"), ("MAX_TOKENS", "max_tokens"), ("SAFETY", "refusal"), ("NEW", "end_turn")],
)
def test_reasons_to_stop_are_translated(finish: str, reason: str) -> None:
    assert read({"text": "Hi"}, finish=finish) == [StreamText(text="Hi"), stop(ReplyStop(reason))]


def test_usage_counts_thoughts_as_output_and_the_cache_once() -> None:
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 3,
    }
    expected = Usage(input_tokens=45, output_tokens=10, cache_read_tokens=60, reasoning_tokens=3)
    assert read({"text": "Hi"}, usageMetadata=usage)[-1] == StreamStop(reason=ReplyStop.END_TURN, usage=expected)


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, ErrorKind.CONTENT_FILTER),
        ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, ErrorKind.MALFORMED_STREAM),
        ({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}, ErrorKind.OVERLOADED),
    ],
)
def test_errors_inside_the_stream_are_typed(chunk: dict[str, Any], kind: ErrorKind) -> None:
    with pytest.raises(CallFailedError) as caught:
        list(Gemini(PLACE).reader().read(SseEvent("", msgspec.json.encode(chunk))))
    assert caught.value.error.kind is kind


def test_a_reply_without_a_finish_reason_is_not_whole() -> None:
    assert read({"text": "Hi"}, finish=None) == [StreamText(text="Hi")]
