"""Searches that a provider makes by itself: asked for where it can, shown, and sent back untouched."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from tests.providers.support import READ, called, request, result, user

from treadle.context.transcript import Transcript
from treadle.engine.reader import ReplyReader
from treadle.protocol.messages import Message, Role, Text, Thinking, ToolResult, ToolUse
from treadle.protocol.models import ModelRequest, StreamFailure, StreamStop, ToolProtocol
from treadle.providers.anthropic_messages import AnthropicMessages
from treadle.providers.endpoint import Endpoint, Quirks
from treadle.providers.gemini import Gemini
from treadle.providers.openai_chat import OpenAIChat
from treadle.providers.openai_responses import OpenAIResponses
from treadle.providers.sse import SseEvent
from treadle.providers.wire import WireApi

CAN = Endpoint(name="acme", base_url="https://api.example.org", api_key="k", quirks=Quirks(web_search=True))
CANNOT = Endpoint(name="other", base_url="https://api.example.org", api_key="k")

USE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "treadle loom"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "url": f"https://example.org/{n}",
            "title": f"T{n}",
            "encrypted_content": "E",
            "x": n,
        }
        for n in range(7)
    ],
    "caller": {"type": "direct"},
}
CALL = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "treadle loom", "sources": [{"url": "https://example.org"}]},
}
SAID = "Searched the web: treadle loom"


def messages_events(*blocks: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """A reply of the Messages API with these blocks, the input of uses in pieces."""
    for index, block in enumerate(blocks):
        pieces = json.dumps(block["input"]) if "input" in block else ""
        yield {
            "type": "content_block_start",
            "index": index,
            "content_block": {**block, **({"input": {}} if pieces else {})},
        }
        for at in range(0, len(pieces), 5):
            delta = {"type": "input_json_delta", "partial_json": pieces[at : at + 5]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def responses_events(*items: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress"}}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {}}


def taken(api: WireApi, events: Iterable[dict[str, Any]]) -> Message:
    """What the session keeps of a reply."""
    reader = api.reader()
    kept = ReplyReader({"read_file": READ}, ToolProtocol.NATIVE, step=1, attempt=1)
    for event in events:
        for piece in reader.read(SseEvent("", msgspec.json.encode(event))):
            if not isinstance(piece, StreamStop | StreamFailure):
                kept.feed(piece)
    kept.finish()
    return kept.message()


def answer(text: str) -> ToolResult:
    return ToolResult(call_id="c", name="read_file", content=(Text(text=text),), wire_id="toolu_1")


def sent(api: WireApi, *messages: Message) -> Any:
    return json.loads(api.prepare(request(*messages)).body)


def test_a_search_of_the_messages_api_is_shown_and_goes_back_as_it_came() -> None:
    api = AnthropicMessages(CAN)
    text, call = {"type": "text", "text": "So."}, {"type": "tool_use", "id": "toolu_1", "name": "read_file"}
    message = taken(api, messages_events(USE, FOUND, text, {**call, "input": {"path": "a"}}))
    assert [type(block) for block in message.content] == [Thinking, Text, ToolUse]
    assert isinstance(shown := message.content[0], Thinking)
    links = "\n".join(f"- T{n}: https://example.org/{n}" for n in range(5))
    assert shown.text == f"{SAID}\n{links}\n- and 2 more"
    body = sent(api, user("Go"), message, Message(role=Role.USER, content=(answer("x"),)))
    assert body["messages"][1]["content"] == [USE, FOUND, text, {**call, "input": {"path": "a"}}]


def test_a_search_explains_no_call_where_thinking_is_wanted() -> None:
    api = AnthropicMessages(CAN)
    call = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}}
    message = taken(api, messages_events(USE, FOUND, call))
    results = Message(role=Role.USER, content=(answer("x"),))
    asked = msgspec.structs.replace(request(user("Go"), message, results), thinking_budget=4096, max_tokens=9000)
    assert "thinking" not in json.loads(api.prepare(asked).body)


def test_a_search_that_failed_or_broke_off_is_told_or_dropped() -> None:
    api = AnthropicMessages(CAN)
    failed = {**FOUND, "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}
    message = taken(api, messages_events(USE, failed))
    assert isinstance(shown := message.content[0], Thinking)
    assert shown.text == f"{SAID}\n- it failed: max_uses_exceeded"
    assert sent(api, user("Go"), message)["messages"][1]["content"] == [USE, failed]
    assert taken(api, messages_events({"type": "text", "text": "Hm."}, USE)).content == (Text(text="Hm."),)
    assert taken(api, messages_events(FOUND)).content == ()


def test_a_search_of_the_responses_api_is_shown_and_goes_back_as_it_came() -> None:
    api = OpenAIResponses(CAN)
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
    message = taken(api, responses_events(thought, CALL))
    assert isinstance(shown := message.content[1], Thinking)
    assert shown.text == SAID
    assert sent(api, user("Go"), message)["input"][1:] == [thought, CALL]


@pytest.mark.parametrize("make", [AnthropicMessages, OpenAIResponses, OpenAIChat, Gemini])
def test_another_provider_is_not_sent_a_search_and_a_conversation_with_one_goes_on(
    make: Callable[[Endpoint], WireApi],
) -> None:
    transcript = Transcript()
    transcript.add_user(results=(), prompts=((Text(text="Go"),),), notes=(), environment="")
    transcript.add_assistant(
        taken(AnthropicMessages(CAN), messages_events(USE, FOUND, {"type": "text", "text": "So."}))
    )
    transcript.add_user(results=(), prompts=((Text(text="On"),),), notes=(), environment="")
    body = make(CANNOT).prepare(request(*transcript.messages(ToolProtocol.NATIVE))).body
    assert b"So." in body
    assert b"srvtoolu" not in body
    assert b"treadle loom" not in body


@pytest.mark.parametrize(
    ("make", "tool"),
    [
        (AnthropicMessages, {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}),
        (OpenAIResponses, {"type": "web_search"}),
    ],
)
def test_it_is_asked_for_only_where_it_is_wanted_and_can_be(
    make: Callable[[Endpoint], WireApi], tool: dict[str, Any]
) -> None:
    def tools(place: Endpoint, asked: ModelRequest) -> Any:
        return json.loads(make(place).prepare(asked).body).get("tools", [])

    plain = request(user("Go"), called(), Message(role=Role.USER, content=(result("x"),)))
    wanted = msgspec.structs.replace(plain, web_search=True)
    assert tools(CAN, wanted) == [*tools(CAN, plain), tool]
    assert tools(CANNOT, wanted) == tools(CANNOT, plain) == tools(CAN, plain)
    in_words = msgspec.structs.replace(request(user("Go"), tools=()), web_search=True)
    assert tools(CAN, in_words) == [tool]
