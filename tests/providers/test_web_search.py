"""Searches that a provider makes by itself: asked for where it can, shown, and sent back untouched."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from tests.fakes.messages import add_user
from tests.providers.support import READ, called, request, result, user

from treadle.context.transcript import Transcript
from treadle.engine.runtime.reply_reader import ReplyReader
from treadle.protocol.messages import Message, Role, Text, Thinking, ToolResult, ToolUse
from treadle.protocol.models import ModelRequest, Searches, StreamFailure, StreamStop, ToolProtocol
from treadle.providers.anthropic_messages import AnthropicMessages
from treadle.providers.catalogue import find_provider
from treadle.providers.endpoint import Endpoint, Quirks
from treadle.providers.gemini import Gemini
from treadle.providers.openai_chat import OpenAIChat
from treadle.providers.openai_responses import OpenAIResponses
from treadle.providers.sse import SseEvent
from treadle.providers.web_search import searches_of
from treadle.providers.wire import WireApi

SEARCHES = Quirks(web_search=True, search_tool="openrouter:web_search")
CAN = Endpoint(name="acme", base_url="https://api.example.org", api_key="k", quirks=SEARCHES)
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
    pieces = [piece for event in events for piece in reader.read(SseEvent("", msgspec.json.encode(event)))]
    if not any(isinstance(piece, StreamStop) for piece in pieces):
        pieces += reader.end()
    for piece in pieces:
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
    add_user(transcript, results=(), prompts=((Text(text="Go"),),), notes=(), environment="")
    transcript.add_assistant(
        taken(AnthropicMessages(CAN), messages_events(USE, FOUND, {"type": "text", "text": "So."}))
    )
    add_user(transcript, results=(), prompts=((Text(text="On"),),), notes=(), environment="")
    body = make(CANNOT).prepare(request(*transcript.messages(ToolProtocol.NATIVE))).body
    assert b"So." in body
    assert b"srvtoolu" not in body
    assert b"treadle loom" not in body


SEARCH: dict[str, Any] = {
    "toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["treadle loom", "loom"]}, "id": "s1"},
    "thoughtSignature": "A",
}
ANSWER: dict[str, Any] = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"x": 1}, "id": "s1"}}
GROUNDING = {
    "webSearchQueries": ["", "treadle loom", "loom", "treadle loom"],
    "groundingChunks": [{"web": {"uri": "https://example.org/1", "title": "T1"}}, {"other": {}}],
}


def gemini_events(*parts: dict[str, Any], grounding: dict[str, Any] | None = None) -> Iterable[dict[str, Any]]:
    for part in parts:
        yield {"candidates": [{"content": {"parts": [part]}}]}
    yield {"candidates": [{"finishReason": "STOP", **({"groundingMetadata": grounding} if grounding else {})}]}


def test_a_search_of_the_gemini_api_is_shown_and_goes_back_as_it_came() -> None:
    api = Gemini(CAN)
    message = taken(api, gemini_events(SEARCH, ANSWER, {"text": "So."}, grounding=GROUNDING))
    shown = [block.text for block in message.content if isinstance(block, Thinking) and block.searched]
    assert shown == ["Searched the web: treadle loom; loom", "Searched the web\n- T1: https://example.org/1"]
    assert sent(api, user("Go"), message)["contents"][1]["parts"] == [SEARCH, ANSWER, {"text": "So."}]


def test_half_a_search_of_the_gemini_api_is_dropped_and_grounding_alone_is_told() -> None:
    api = Gemini(CAN)
    assert taken(api, gemini_events(SEARCH, {"text": "So."})).content == (Text(text="So."),)
    assert taken(api, gemini_events(ANSWER, {"text": "So."})).content == (Text(text="So."),)
    message = taken(api, gemini_events({"text": "So."}, grounding=GROUNDING))
    assert isinstance(shown := message.content[-1], Thinking)
    assert (shown.searched, shown.wire) == (True, None)
    assert shown.text == "Searched the web: treadle loom; loom\n- T1: https://example.org/1"
    assert sent(api, user("Go"), message)["contents"][1]["parts"] == [{"text": "So."}]


def test_gemini_is_asked_to_search_only_from_version_3_on_and_beside_functions_in_the_open() -> None:
    def body(model: str, asked: ModelRequest) -> Any:
        wanted = msgspec.structs.replace(asked, web_search=True, model=model)
        return json.loads(Gemini(CAN).prepare(wanted).body)

    new = body("gemini-3-flash-preview", request())
    assert list(new["tools"][0]) == ["googleSearch", "functionDeclarations"]
    assert new["toolConfig"] == {"includeServerSideToolInvocations": True}
    in_words = body("gemini-3.1-pro-preview", request(tools=()))
    assert (in_words["tools"], "toolConfig" in in_words) == ([{"googleSearch": {}}], False)
    old = body("gemini-2.5-pro", request())
    assert (list(old["tools"][0]), "toolConfig" in old) == (["functionDeclarations"], False)


def chat_events(*deltas: dict[str, Any], **more: object) -> Iterable[dict[str, Any]]:
    for delta in deltas:
        yield {"choices": [{"delta": delta}], **more}
    yield {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    yield {"choices": [], "usage": {"prompt_tokens": 5, "server_tool_use": {"web_search_requests": 2}}}


NOTE = {"type": "url_citation", "url_citation": {"url": "https://example.org/1", "title": "T1", "start_index": 0}}


def test_a_search_in_the_chat_api_is_told_before_the_calls_that_it_may_have_led_to() -> None:
    api = OpenAIChat(CAN)
    call = {"tool_calls": [{"index": 0, "id": "i", "function": {"name": "read_file", "arguments": '{"path":"a"}'}}]}
    results = [{"title": "T1", "url": "https://example.org/1"}]
    for events in (
        chat_events({"content": "So.", "annotations": [NOTE]}, {"annotations": [NOTE]}, call),
        chat_events({"content": "So."}, call, search_results=results),
    ):
        message = taken(api, events)
        assert [type(block) for block in message.content] == [Text, Thinking, ToolUse]
        assert isinstance(shown := message.content[1], Thinking)
        assert (shown.searched, shown.text) == (True, "Searched the web\n- T1: https://example.org/1")
        assert "reasoning" not in json.dumps(sent(api, user("Go"), message))
    unseen = [
        block for block in taken(api, chat_events({"content": "So."}, call)).content if isinstance(block, Thinking)
    ]
    assert [(block.searched, block.text) for block in unseen] == [(True, "Searched the web")]


@pytest.mark.parametrize(
    ("api", "events", "count"),
    [
        (
            AnthropicMessages(CAN),
            [
                {"type": "message_delta", "delta": {}, "usage": {"server_tool_use": {"web_search_requests": 3}}},
                {"type": "message_stop"},
            ],
            3,
        ),
        (OpenAIResponses(CAN), responses_events(CALL, CALL, {**CALL, "action": {"type": "open_page"}}), 2),
        (
            OpenAIResponses(CAN),
            [
                *list(responses_events(CALL))[:-1],
                {
                    "type": "response.completed",
                    "response": {"usage": {"server_side_tool_usage_details": {"web_search_calls": 4}}},
                },
            ],
            4,
        ),
        (Gemini(CAN), gemini_events({"text": "So."}, grounding=GROUNDING), 2),
        (Gemini(CAN), gemini_events(SEARCH, ANSWER, {"text": "So."}), 2),
        (OpenAIChat(CAN), chat_events({"content": "So."}), 2),
        (OpenAIChat(CAN), [{"choices": [{"delta": {"content": "So."}, "finish_reason": "stop"}]}], 0),
    ],
)
def test_searches_are_counted(api: WireApi, events: Iterable[dict[str, Any]], count: int) -> None:
    reader = api.reader()
    for event in events:
        list(reader.read(SseEvent("", msgspec.json.encode(event))))
    assert reader.usage.searches == count


def test_what_searches_cost_is_known_by_provider_and_bounded_where_the_api_can() -> None:
    names = ("anthropic", "openai", "openrouter", "gemini", "groq", "xai", "xai-responses")
    assert {name: searches_of(find_provider(name), "m") for name in names} == {
        "anthropic": Searches(price=10.0, most=5),
        "openai": Searches(price=10.0, most=5),
        "openrouter": Searches(),
        "gemini": None,
        "groq": None,
        "xai": None,
        "xai-responses": Searches(price=5.0),
    }
    assert searches_of(find_provider("gemini"), "gemini-3-pro") == Searches(price=14.0)
    wanted = msgspec.structs.replace(request(), web_search=True)
    assert json.loads(OpenAIResponses(CAN).prepare(wanted).body)["max_tool_calls"] == 5
    assert "max_tool_calls" not in json.loads(OpenAIResponses(CAN).prepare(request()).body)
    unbounded = Endpoint(name="x", base_url="https://x", quirks=Quirks(web_search=True, search_bound=False))
    body = json.loads(OpenAIResponses(unbounded).prepare(wanted).body)
    assert (body["tools"][-1], "max_tool_calls" in body) == ({"type": "web_search"}, False)


@pytest.mark.parametrize(
    ("make", "tool"),
    [
        (OpenAIChat, {"type": "openrouter:web_search"}),
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
