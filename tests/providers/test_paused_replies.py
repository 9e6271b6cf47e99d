"""A reply that the provider pauses goes on: what came goes back, and the stream is one."""

import json
from typing import Any

from tests.app.local_servers import Asked, http_server
from tests.providers.support import collect, joined, provider_at, request

from treadle.protocol.models import (
    ReplyStop,
    StreamCallDone,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
)
from treadle.protocol.usage import Usage
from treadle.providers.http_replies import MOST_PARTS

USE = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srv_1",
    "content": [{"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "E"}],
}


def part(stop: str, *events: dict[str, Any]) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 1}
    said: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": usage}}, *events]
    said += [{"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}]
    said += [{"type": "message_stop"}]
    return b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in said)


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"type": "content_block_start", "index": index, "content_block": content}]
    said += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*said, {"type": "content_block_stop", "index": index}]


FIRST = part(
    "pause_turn",
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Hm"},
        {"type": "thinking_delta", "thinking": "m."},
        {"type": "signature_delta", "signature": "sig"},
    ),
    *block(
        1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I look "}, {"type": "text_delta", "text": "."}
    ),
    *block(
        2,
        USE,
        {"type": "input_json_delta", "partial_json": '{"query":"x'},
        {"type": "input_json_delta", "partial_json": '"}'},
    ),
)
SECOND = part(
    "end_turn", *block(0, FOUND), *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done"})
)


async def played(*parts: bytes) -> tuple[list[Any], list[Any]]:
    """The stream, and the messages of each request; the last part is said again and again."""
    asked: list[Any] = []

    def answer(one: Asked) -> tuple[int, object]:
        asked.append(json.loads(one.body))
        return 200, parts[min(len(asked), len(parts)) - 1]

    async with http_server(answer) as url:
        events = joined(await collect(provider_at("anthropic", url), request()))
    return events, asked


async def test_what_came_goes_back_untouched_and_the_reply_goes_on_in_one_stream() -> None:
    events, asked = await played(FIRST, SECOND)
    kinds = [type(event) for event in events]
    assert kinds == [
        StreamThinking,
        StreamThinkingDone,
        StreamText,
        StreamThinking,
        StreamThinkingDone,
        StreamText,
        StreamStop,
    ]
    assert "Searched the web: x\n- A: https://a.example" in events[3].text
    assert events[4].wire.data["blocks"] == [{**USE, "input": {"query": "x"}}, FOUND]
    assert events[-1] == StreamStop(reason=ReplyStop.END_TURN, usage=Usage(input_tokens=20, output_tokens=10))
    first, second = (one["messages"] for one in asked)
    assert second == [
        *first,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hmm.", "signature": "sig"},
                {"type": "text", "text": "I look ."},
                {**USE, "input": {"query": "x"}},
            ],
        },
    ]
    assert {name: value for name, value in asked[0].items() if name != "messages"} == {
        name: value for name, value in asked[1].items() if name != "messages"
    }


async def test_a_reply_that_is_paused_again_and_again_ends() -> None:
    events, asked = await played(part("pause_turn", *block(0, {"type": "text", "text": "More. "})))
    assert len(asked) == MOST_PARTS
    assert events[-1] == StreamStop(
        reason=ReplyStop.END_TURN, usage=Usage(input_tokens=10 * MOST_PARTS, output_tokens=5 * MOST_PARTS)
    )
    assert asked[-1]["messages"][-1]["content"][-1] == {"type": "text", "text": "More."}


async def test_a_pause_with_nothing_said_or_with_a_call_of_ours_ends_the_reply() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}}
    for said, calls in ((), 0), (block(0, call), 1):
        events, asked = await played(part("pause_turn", *said))
        assert (len(asked), type(events[-1])) == (1, StreamStop)
        assert sum(isinstance(event, StreamCallDone) for event in events) == calls


async def test_a_part_that_fails_ends_the_stream_with_all_that_was_billed() -> None:
    events, asked = await played(FIRST, b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n')
    assert len(asked) == 2
    assert isinstance(events[-1], StreamFailure)
    assert events[-1].usage == Usage(input_tokens=10, output_tokens=5)
