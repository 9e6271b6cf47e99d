"""Requests of the Messages API as written, and what its replies may contain."""

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from tests.providers.support import READ, called, request, result, user

from treadle.protocol.messages import (
    Document,
    Image,
    Message,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    WireData,
)
from treadle.protocol.models import (
    ModelRequest,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamThinkingDone,
)
from treadle.protocol.usage import Usage
from treadle.providers.anthropic_messages import AnthropicMessages
from treadle.providers.endpoint import Endpoint, Quirks
from treadle.providers.sse import SseEvent

PLACE = Endpoint(name="anthropic", base_url="https://api.anthropic.com", api_key="k")
OWN = WireData(api="anthropic_messages:anthropic", data={})
MARK = {"cache_control": {"type": "ephemeral"}}


def body_of(asked: ModelRequest, place: Endpoint = PLACE) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(AnthropicMessages(place).prepare(asked).body)
    return value


def read(*events: dict[str, Any]) -> Iterable[StreamEvent]:
    reader = AnthropicMessages(PLACE).reader()
    return [item for event in events for item in reader.read(SseEvent("", msgspec.json.encode(event)))]


def test_a_whole_request_is_written_with_markers_on_the_system_prompt_and_the_last_two_user_messages() -> None:
    answer = Message(role=Role.USER, content=(Text(text="Go on."), result("print()", is_error=True)))
    asked = request(user("One", "", " "), called(), answer, Message(role=Role.ASSISTANT, content=()), user("Two"))
    call = AnthropicMessages(PLACE).prepare(asked)
    assert (call.url, dict(call.headers)) == (
        "https://api.anthropic.com/v1/messages",
        {"anthropic-version": "2023-06-01", "x-api-key": "k"},
    )
    tool_result = {
        "type": "tool_result",
        "tool_use_id": "call_0_0",
        "content": [{"type": "text", "text": "print()"}],
        "is_error": True,
    }
    assert json.loads(call.body) == {
        "model": "scripted",
        "stream": True,
        "max_tokens": 8192,
        "system": [{"type": "text", "text": "Be brief.", **MARK}],
        "tools": [{"name": "read_file", "description": "Reads a file.", "input_schema": READ.parameters}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "One", **MARK}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "call_0_0", "name": "read_file", "input": {"path": "a.py"}},
                ],
            },
            {
                "role": "user",
                "content": [tool_result, {"type": "text", "text": "Go on."}, {"type": "text", "text": "Two", **MARK}],
            },
        ],
    }


def test_the_prefix_of_a_conversation_stays_the_same_bytes_but_for_the_markers() -> None:
    messages = [user("One"), called(), Message(role=Role.USER, content=(result("a"),))]
    api = AnthropicMessages(PLACE)
    first = api.prepare(request(*messages)).body
    later = api.prepare(
        request(*messages, called("call_1_0"), Message(role=Role.USER, content=(result("b", "call_1_0"),)))
    ).body
    plain = b',"cache_control":{"type":"ephemeral"}'
    assert later.replace(plain, b"").startswith(first.replace(plain, b"").removesuffix(b"]}"))


def test_images_documents_and_own_reasoning_go_back_and_foreign_reasoning_does_not() -> None:
    foreign = WireData(api="anthropic_messages:other", data={})
    said = Message(
        role=Role.ASSISTANT,
        content=(
            Thinking(text="Hm", signature="s", wire=OWN),
            RedactedThinking(data="xyz", wire=OWN),
            Thinking(text="No", signature="s", wire=foreign),
            Thinking(text="No", signature="", wire=OWN),
            RedactedThinking(data="no"),
            Text(text="Yes"),
        ),
    )
    seen = Message(
        role=Role.USER,
        content=(
            ToolResult(call_id="c", name="x", content=(Image(media_type="image/png", data="aGk="),), wire_id="c"),
            Document(media_type="application/pdf", data="aGk=", title="a.pdf"),
        ),
    )
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    assert body_of(request(said, seen))["messages"] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "xyz"},
                {"type": "text", "text": "Yes"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "image", "source": source}]},
                {"type": "document", "source": pdf, "title": "a.pdf", **MARK},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("max_tokens", "budget", "expected"),
    [
        (None, None, (8192, None)),
        (4000, None, (4000, None)),
        (None, 2000, (10192, 2000)),
        (None, 5, (8197, 1024)),
        (4000, 9000, (4000, 3999)),
        (500, 2000, (500, None)),
        (4000, 0, (4000, None)),
    ],
)
def test_thinking_fits_below_the_output_limit(
    max_tokens: int | None, budget: int | None, expected: tuple[int, int | None]
) -> None:
    asked = msgspec.structs.replace(request(), max_tokens=max_tokens, thinking_budget=budget)
    body = body_of(asked)
    assert (body["max_tokens"], body.get("thinking", {}).get("budget_tokens")) == expected


