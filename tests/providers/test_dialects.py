"""Replies as real servers write them beside the documentation: right text, right calls, nothing that was cut."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from tests.providers.support import APIS, READ, called, collect, fixed_server, provider_at, request

from treadle.engine.runtime.reply_reader import ReplyReader
from treadle.protocol.events import CallProposed
from treadle.protocol.messages import Message, Role, Text, Thinking, ToolUse, text_of
from treadle.protocol.models import (
    ErrorKind,
    ReplyStop,
    StreamCallDone,
    StreamCallStart,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinkingDone,
    ToolProtocol,
)
from treadle.protocol.tools import ToolSpec
from treadle.protocol.usage import Usage
from treadle.providers.endpoint import Endpoint
from treadle.providers.pieces import StreamPieces, UsedIds
from treadle.providers.sse import SseEvent
from treadle.providers.wire import CallFailedError

PLACE = Endpoint(name="acme", base_url="https://api.example.org/v1")
LIST = ToolSpec(
    name="list", description="Lists.", parameters={"type": "object"}, traits=READ.traits, risk=READ.risk
)  # a call of it needs no argument
A, B = '{"path":"a"}', '{"path":"b"}'
BOTH = [("read_file", {"path": "a"}), ("read_file", {"path": "b"})]
Event = dict[str, Any] | bytes | tuple[str, Any]


class Read:
    """What a session keeps of a reply."""

    def __init__(self, api: str, events: Sequence[Event]) -> None:
        reader = APIS[api][0](PLACE).reader()
        kept = ReplyReader({"read_file": READ, "list": LIST}, ToolProtocol.NATIVE, step=1, attempt=1)
        pieces = [piece for event in events for piece in reader.read(named(event))]
        if not any(isinstance(piece, StreamStop) for piece in pieces):
            pieces += reader.end()
        found: list[object] = []
        for one in pieces:
            if not isinstance(one, StreamStop | StreamFailure):
                found += kept.feed(one)
        proposed = [one.call for one in [*found, *kept.finish()] if isinstance(one, CallProposed)]
        self.message = kept.message()
        self.runs = [(call.name, call.arguments) for call in proposed if not call.problem]
        self.refused = [call.problem for call in proposed if call.problem]
        (self.stop,) = [piece for piece in pieces if isinstance(piece, StreamStop)]
        self.ids = [piece.wire_id for piece in pieces if isinstance(piece, StreamCallStart)]

    @property
    def text(self) -> str:
        return text_of(self.message.content)


def named(event: Event) -> SseEvent:
    name, value = event if isinstance(event, tuple) else ("", event)
    return SseEvent(name, value if isinstance(value, bytes) else json.dumps(value).encode())


def delta(value: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": value, "finish_reason": finish}]}


def piece(name: str | None = None, arguments: object = None, **more: object) -> dict[str, Any]:
    return delta({"tool_calls": [{"function": {"name": name, "arguments": arguments}, **more}]})


CALLS, STOP, CUT = delta({}, "tool_calls"), delta({}, "stop"), delta({}, "length")


@pytest.mark.parametrize(
    "events",
    [
        [
            piece("read_file", "", index=0, id="i0"),
            piece(None, A, index=0),
            piece("read_file", "", index=0, id="i1"),
            piece(None, B, index=0),
        ],
        [piece("read_file", A, index=0), piece("read_file", B, index=0)],
        [piece("read_file", A, index=0, id=""), piece("read_file", B, index=0, id="")],
        [
            delta({"tool_calls": [{"index": 0, "id": "i", "type": "function"}]}),
            piece("read_file", None, index=0),
            piece(None, A, index=0),
            piece("read_file", B, index=1),
        ],
        [piece(None, '{"path"', index=0), piece("read_file", ':"a"}', index=0), piece("read_file", B, index=1)],
        [piece("read_file", {"path": "a"}, index="0", id=1), piece("read_file", {"path": "b"}, index="1", id=2)],
        [
            piece("read_file", A[:5], index=0, id="x"),
            piece("read_file", A[5:], index=0, id="x"),
            piece("read_file", B, index=1, id="x"),
        ],
        [piece("read_file", A, index=3, id="i"), piece("", "", index=3, id=""), piece("read_file", B, index=9, id="j")],
    ],
)
def test_calls_of_a_chat_reply_are_told_apart(events: list[Event]) -> None:
    assert Read("chat", [*events, CALLS]).runs == BOTH


def test_an_id_that_comes_late_and_a_call_in_the_old_form_are_taken() -> None:
    late = Read("chat", [piece("read_file", "", index=0), piece(None, A, index=0, id="late"), CALLS])
    assert (late.runs, late.ids) == (BOTH[:1], ["late"])
    old = [delta({"function_call": value}) for value in ({"name": "read_file", "arguments": ""}, {"arguments": A})]
    assert Read("chat", [*old, delta({}, "function_call")]).runs == BOTH[:1]


def block(index: int, value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": value}


def of_block(index: int, kind: str, **value: object) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **value}}


def closed(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}


USE = {"type": "tool_use", "id": "t", "name": "read_file", "input": {}}
BARE = {"type": "tool_use", "id": "t", "name": "list", "input": {}}
LAST = {"type": "message_stop"}


@pytest.mark.parametrize(
    "events",
    [
        [
            block(0, USE),
            of_block(0, "input_json_delta", partial_json=A),
            closed(0),
            block(0, {**USE, "input": {"path": "b"}}),
            closed(0),
        ],
        [
            block(0, USE),
            of_block(0, "input_json_delta", partial_json=A),
            block(1, USE),
            of_block(1, "input_json_delta", partial_json=B),
        ],
        [
            block(0, {**USE, "text": None}),
            of_block(0, "input_json_delta", partial_json=None),
            of_block(0, "input_json_delta", partial_json=A),
            closed(0),
            block(1, {**USE, "input": json.loads(B)}),
        ],
    ],
)
@pytest.mark.parametrize("last", [[LAST], []])
def test_calls_of_a_messages_reply_are_told_apart_and_its_end_is_known(events: list[Event], last: list[Event]) -> None:
    read = Read("anthropic", [*events, ended("tool_use"), *last])
    assert (read.runs, read.stop.reason, read.stop.usage.output_tokens) == (BOTH, ReplyStop.TOOL_USE, 7)


def test_nulls_where_nothing_is_and_kinds_in_the_event_name_alone_are_understood() -> None:
    read = Read(
        "anthropic",
        [
            block(0, {"type": "thinking", "thinking": "", "signature": None, "text": None}),
            of_block(0, "thinking_delta", thinking="Hm", text=None, signature=None),
            closed(0),
            ("content_block_delta", {"index": 1, "delta": {"type": "text_delta", "text": "Yes"}}),
            ended("end_turn"),
            ("message_stop", {}),
        ],
    )
    assert [type(one) for one in read.message.content] == [Thinking, Text]
    part = {"text": None, "thought": None, "functionCall": {"id": None, "name": "read_file", "args": {"path": None}}}
    gemini = Read("gemini", [{"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}])
    (use,) = gemini.message.content
    assert isinstance(use, ToolUse)
    assert use.arguments == {"path": None}
    named_only = [("response.output_text.delta", {"delta": "Yes"}), ("response.completed", {"response": {}})]
    assert Read("responses", named_only).text == "Yes"


def item(arguments: object, call_id: str, **more: object) -> dict[str, Any]:
    return {"type": "function_call", "id": "i", "call_id": call_id, "name": "read_file", "arguments": arguments, **more}


def told(kind: str, value: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": value}


def arguments(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": text}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"output": list(output)}}


@pytest.mark.parametrize(
    "events",
    [
        [
            told("added", item("", "1")),
            arguments(A),
            told("done", item(A, "1")),
            told("added", item("", "2")),
            arguments(B),
            told("done", item(B, "2")),
            completed(),
        ],
        [told("done", item({"path": "a"}, "1")), told("done", item({"path": "b"}, "2"), 1), completed()],
        [arguments(A), told("done", item(A, "1")), told("added", item("", "2"), 1), arguments(B, 1), completed()],
        [told("added", item("", "1")), told("added", item("", "2"), 1), completed(item(A, "1"), item(B, "2"))],
        [completed(item(A, "1"), item(B, "2"))],
    ],
)
def test_calls_of_a_responses_reply_are_told_apart(events: list[Event]) -> None:
    assert Read("responses", events).runs == BOTH


def gemini(part: dict[str, Any], finish: str) -> list[Event]:
    return [{"candidates": [{"content": {"parts": [part]}}]}, {"candidates": [{"finishReason": finish}]}]


def bedrock(reason: str) -> list[Event]:
    start = {"contentBlockIndex": 0, "start": {"toolUse": {"name": "list", "toolUseId": "t"}}}
    return [
        ("contentBlockStart", start),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": reason}),
    ]


BARE_ITEM = item("", "1", name="list")
BARE_CALL = {"functionCall": {"name": "list", "willContinue": True}}


@pytest.mark.parametrize(
    ("api", "whole", "cut"),
    [
        ("chat", [piece("list", "", index=0), CALLS], [piece("list", "", index=0), CUT]),
        (
            "anthropic",
            [block(0, BARE), closed(0), ended("tool_use"), LAST],
            [block(0, BARE), closed(0), ended("max_tokens"), LAST],
        ),
        (
            "responses",
            [told("done", BARE_ITEM), completed()],
            [told("done", {**BARE_ITEM, "status": "incomplete"}), {"type": "response.incomplete", "response": {}}],
        ),
        ("gemini", gemini(BARE_CALL, "STOP"), gemini(BARE_CALL, "MAX_TOKENS")),
        ("bedrock", bedrock("tool_use"), bedrock("max_tokens")),
    ],
)
def test_a_call_that_was_cut_before_its_arguments_is_not_one_without_any(
    api: str, whole: list[Event], cut: list[Event]
) -> None:
    assert Read(api, whole).runs == [("list", {})]
    read = Read(api, cut)
    assert (read.runs, len(read.refused)) == ([], 1)
    assert "is cut off" in read.refused[0]


def test_a_thought_with_its_signature_in_one_part_keeps_it() -> None:
    thought = {"text": "Hm", "thought": True, "thoughtSignature": "S"}
    kept = Read("gemini", [*gemini(thought, "STOP")]).message.content[0]
    assert isinstance(kept, Thinking)
    assert kept.wire is not None
    assert (kept.text, kept.wire.data) == ("Hm", {"thoughtSignature": "S"})


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        ([{"prompt_tokens": 5, "completion_tokens": 3}, {}], Usage(input_tokens=5, output_tokens=3)),
        (
            [{"prompt_tokens": 5, "completion_tokens": 1}, None, {"completion_tokens": 3}],
            Usage(input_tokens=5, output_tokens=3),
        ),
        ([{"prompt_tokens": 5.0, "completion_tokens": "3"}], Usage(input_tokens=5, output_tokens=3)),
        (
            [
                {
                    "prompt_tokens": 5,
                    "completion_tokens": 3,
                    "total_tokens": 48,
                    "completion_tokens_details": {"reasoning_tokens": 40},
                }
            ],
            Usage(input_tokens=5, output_tokens=43, reasoning_tokens=40),
        ),
    ],
)
def test_usage_is_counted_whole_wherever_it_stands(usages: list[Any], expected: Usage) -> None:
    chunks = [{**delta({"content": "x"}), "usage": usage} for usage in usages]
    assert Read("chat", [*chunks, STOP]).stop.usage == expected


@pytest.mark.parametrize(
    "event",
    [
        {"object": "error", "message": "boom", "type": "BadRequestError", "code": 400},
        {"code": 20012, "message": "boom", "data": None},
        {"detail": "boom"},
        {"choices": [{"delta": {"content": "a"}, "finish_reason": "error", "error": {"message": "boom", "code": 502}}]},
    ],
)
def test_a_failure_in_place_of_a_piece_is_told(event: Event) -> None:
    with pytest.raises(CallFailedError, match="boom"):
        Read("chat", [event, b"[DONE]"])


@pytest.mark.parametrize("halves", [("a\\ud83d", "\\ude00b"), ("a\\ud83d\\ude00", "b"), ("a\\uD83D", "\\uDE00b")])
async def test_the_halves_of_a_character_are_joined(halves: tuple[str, str]) -> None:
    events = b"".join(b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % half.encode() for half in halves)
    headers = {"Content-Type": "text/event-stream"}
    async with fixed_server("200 OK", headers, events + b"data: [DONE]\n\n") as url:
        found = await collect(provider_at("chat", url), request())
    assert "".join(one.text for one in found if isinstance(one, StreamText)) == "a😀b"


def test_a_half_whose_other_one_never_comes_is_replaced_and_everything_can_be_stored() -> None:
    half = b'{"choices":[{"delta":{"content":"a\\ud83d","reasoning_details":[{"type":"x","text":"\\ud83d"}]}}]}'
    reader, pieces = APIS["chat"][0](PLACE).reader(), StreamPieces(frozenset())
    read = [one for data in (half, b"[DONE]") for one in reader.read(SseEvent("", data))]
    found = [repaired for one in read for repaired in pieces.repair(one)]
    assert "".join(one.text for one in found if isinstance(one, StreamText)) == "a\ufffd"
    (done,) = [one for one in found if isinstance(one, StreamThinkingDone)]
    assert done.wire is not None
    assert done.wire.data == {"reasoning_details": [{"type": "x", "text": "\ufffd"}]}
    msgspec.json.encode(found)


def test_an_id_that_the_conversation_has_already_is_dropped() -> None:
    before = (called("call_0"), Message(role=Role.USER, content=(Text(text="Go on."),)))
    pieces = StreamPieces(UsedIds().of(before))
    started = [StreamCallStart(index=n, name="x", wire_id=one) for n, one in enumerate(["call_0", "new", "new", ""])]
    found = [one for start in started for one in pieces.repair(start)]
    assert [one.wire_id for one in found if isinstance(one, StreamCallStart)] == ["", "new", "", ""]


def test_used_ids_follow_a_conversation_that_goes_on_or_is_another() -> None:
    first, second, other = called("a"), called("b"), called("c")
    ids = UsedIds()
    assert ids.of((first,)) == {"a"}
    assert ids.of((first, second)) == {"a", "b"}
    held = ids.of((first, second))
    assert ids.of((other,)) == {"c"}
    assert held == {"a", "b"}  # another conversation takes nothing from one that is still read
    assert ids.of((first, second)) == {"a", "b"}
    assert ids.of(()) == set()


def of_stream(value: dict[str, Any], reply: str) -> dict[str, Any]:
    return {"id": reply, **value}


def at(index: int, value: dict[str, Any], kind: str = "contentBlockDelta") -> tuple[str, Any]:
    return kind, {"contentBlockIndex": index, **value}


def from_gemini(reply: str, **part: object) -> dict[str, Any]:
    return {"responseId": reply, "candidates": [{"content": {"parts": [part]}}]}


ITEM = {"type": "function_call", "call_id": "c", "name": "read_file"}
OPENED = {"type": "response.output_item.added", "output_index": 0, "item": ITEM}
RESTARTED: dict[str, tuple[list[Event], list[Event], list[Event]]] = {
    "anthropic": (
        [{"type": "message_start", "message": {"usage": {"input_tokens": 3}}}],
        [block(0, USE), of_block(0, "input_json_delta", partial_json=A)],
        [closed(0), ended("tool_use"), LAST],
    ),
    "chat": (
        [of_stream(delta({"role": "assistant", "content": ""}), "one")],
        [of_stream(piece("read_file", A, index=0, id="i"), "one")],
        [of_stream(CALLS, "one")],
    ),
    "responses": (
        [{"type": "response.created", "response": {}}, {"type": "response.in_progress", "response": {}}],
        [OPENED, {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": A}],
        [
            {"type": "response.output_item.done", "output_index": 0, "item": {**ITEM, "arguments": A}},
            {"type": "response.completed", "response": {}},
        ],
    ),
    "gemini": (
        [from_gemini("one", text="I look.")],
        [from_gemini("one", functionCall={"name": "read_file", "args": {"path": "a"}, "willContinue": True})],
        [
            {
                "responseId": "one",
                "candidates": [{"content": {"parts": [{"functionCall": {}}]}, "finishReason": "STOP"}],
            }
        ],
    ),
    "bedrock": (
        [("messageStart", {"role": "assistant"})],
        [
            at(0, {"start": {"toolUse": {"toolUseId": "t", "name": "read_file"}}}, "contentBlockStart"),
            at(0, {"delta": {"toolUse": {"input": A}}}),
        ],
        [at(0, {}, "contentBlockStop"), ("messageStop", {"stopReason": "tool_use"})],
    ),
}


def renamed(event: Event) -> Event:
    """The same event as part of another reply, where its API says so."""
    text = json.dumps(event if isinstance(event, dict) else event[1])
    value = json.loads(text.replace('"one"', '"two"'))
    return value if isinstance(event, dict) else (str(event[0]), value)


@pytest.mark.parametrize("api", RESTARTED)
def test_a_stream_that_is_started_over_fails_and_its_first_call_never_completes(api: str) -> None:
    start, middle, end = RESTARTED[api]
    assert Read(api, [*start, *middle, *end]).runs == BOTH[:1]
    restarted = map(named, [*start, *middle, *map(renamed, start), *map(renamed, middle), *map(renamed, end)])
    reader = APIS[api][0](PLACE).reader()
    pieces: list[object] = []
    with pytest.raises(CallFailedError, match="started over") as failed:
        pieces.extend(piece for event in restarted for piece in reader.read(event))
    assert (failed.value.error.kind, failed.value.error.retryable) == (ErrorKind.MALFORMED_STREAM, True)
    assert any(isinstance(piece, StreamCallStart | StreamText) for piece in pieces)
    assert not any(isinstance(piece, StreamCallDone) for piece in pieces)


@pytest.mark.parametrize("api", RESTARTED)
def test_a_start_that_comes_twice_before_anything_else_is_one_start(api: str) -> None:
    start, middle, end = RESTARTED[api]
    assert Read(api, [*start, *start, *middle, *end]).runs == BOTH[:1]


def test_pieces_that_each_have_an_id_or_a_role_of_their_own_are_one_reply() -> None:
    events = [of_stream(delta({"role": "assistant", "content": text}), text) for text in ("a", "b", "c")]
    assert Read("chat", [*events, of_stream(STOP, "d")]).text == "abc"
    roles = [of_stream(delta({"role": "assistant", "content": text}), "one") for text in ("a", "b", "c")]
    assert Read("chat", [*roles, of_stream(STOP, "other")]).text == "abc"
    each = [from_gemini(text, text=text) for text in ("a", "b", "c")]
    assert Read("gemini", [*each, {"candidates": [{"finishReason": "STOP"}]}]).text == "abc"
