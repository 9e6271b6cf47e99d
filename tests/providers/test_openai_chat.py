"""Requests of the Chat Completions API as written, and the dialects of its replies."""

import json
from typing import Any

import msgspec
import pytest
from tests.providers.support import READ, called, joined, request, result, user

from treadle.protocol.messages import Document, Image, Message, Role, Text, Thinking, ToolResult, WireData
from treadle.protocol.models import (
    ModelRequest,
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
from treadle.providers.endpoint import CallIds, Endpoint, Quirks, ThinkingField
from treadle.providers.openai_chat import OpenAIChat
from treadle.providers.sse import SseEvent

PLACE = Endpoint(name="acme", base_url="https://api.example.org/v1", api_key="k")
SOURCE = "openai_chat:acme"


def body_of(asked: ModelRequest, place: Endpoint = PLACE) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(OpenAIChat(place).prepare(asked).body)
    return value


def read(*deltas: dict[str, Any], finish: str = "stop", usage: dict[str, Any] | None = None) -> list[StreamEvent]:
    reader = OpenAIChat(PLACE).reader()
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks += [{"choices": [{"delta": {}, "finish_reason": finish}]}, {"choices": [], "usage": usage}]
    data = [*(msgspec.json.encode(chunk) for chunk in chunks), b"[DONE]"]
    return joined([item for event in data for item in reader.read(SseEvent("", event))])


def stop(reason: ReplyStop = ReplyStop.END_TURN, **usage: int) -> StreamStop:
    return StreamStop(reason=reason, usage=msgspec.convert(usage, Usage))


def call(index: int | None, name: str | None, arguments: object, call_id: str | None = None) -> dict[str, Any]:
    value: dict[str, Any] = {"function": {"name": name, "arguments": arguments}, "id": call_id}
    return {"tool_calls": [value if index is None else {**value, "index": index}]}


def calls(*done: tuple[str, str, str]) -> list[StreamEvent]:
    started: list[StreamEvent] = []
    for index, (name, wire_id, arguments) in enumerate(done):
        started.append(StreamCallStart(index=index, name=name, wire_id=wire_id))
        started.append(StreamCallArguments(index=index, text=arguments))
    return [*started, *(StreamCallDone(index=index) for index in range(len(done))), stop(ReplyStop.TOOL_USE)]


def test_a_whole_request_is_written() -> None:
    picture = ToolResult(
        call_id="c2", name="look", content=(Image(media_type="image/png", data="aGk="),), wire_id="call_2"
    )
    answer = Message(role=Role.USER, content=(result("print()"), picture, Text(text="Go on.")))
    asked = msgspec.structs.replace(request(user("One", "", "Two"), called(), answer), max_tokens=99)
    sent = OpenAIChat(PLACE).prepare(asked)
    assert (sent.url, dict(sent.headers)) == (
        "https://api.example.org/v1/chat/completions",
        {"authorization": "Bearer k"},
    )
    function = {"name": "read_file", "arguments": '{"path":"a.py"}'}
    assert json.loads(sent.body) == {
        "model": "scripted",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 99,
        "tools": [
            {
                "type": "function",
                "function": {"name": "read_file", "description": "Reads a file.", "parameters": READ.parameters},
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "One\n\nTwo"},
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [{"id": "call_0_0", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "call_0_0", "content": "print()"},
            {"role": "tool", "tool_call_id": "call_2", "content": "(attached below)"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Attached to the result of look:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                    {"type": "text", "text": "Go on."},
                ],
            },
        ],
    }


def test_quirks_change_the_request() -> None:
    quirks = Quirks(
        key_header="api-key", max_tokens_field="max_completion_tokens", stream_usage=False, call_ids=CallIds.NINE
    )
    place = Endpoint(name="x", base_url="https://x/openai/v1?api-version=1", api_key="k", quirks=quirks)
    answer = Message(role=Role.USER, content=(result("a"), result("b", "abcDEF123")))
    asked = msgspec.structs.replace(request(called(), answer, system=""), max_tokens=5)
    sent = OpenAIChat(place).prepare(asked)
    body = json.loads(sent.body)
    assert (sent.url, dict(sent.headers)) == ("https://x/openai/v1/chat/completions?api-version=1", {"api-key": "k"})
    assert "stream_options" not in body
    assert body["max_completion_tokens"] == 5
    ids = [message["tool_call_id"] for message in body["messages"][1:]]
    assert body["messages"][0]["tool_calls"][0]["id"] == ids[0]
    assert (len(ids[0]), ids[1]) == (9, "abcDEF123")


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (ThinkingField.NONE, {}),
        (ThinkingField.EFFORT, {"reasoning_effort": "medium"}),
        (ThinkingField.BUDGET, {"reasoning": {"max_tokens": 5000}}),
        (ThinkingField.SWITCH, {"thinking": {"type": "enabled"}}),
        (ThinkingField.ENABLE, {"enable_thinking": True, "thinking_budget": 5000}),
    ],
)
def test_each_vendor_is_asked_to_think_in_its_own_way(field: ThinkingField, expected: dict[str, Any]) -> None:
    place = Endpoint(name="x", base_url="https://x", quirks=Quirks(thinking=field))
    body = body_of(msgspec.structs.replace(request(), thinking_budget=5000), place)
    assert {key: value for key, value in body.items() if "think" in key or "reason" in key} == expected