@pytest.mark.parametrize(
    ("model", "adaptive"),
    [
        ("claude-3-7-sonnet-20250219", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-opus-4-5", False),
        ("claude-haiku-4-5-20251001", False),
        ("claude-opus-4-6", True),
        ("anthropic.claude-sonnet-4.6", True),
        ("claude-opus-4-7", True),
        ("claude-sonnet-5", True),
        ("claude-fable-5-1", True),
        ("claude-mythos-preview", True),
        ("MiniMax-M3", False),
    ],
)
def test_newer_models_are_asked_to_think_by_effort(model: str, adaptive: bool) -> None:
    asked = msgspec.structs.replace(request(), model=model, thinking_budget=2000)
    body = body_of(asked)
    if adaptive:
        assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
        assert body["output_config"] == {"effort": "low"}
    else:
        assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
        assert "output_config" not in body


def test_thinking_stays_off_after_calls_that_another_provider_made() -> None:
    answer = Message(role=Role.USER, content=(result("a"),))
    asked = msgspec.structs.replace(request(user("Hi"), called(), answer), thinking_budget=2000)
    assert "thinking" not in body_of(asked)
    explained = Message(role=Role.ASSISTANT, content=(Thinking(text="", signature="s", wire=OWN), *called().content))
    asked = msgspec.structs.replace(request(user("Hi"), explained, answer), thinking_budget=2000)
    assert body_of(asked)["thinking"] == {"type": "enabled", "budget_tokens": 2000}


def test_ids_of_other_providers_are_replaced_by_our_own_on_both_sides() -> None:
    call = Message(role=Role.ASSISTANT, content=(ToolUse(id="c.1", name="x", arguments={}, wire_id="functions.x:0"),))
    answer = Message(
        role=Role.USER, content=(ToolResult(call_id="c.1", name="x", content=(), wire_id="functions.x:0"),)
    )
    messages = body_of(request(call, answer))["messages"]
    assert messages[0]["content"][0]["id"] == messages[1]["content"][0]["tool_use_id"] == "c_1"


@pytest.mark.parametrize("place", range(14))
def test_a_reply_without_words_leaves_no_two_messages_of_the_user_side_by_side(place: int) -> None:
    messages = [
        Message(role=Role.ASSISTANT, content=(Text(text=" " if at == place else "Yes."),)) if at % 2 else user("Go on.")
        for at in range(15)
    ]
    api = AnthropicMessages(PLACE)
    for end in range(1, 16, 2):
        sent = json.loads(api.prepare(request(*messages[:end])).body)["messages"]
        assert [one["role"] for one in sent] == ["user", "assistant"] * (len(sent) // 2) + ["user"]


def test_half_characters_do_not_break_a_request() -> None:
    assert body_of(request(user("a\ud83d b")))["messages"][0]["content"][0]["text"] == "a\ufffd b"


def test_a_compatible_place_can_have_another_path_and_another_header_for_the_key() -> None:
    place = Endpoint(
        name="x", base_url="https://x.example/anthropic/v1/?v=2", api_key=" k ", quirks=Quirks(key_header="api-key")
    )
    call = AnthropicMessages(place).prepare(request())
    assert (call.url, call.headers["api-key"]) == ("https://x.example/anthropic/v1/messages?v=2", "k")


def test_a_call_without_arguments_has_an_empty_object() -> None:
    events = read(
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "x", "input": {}},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )
    assert events == [
        StreamCallStart(index=0, name="x", wire_id="t"),
        StreamCallArguments(index=0, text="{}"),
        StreamCallDone(index=0),
        StreamStop(reason=ReplyStop.TOOL_USE, usage=Usage(input_tokens=3, output_tokens=9)),
    ]


def test_redacted_reasoning_and_blocks_of_unknown_kinds_are_handled() -> None:
    events = read(
        {"type": "ping"},
        {"type": "news", "index": 4},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "xyz"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "server_tool_use", "name": "web_search"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"input_tokens": -5}},
        {"type": "message_stop"},
    )
    assert events == [StreamThinkingDone(redacted="xyz", wire=OWN), StreamStop(reason=ReplyStop.REFUSAL, usage=Usage())]


@pytest.mark.parametrize(
    ("model", "sent", "beta"),
    [
        ("claude-sonnet-4-5:1m", "claude-sonnet-4-5", "context-1m-2025-08-07"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5", None),
        ("qwen3:1m", "qwen3:1m", None),
    ],
)
def test_the_longer_window_is_asked_for_in_a_header(model: str, sent: str, beta: str | None) -> None:
    for quirks in (Quirks(), Quirks(model_in_path=True)):
        place = Endpoint(name="a", base_url="https://h", quirks=quirks)
        call = AnthropicMessages(place).prepare(msgspec.structs.replace(request(), model=model))
        assert call.headers.get("anthropic-beta") == beta
        named = json.loads(call.body).get("model") or unquote(call.url).removesuffix(":streamRawPredict")
        assert named.removeprefix("https://h/models/") == sent


def test_vertex_has_the_model_in_the_path_and_a_version_in_its_place() -> None:
    place = Endpoint(
        name="vertex-anthropic", base_url="https://h/publishers/anthropic", quirks=Quirks(model_in_path=True)
    )
    call = AnthropicMessages(place).prepare(msgspec.structs.replace(request(), model="claude-sonnet-4-5@20250929"))
    assert call.url == "https://h/publishers/anthropic/models/claude-sonnet-4-5%4020250929:streamRawPredict"
    value = json.loads(call.body)
    assert value["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in value
