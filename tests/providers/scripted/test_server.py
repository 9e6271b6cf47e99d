"""The scripted server is as strict as the real APIs, and speaks plain HTTP."""

import asyncio
from typing import Any

import httpx2
import pytest

from treadle.providers.scripted.anthropic_format import AnthropicFormat
from treadle.providers.scripted.chat_format import ChatFormat
from treadle.providers.scripted.gemini_format import GeminiFormat
from treadle.providers.scripted.responses_format import ResponsesFormat
from treadle.providers.scripted.script import Refuse, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer, serve
from treadle.providers.scripted.wire_format import WireFormat

SCRIPT = Script(turns=(Turn(items=(SayText(text="Hi"),)),), model="demo")
SCHEMA = {"type": "object", "properties": {}}


def said(wire: WireFormat, body: dict[str, Any]) -> list[str]:
    return [broken.said for broken in wire.book.broken(body)]


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def use(call_id: str = "t1") -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "x", "input": {}}]}


def answer(*call_ids: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id} for call_id in call_ids]}


def anthropic(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    tools = [{"name": "x", "description": "", "input_schema": SCHEMA}]
    return {"model": "m", "stream": True, "max_tokens": 9, "tools": tools, "messages": list(messages), **fields}


HELLO = {"role": "user", "content": "Hello"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (anthropic(), "messages: at least one is required"),
        (anthropic(HELLO, max_tokens=0), "max_tokens: a positive number is required"),
        (anthropic(HELLO, stream=False), "stream: the scripted server only streams"),
        (anthropic(HELLO, model=""), "model: a name is required"),
        (anthropic(HELLO, thinking={"type": "enabled", "budget_tokens": 2000}), "thinking.budget_tokens: must be"),
        (anthropic(HELLO, system=[text(" ")]), "system: text content blocks must be non-empty"),
        (anthropic(use(), answer("t1")), "messages.0: the first message must be the user's"),
        (anthropic(HELLO, use()), "messages: the last message must be the user's"),
        (anthropic(HELLO, HELLO), "messages.1: roles must alternate"),
        (anthropic({"role": "user", "content": []}), "messages.0: content must not be empty"),
        (
            anthropic({"role": "user", "content": [text("")]}),
            "messages.0: text content blocks must be non-empty",
        ),
        (
            anthropic({"role": "user", "content": [{"type": "tool_use"}]}),
            "'tool_use' is not possible in a message of user",
        ),
        (anthropic(HELLO, use(), HELLO), "tool_use id without tool_result directly after: t1"),
        (anthropic(HELLO, use(), answer("t1", "t2")), "tool_result for no tool_use in the message before: t2"),
        (anthropic(HELLO, use(), answer("t1", "t1")), "two tool_results for t1"),
        (anthropic(HELLO, use(), answer("t1"), use(), answer("t1")), "tool_use ids must be unique: t1"),
        (anthropic(HELLO, use("a b"), answer("a b")), "needs an id of letters"),
        (
            anthropic(HELLO, use(), {"role": "user", "content": [text("a"), *answer("t1")["content"]]}),
            "tool_result blocks must come first",
        ),
        (anthropic(HELLO, use(), answer("t1"), tools=[]), "must define tools"),
        (anthropic(HELLO, tools=[{"name": "a b", "input_schema": SCHEMA}]), "'a b' is not a tool name"),
        (anthropic(HELLO, tools=[{"name": "a", "input_schema": {}}]), "schema of tool 'a' is not a JSON Schema"),
        (anthropic(HELLO, tools=[{"name": "a", "input_schema": SCHEMA}] * 2), "the name a is there twice"),
        (
            anthropic(HELLO, system=[{**text("a"), "cache_control": {"type": "ephemeral"}}] * 5),
            "a maximum of 4 blocks with cache_control",
        ),
    ],
)
def test_what_the_messages_api_refuses_is_a_problem(body: dict[str, Any], problem: str) -> None:
    problems = said(AnthropicFormat(), body)
    assert any(problem in found for found in problems), problems


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "stream": True, "messages": list(messages), **fields}


def call(call_id: str = "t1", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "x", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def tool(call_id: str = "t1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (chat(), "messages: at least one is required"),
        (chat(HELLO, {"role": "system", "content": "x"}), "messages[1]: the system message must come first"),
        (chat({"role": "robot", "content": "x"}), "unknown role 'robot'"),
        (chat({"role": "user", "content": ""}), "messages[0]: content must not be empty"),
        (chat({"role": "user", "content": [{"type": "video"}]}), "'video' is not possible here"),
        (chat(HELLO, tool()), "'tool' must follow the message with the call 't1' directly"),
        (chat(HELLO, call(), HELLO), "tool_call_ids without a response directly after: t1"),
        (chat(HELLO, call()), "tool_call_ids without a response directly after: t1"),
        (chat(HELLO, {"role": "assistant", "content": "x"}), "the last message must be"),
        (chat(HELLO, call(), tool(), call(), tool()), "tool call ids must be unique: t1"),
        (chat(HELLO, call(arguments="{"), tool()), "the arguments of x are not JSON"),
        (chat(HELLO, call(""), tool("")), "a tool call needs"),
        (chat(HELLO, tools=[]), "tools: must not be empty"),
        (chat(HELLO, tools=[{"function": {"name": "", "parameters": SCHEMA}}]), "'' is not a tool name"),
    ],
)
def test_what_the_chat_api_refuses_is_a_problem(body: dict[str, Any], problem: str) -> None:
    problems = said(ChatFormat(), body)
    assert any(problem in found for found in problems), problems


def responses(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "stream": True, "input": list(items), **fields}