def test_where_no_user_may_follow_a_tool_the_text_joins_the_last_result() -> None:
    place = Endpoint(name="x", base_url="https://x", quirks=Quirks(user_after_tool=False))
    answer = Message(role=Role.USER, content=(result("a"), Text(text="Go on.")))
    messages = body_of(request(called(), answer, system=""), place)["messages"]
    assert messages[1:] == [{"role": "tool", "tool_call_id": "call_0_0", "content": "a\n\nGo on."}]


def test_reasoning_goes_back_into_its_own_field_of_its_own_provider_only() -> None:
    own = WireData(api=SOURCE, data={"field": "reasoning_content"})
    details = WireData(api=SOURCE, data={"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]})
    foreign = WireData(api="openai_chat:other", data={"field": "reasoning"})
    content = (
        Thinking(text="Hm", wire=own),
        Thinking(text="", wire=details),
        Thinking(text="No", wire=foreign),
        Text(text="Yes"),
    )
    assert body_of(request(Message(role=Role.ASSISTANT, content=content), system=""))["messages"] == [
        {
            "role": "assistant",
            "content": "Yes",
            "reasoning_content": "Hm",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
        }
    ]


def test_documents_are_sent_as_files_and_calls_without_text_have_no_content() -> None:
    pdf = Message(role=Role.USER, content=(Document(media_type="application/pdf", data="aGk=", title="a.pdf"),))
    only_call = Message(role=Role.ASSISTANT, content=called().content[1:])
    answer = Message(role=Role.USER, content=(ToolResult(call_id="c1", name="x", content=(), wire_id="call_0_0"),))
    messages = body_of(request(pdf, only_call, answer, system=""))["messages"]
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}
    assert messages[0]["content"] == [{"type": "file", "file": file}]
    assert messages[1]["content"] is None
    assert messages[2]["content"] == "(no output)"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_ends_where_the_answer_begins(field: str) -> None:
    done = StreamThinkingDone(wire=WireData(api=SOURCE, data={"field": field}))
    assert read({field: "H"}, {field: "m", "content": ""}, {"content": "Yes"}) == [
        StreamThinking(text="Hm"), done, StreamText(text="Yes"), stop()
    ]  # fmt: skip


def test_reasoning_in_a_list_of_parts_is_read() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    assert read({"content": [thinking]}, {"content": [{"type": "text", "text": "Yes"}]}) == [
        StreamThinking(text="Hm"), StreamThinkingDone(), StreamText(text="Yes"), stop()
    ]  # fmt: skip


def test_reasoning_details_are_joined_and_kept() -> None:
    def piece(**fields: object) -> dict[str, Any]:
        return {"reasoning_details": [{"type": "reasoning.text", "index": 0, "format": "f", **fields}]}

    encrypted = {"type": "reasoning.encrypted", "data": "xyz", "id": "rs_1", "index": 1}
    events = read(
        {"reasoning": "H", **piece(text="H")},
        {"reasoning": "m", **piece(text="m", signature=None)},
        piece(signature="sig"),
        {"reasoning_details": [encrypted]},
        {"content": "Yes"},
    )
    whole = {"type": "reasoning.text", "index": 0, "format": "f", "text": "Hm", "signature": "sig"}
    wire = WireData(api=SOURCE, data={"reasoning_details": [whole, encrypted]})
    assert events == [StreamThinking(text="Hm"), StreamThinkingDone(wire=wire), StreamText(text="Yes"), stop()]


def test_calls_come_in_pieces_by_index_even_interleaved() -> None:
    events = read(
        call(0, "a", "", "i0"), call(1, "b", "", "i1"), call(0, None, '{"x"'), call(1, None, "{}"), call(0, None, ":1}")
    )
    assert [event for event in events if isinstance(event, StreamCallStart)] == [
        StreamCallStart(index=0, name="a", wire_id="i0"),
        StreamCallStart(index=1, name="b", wire_id="i1"),
    ]
    texts = [event for event in events if isinstance(event, StreamCallArguments)]
    assert ["".join(part.text for part in texts if part.index == index) for index in (0, 1)] == ['{"x":1}', "{}"]
    assert events[-1] == stop(ReplyStop.TOOL_USE)


@pytest.mark.parametrize(
    "deltas",
    [
        [call(None, "a", '{"x":1}', "i0"), call(None, "b", "{}", "i1")],
        [call(0, "a", '{"x":1}', "i0"), call(0, "b", "{}", "i1")],
        [call(None, "a", '{"x"', "i0"), call(None, None, ":1}"), call(None, "b", "{}", "i1")],
        [call(None, "a", '{"x"', "i0"), call(None, None, ":1}", "i0"), call(None, "b", {}, "i1")],
        [call(1, "a", '{"x":1}', "i0"), call(2, "b", "{}", "i1")],
        [
            {
                "tool_calls": [
                    call(None, "a", {"x": 1}, "i0")["tool_calls"][0],
                    call(None, "b", {}, "i1")["tool_calls"][0],
                ]
            }
        ],
        [call(0, "a", '{"x"', "i0"), call(0, "", ":1}", ""), call(1, "b", "{}", "i1")],
    ],
)
def test_calls_without_indices_with_repeated_ones_or_as_a_whole_are_told_apart(deltas: list[dict[str, Any]]) -> None:
    events = read(*deltas, finish="stop")
    first = min(event.index for event in events if isinstance(event, StreamCallStart))
    moved = [
        msgspec.structs.replace(event, index=event.index - first)
        if isinstance(event, StreamCallStart | StreamCallArguments | StreamCallDone)
        else event
        for event in events
    ]
    assert moved == calls(("a", "i0", '{"x":1}'), ("b", "i1", "{}"))


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", ReplyStop.END_TURN),
        ("length", ReplyStop.MAX_TOKENS),
        ("content_filter", ReplyStop.REFUSAL),
        ("something new", ReplyStop.END_TURN),
    ],
)
def test_reasons_to_stop_are_translated(finish: str, reason: ReplyStop) -> None:
    assert read({"content": "Hi"}, finish=finish)[-1] == stop(reason)


