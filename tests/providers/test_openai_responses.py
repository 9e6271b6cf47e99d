"""Requests of the Responses API as written, and what its replies may contain."""

import json
from typing import Any

import msgspec
import pytest
from tests.providers.support import READ, called, request, result, user

from treadle.protocol.messages import Document, Image, Message, Role, Text, Thinking, ToolResult, WireData
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
from treadle.providers.endpoint import Endpoint
from treadle.providers.openai_responses import OpenAIResponses
from treadle.providers.sse import SseEvent
from treadle.providers.wire import CallFailedError

PLACE = Endpoint(name="acme", base_url="https://api.example.org/v1", api_key="k")
SOURCE = "openai_responses:acme"
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}


def read(*events: dict[str, Any]) -> list[StreamEvent]:
    reader = OpenAIResponses(PLACE).reader()
    return [item for event in events for item in reader.read(SseEvent("", msgspec.json.encode(event)))]


def done(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def test_a_whole_request_is_written() -> None:
    own = Thinking(text="Hm", wire=WireData(api=SOURCE, data={"item": ITEM}))
    foreign = Thinking(text="No", wire=WireData(api="openai_responses:other", data={"item": ITEM}))
    said = Message(role=Role.ASSISTANT, content=(own, foreign, *called().content))
    picture = ToolResult(call_id="c2", name="x", content=(Text(text="See"), Image(media_type="image/png", data="aGk=")))
    pdf = Document(media_type="application/pdf", data="aGk=", title="a.pdf")
    answer = Message(role=Role.USER, content=(result("print()"), picture, Text(text="Go on."), pdf))
    asked = msgspec.structs.replace(request(user("Hello"), said, answer), max_tokens=99, thinking_budget=5000)
    sent = OpenAIResponses(PLACE).prepare(asked)
    assert (sent.url, dict(sent.headers)) == ("https://api.example.org/v1/responses", {"authorization": "Bearer k"})
    function = {"type": "function", "name": "read_file", "description": "Reads a file.", "parameters": READ.parameters}
    call = {"type": "function_call", "call_id": "call_0_0", "name": "read_file", "arguments": '{"path":"a.py"}'}
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
    file = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}
    assert json.loads(sent.body) == {
        "model": "scripted",
        "stream": True,
        "store": False,
        "instructions": "Be brief.",
        "max_output_tokens": 99,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "medium", "summary": "auto"},
        "tools": [{**function, "strict": False}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            ITEM,
            {"role": "assistant", "content": "Let me look."},
            call,
            {"type": "function_call_output", "call_id": "call_0_0", "output": "print()"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "See"}, image]},
            {"role": "user", "content": [{"type": "input_text", "text": "Go on."}, file]},
        ],
    }


@pytest.mark.parametrize(("budget", "effort"), [(1024, "low"), (8000, "medium"), (32000, "high")])
def test_a_budget_becomes_an_effort(budget: int, effort: str) -> None:
    asked = msgspec.structs.replace(request(), thinking_budget=budget)
    assert json.loads(OpenAIResponses(PLACE).prepare(asked).body)["reasoning"]["effort"] == effort


def test_what_was_not_streamed_is_taken_from_the_finished_items() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "x", "arguments": '{"a":1}'}
    events = read(
        done({**ITEM, "summary": [{"type": "summary_text", "text": "Hm"}], "status": "completed"}),
        done({"type": "message", "content": [{"type": "output_text", "text": "Yes"}]}, 1),
        done(call, 2),
        {"type": "response.completed", "response": {"usage": None}},
    )
    item = {**ITEM, "summary": [{"type": "summary_text", "text": "Hm"}]}
    assert events == [
        StreamThinking(text="Hm"),
        StreamThinkingDone(wire=WireData(api=SOURCE, data={"item": item})),
        StreamText(text="Yes"),
        StreamCallStart(index=2, name="x", wire_id="c"),
        StreamCallArguments(index=2, text='{"a":1}'),
        StreamCallDone(index=2),
        StreamStop(reason=ReplyStop.TOOL_USE, usage=Usage()),
    ]


def test_reasoning_without_content_cannot_go_back_and_summaries_are_set_apart() -> None:
    events = read(
        {"type": "response.reasoning_summary_text.delta", "delta": "A"},
        {"type": "response.reasoning_summary_part.added", "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", "delta": "B"},
        done({"type": "reasoning", "id": "rs", "summary": [{"text": "A"}, {"text": "B"}]}),
    )
    texts = [StreamThinking(text=text) for text in ("A", "\n\n", "B")]
    assert events == [*texts, StreamThinkingDone()]


COMPLETED = {"type": "response.completed"}
REFUSAL = [{"type": "refusal", "refusal": "No."}]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            [{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}],
            "max_tokens",
        ),
        (
            [{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}}],
            "refusal",
        ),
        (
            [{"type": "response.refusal.delta", "delta": "No."}, {"type": "response.completed", "response": {}}],
            "refusal",
        ),
        ([done({"type": "message", "content": REFUSAL}), COMPLETED], "refusal"),
        (
            [{"type": "response.completed", "response": {"output": [{"type": "message", "content": REFUSAL}]}}],
            "refusal",
        ),
        ([COMPLETED], "end_turn"),
    ],
)
def test_reasons_to_stop_are_translated(events: list[dict[str, Any]], reason: str) -> None:
    assert read(*events)[-1] == StreamStop(reason=ReplyStop(reason), usage=Usage())


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "Slow"}, ErrorKind.RATE_LIMIT),
        ({"type": "error", "error": {"type": "server_error", "message": "Oops"}}, ErrorKind.SERVER),
        (
            {"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "Long"}}},
            ErrorKind.CONTEXT_TOO_LONG,
        ),
    ],
)
def test_errors_inside_the_stream_are_typed(event: dict[str, Any], kind: ErrorKind) -> None:
    with pytest.raises(CallFailedError) as caught:
        read(event)
    assert caught.value.error.kind is kind