FUNCTION = {"type": "function_call", "call_id": "t1", "name": "x", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "t1", "output": "ok"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (responses(), "input: at least one is required"),
        (responses(HELLO, FUNCTION), "no tool output found for function call t1"),
        (responses(HELLO, FUNCTION, HELLO), "no tool output found for function call t1"),
        (
            responses(HELLO, FUNCTION, {**FUNCTION, "call_id": "t2"}, OUTPUT, HELLO),
            "no tool output found for function call t2",
        ),
        (responses(HELLO, OUTPUT), "no tool call found for the output of 't1'"),
        (responses(HELLO, FUNCTION, OUTPUT, FUNCTION, OUTPUT), "call ids must be unique: t1"),
        (responses({"role": "user", "content": ""}), "content must not be empty"),
        (responses({"role": "robot", "content": "x"}), "unknown role 'robot'"),
        (responses({"type": "news"}), "unknown type 'news'"),
        (responses(HELLO, {**FUNCTION, "arguments": "{"}, OUTPUT), "the arguments are not JSON"),
        (
            responses(HELLO, {"type": "reasoning", "id": "rs_1"}, store=False),
            "reasoning that is not stored needs its content",
        ),
        (responses(HELLO, tools=[{"name": "x", "parameters": {}}]), "schema of tool 'x'"),
    ],
)
def test_what_the_responses_api_refuses_is_a_problem(body: dict[str, Any], problem: str) -> None:
    problems = said(ResponsesFormat(), body)
    assert any(problem in found for found in problems), problems


def gemini(*contents: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "stream": True, "contents": list(contents), **fields}


def content(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


CALL = content("model", {"functionCall": {"name": "x", "args": {}}})
RESPONSE = content("user", {"functionResponse": {"name": "x", "response": {"output": "ok"}}})
HI = content("user", {"text": "Hi"})


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (gemini(), "contents: at least one is required"),
        (gemini(HI, HI), "roles must alternate"),
        (gemini(HI, CALL), "the last one must be the user's"),
        (gemini(HI, CALL, HI), "there must be a function response for each function call"),
        (gemini(HI, CALL, content("user", *RESPONSE["parts"] * 2)), "there must be a function response for each"),
        (gemini(content("user")), "parts must not be empty"),
        (gemini(content("user", {"text": ""})), "cannot have an empty text"),
        (gemini(content("user", {"functionCall": {}})), "cannot have functionCall"),
        (
            gemini(HI, tools=[{"functionDeclarations": [{"name": "x", "parametersJsonSchema": {}}]}]),
            "schema of tool 'x'",
        ),
    ],
)
def test_what_the_gemini_api_refuses_is_a_problem(body: dict[str, Any], problem: str) -> None:
    problems = said(GeminiFormat(), body)
    assert any(problem in found for found in problems), problems


def test_good_requests_have_no_problems() -> None:
    assert said(AnthropicFormat(), anthropic(HELLO, use(), answer("t1"))) == []
    assert said(ChatFormat(), chat({"role": "system", "content": "s"}, HELLO, call(), tool(), HELLO)) == []
    assert said(ResponsesFormat(), responses(HELLO, FUNCTION, OUTPUT, HELLO)) == []
    assert said(GeminiFormat(), gemini(HI, CALL, RESPONSE)) == []


async def test_a_request_with_problems_gets_an_error_in_the_form_of_its_api_and_is_noted() -> None:
    async with ScriptedServer(SCRIPT) as server, httpx2.AsyncClient() as client:
        first = await client.post(f"{server.base_url}/v1/messages", json=anthropic())
        second = await client.post(f"{server.base_url}/v1/chat/completions", content=b"[]")
    problem = "anthropic-version: header is required; messages: at least one is required"
    error = {"type": "invalid_request_error", "message": problem}
    assert (first.status_code, first.json()) == (400, {"type": "error", "error": error})
    assert (second.status_code, second.json()["error"]["code"]) == (400, "invalid_request_error")
    assert server.violations[:2] == problem.split("; ")
    assert [received.path for received in server.requests] == ["/v1/messages", "/v1/chat/completions"]


async def test_models_are_listed_and_other_paths_are_not_found() -> None:
    async with ScriptedServer(SCRIPT) as server, httpx2.AsyncClient() as client:
        models = await client.get(f"{server.base_url}/v1/models")
        nothing = await client.get(f"{server.base_url}/v1/nothing")
        wrong = await client.get(f"{server.base_url}/v1/messages")
    assert [model["id"] for model in models.json()["data"]] == ["demo"]
    assert (nothing.status_code, wrong.status_code) == (404, 404)


async def test_a_refusal_has_the_headers_and_the_body_of_the_script() -> None:
    refusal = Refuse(status=502, headers={"Content-Type": "text/html", "X-Extra": "1"}, body="<html>")
    async with ScriptedServer(Script(turns=(Turn(items=(refusal,)),))) as server, httpx2.AsyncClient() as client:
        got = await client.post(f"{server.base_url}/v1/chat/completions", json=chat(HELLO))
    assert (got.status_code, got.headers["content-type"], got.headers["x-extra"], got.text) == (
        502,
        "text/html",
        "1",
        "<html>",
    )


async def test_garbage_on_the_wire_only_ends_its_own_connection() -> None:
    async with ScriptedServer(SCRIPT) as server, httpx2.AsyncClient() as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.base_url.rpartition(":")[2]))
        writer.write(b"no http at all\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        assert (await client.get(f"{server.base_url}/v1/models")).status_code == 200


async def test_serving_goes_on_until_it_is_cancelled() -> None:
    urls: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(serve(SCRIPT, port=0, ready=urls.put_nowait))
    url = await urls.get()
    async with httpx2.AsyncClient() as client:
        assert (await client.get(f"{url}/v1/models")).status_code == 200
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"{url}/v1/models")