REFUSED = [{"refusal": "I cannot "}, {"content": "", "refusal": "help."}]


@pytest.mark.parametrize(
    ("deltas", "finish", "reason"),
    [
        (REFUSED, "stop", ReplyStop.REFUSAL),
        ([{"content": [{"type": "refusal", "refusal": "I cannot help."}]}], "stop", ReplyStop.REFUSAL),
        ([{"content": "I cannot ", "refusal": "help."}], "stop", ReplyStop.REFUSAL),
        ([{"content": "I cannot help."}], "refusal", ReplyStop.REFUSAL),
        (REFUSED, "length", ReplyStop.MAX_TOKENS),
        ([{"content": "I cannot help.", "refusal": None}], "stop", ReplyStop.END_TURN),
    ],
)
def test_a_reply_in_the_words_of_a_refusal_ends_as_one(
    deltas: list[dict[str, Any]], finish: str, reason: ReplyStop
) -> None:
    assert read(*deltas, finish=finish) == [StreamText(text="I cannot help."), stop(reason)]


def test_a_refusal_beside_a_call_keeps_the_call() -> None:
    said = read({"refusal": "Not all of it."}, call(0, "look", "{}", "c"))
    assert said[-1] == stop(ReplyStop.TOOL_USE)


def test_a_refusal_that_was_not_streamed_ends_as_one() -> None:
    whole = {"choices": [{"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"}]}
    found = OpenAIChat(PLACE).reader()
    read_whole = [*found.read(SseEvent("", msgspec.json.encode(whole))), *found.end()]
    assert read_whole == [StreamText(text="No."), stop(ReplyStop.REFUSAL)]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(input_tokens=10, output_tokens=2)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 60},
                "completion_tokens_details": {"reasoning_tokens": 15},
            },
            Usage(input_tokens=40, output_tokens=20, cache_read_tokens=60, reasoning_tokens=15),
        ),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(input_tokens=5, cache_read_tokens=4)),
        ({"prompt_tokens": -4, "completion_tokens": None}, Usage()),
        (None, Usage()),
    ],
)
def test_usage_is_read_without_the_cached_tokens_twice(usage: dict[str, Any] | None, expected: Usage) -> None:
    assert read({"content": "Hi"}, usage=usage)[-1] == StreamStop(reason=ReplyStop.END_TURN, usage=expected)
