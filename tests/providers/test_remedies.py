"""A refusal that has a remedy: the request is sent once more, otherwise, and the model's next ones are so at once."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from tests.providers.support import READ, provider_at, request, user

from treadle.protocol.messages import Document, Image, Message, Role, Text, Thinking, WireData
from treadle.protocol.models import ModelRequest, RefusedPart, StreamCallStart, StreamFailure, StreamStop, StreamText
from treadle.protocol.tools import ToolSpec
from treadle.providers.anthropic_messages import AnthropicMessages
from treadle.providers.endpoint import Endpoint
from treadle.providers.http_replies import HttpReplies
from treadle.providers.remedies import Amendments, refused_part
from treadle.providers.wire import HttpCall

REPLY = {
    "chat": {"choices": [{"message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}]},
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}]},
    "anthropic": {
        "id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hi."}], "usage": {"input_tokens": 3, "output_tokens": 1},
    },
    "responses": {
        "id": "r", "object": "response", "status": "completed",
        "output": [
            {
                "id": "i", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
            },
        ],
        "usage": {"input_tokens": 3, "output_tokens": 1},
    },
}  # fmt: skip


class Refusing:
    """A server that answers each request with the next of `answers`, a status and a body; it keeps what it was sent."""

    def __init__(self, *answers: tuple[int, object]) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length:" in line)
        self.bodies.append(json.loads(await reader.readexactly(length)))
        status, answer = self.answers[min(len(self.bodies), len(self.answers)) - 1]
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        lines = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n"
        writer.write(lines.encode() + b"connection: close\r\n\r\n" + data)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def serving(server: Refusing) -> AsyncIterator[str]:
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"


def refusal(text: str, status: int = 400) -> tuple[int, object]:
    return status, {"error": {"message": text, "type": "invalid_request_error"}}


ASKED = ModelRequest(
    id="r", model="some-model", system="", messages=(user("Hello"),), max_tokens=64_000, thinking_budget=20_000
)


async def asked(api: str, server: Refusing, *requests: ModelRequest, **endpoint: object) -> list[list[object]]:
    async with serving(server) as url:
        provider = provider_at(api, url, **endpoint)
        try:
            return [[event async for event in provider.stream(one)] for one in requests]
        finally:
            await provider.close()


CASES = [
    ("chat", "Unrecognized request argument supplied: stream_options", "stream_options", None),
    ("chat", "[{'type': 'extra_forbidden', 'loc': ['body', 'stream_options']}]", "stream_options", None),
    (
        "chat",
        "max_tokens is too large: 64000. This model supports at most 16384 completion tokens",
        "max_tokens",
        16384,
    ),
    ("chat", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "max_tokens", 8192),
    (
        "chat",
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`",
        "max_tokens",
        8192,
    ),
    ("anthropic", "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens", "max_tokens", 8192),
    ("anthropic", "thinking: Extra inputs are not permitted", "thinking", None),
    ("anthropic", "thinking is not supported by this model", "thinking", None),
    ("responses", "Unsupported parameter: 'reasoning' is not supported with this model.", "reasoning", None),
    ("responses", "Unknown parameter: 'include'.", "include", None),
]


@pytest.mark.parametrize(("api", "said", "name", "value"), CASES)
async def test_a_parameter_that_is_refused_is_dropped_or_bounded_once_and_for_the_model(
    api: str, said: str, name: str, value: int | None
) -> None:
    server = Refusing(refusal(said), (200, REPLY[api]))

    first, second = await asked(api, server, ASKED, ASKED)

    assert name in server.bodies[0]
    assert [body.get(name) for body in server.bodies[1:]] == [value, value]
    for events in (first, second):
        assert StreamText(text="Hi.") in events
        assert isinstance(events[-1], StreamStop)


async def test_the_other_name_of_a_limit_is_used() -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    server = Refusing(refusal(said), (200, REPLY["chat"]))

    await asked("chat", server, ASKED)

    assert (server.bodies[1].get("max_tokens"), server.bodies[1]["max_completion_tokens"]) == (None, 64_000)


NO_EFFORT = (
    "Function tools with reasoning_effort are not supported. Use /v1/responses or set reasoning_effort to 'none'."
)


@pytest.mark.parametrize(("tools", "effort"), [((READ,), "none"), ((), None)])
async def test_a_model_that_calls_functions_only_without_reasoning_is_asked_not_to_reason(
    tools: tuple[ToolSpec, ...], effort: str | None
) -> None:
    """laurent22/joplin#16451: the model reasons by default, and nothing in the request says so."""
    asks = replace(ASKED, thinking_budget=0, tools=tools)
    server = Refusing(refusal(NO_EFFORT), (200, REPLY["chat"]), refusal(NO_EFFORT))

    await asked("chat", server, asks)

    assert server.bodies[0].get("reasoning_effort") is None
    assert [body.get("reasoning_effort") for body in server.bodies[1:]] == [effort] * bool(tools)


async def test_a_model_that_was_asked_not_to_reason_reasons_where_it_calls_nothing() -> None:
    asks = replace(ASKED, thinking_budget=0, tools=(READ,))
    server = Refusing(refusal(NO_EFFORT), (200, REPLY["chat"]), (200, REPLY["chat"]), (200, REPLY["chat"]))

    await asked("chat", server, asks, replace(asks, tools=()), asks)

    assert [body.get("reasoning_effort") for body in server.bodies] == [None, "none", None, "none"]


async def test_thinking_stays_within_a_bounded_reply() -> None:
    server = Refusing(refusal("max_tokens: 64000 > 8192, which is the maximum"), (200, REPLY["anthropic"]))

    await asked("anthropic", server, ASKED)

    assert server.bodies[1]["thinking"]["budget_tokens"] == 4096


@pytest.mark.parametrize("api", REPLY)
async def test_a_reply_that_comes_whole_is_read(api: str) -> None:
    (events,) = await asked(api, Refusing((200, REPLY[api])), ASKED)

    assert StreamText(text="Hi.") in events
    assert isinstance(events[-1], StreamStop)


DEEP = b'{"a":' * 100_000


@pytest.mark.sample(12)
@pytest.mark.parametrize("api", REPLY)
@pytest.mark.parametrize(
    "answer",
    [
        (200, DEEP),
        (200, b"data: " + DEEP + b"\n\n"),
        (400, DEEP),
        (400, {"error": {"message": "no", "code": "4" * 5000}}),
        (400, {"error": {"message": f"max_tokens: 64000 > {'9' * 5000}"}}),
        (400, {"error": {"message": f"maximum context length is {'9' * 5000} tokens"}}),
        (200, {"type": "message", "content": [3, {"type": "text", "text": 5}]}),
        (200, {"object": "response", "output": [3, {"type": "message", "content": [3]}, {"content": 5}], "usage": 3}),
        (200, {"choices": [{"message": 3}]}),
        (200, [{"candidates": []}, 3]),
    ],
    ids=lambda answer: str(answer)[:40],
)
async def test_what_nobody_can_read_fails_as_a_reply_and_ends_nothing_else(
    api: str, answer: tuple[int, object]
) -> None:
    (events,) = await asked(api, Refusing(answer), ASKED)

    assert isinstance(events[-1], StreamFailure | StreamStop)


async def test_calls_of_a_reply_that_comes_whole_are_read() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    server = Refusing((200, {"choices": [{"message": message, "finish_reason": "tool_calls"}]}))

    (events,) = await asked("chat", server, request())

    assert any(isinstance(event, StreamCallStart) and event.name == "read_file" for event in events)


async def test_a_server_that_does_not_stream_is_asked_for_a_whole_reply() -> None:
    server = Refusing(refusal("Streaming is not supported for this model."), (200, REPLY["chat"]))

    (events,) = await asked("chat", server, ASKED)

    assert (server.bodies[1]["stream"], "stream_options" in server.bodies[1]) == (False, False)
    assert isinstance(events[-1], StreamStop)


@pytest.mark.parametrize("said", [case[1] for case in CASES])
async def test_a_remedy_is_tried_once_only(said: str) -> None:
    server = Refusing(refusal(said))

    (events,) = await asked("chat", server, ASKED)

    assert isinstance(events[-1], StreamFailure)
    assert len(server.bodies) <= 3


async def test_a_refusal_of_another_kind_is_told_in_the_words_of_the_provider() -> None:
    server = Refusing(refusal("The moon is in the wrong phase."))

    (events,) = await asked("chat", server, ASKED)

    assert len(server.bodies) == 1
    assert isinstance(events[-1], StreamFailure)
    assert "The moon is in the wrong phase." in events[-1].error.message


SAID = {
    "messages.3.content.1.image.source.base64.data: Image format image/png not supported": RefusedPart.IMAGE,
    "Could not process image": RefusedPart.IMAGE,
    "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 6 > 5": RefusedPart.IMAGE,
    "Unable to process input image. Please retry": RefusedPart.IMAGE,
    "Invalid image data.": RefusedPart.IMAGE,
    "The image was specified using the image/png media type, but it appears to be image/jpeg": RefusedPart.IMAGE,
    "messages.1.content.0.image.source.base64.media_type: Input should be 'image/jpeg'": RefusedPart.IMAGE,
    "media type mismatch": RefusedPart.IMAGE,
    "No endpoints found that support image input": RefusedPart.EVERY_IMAGE,
    "unknown variant `image_url`, expected `text`": RefusedPart.EVERY_IMAGE,
    "The PDF specified was not valid.": RefusedPart.DOCUMENT,
    "messages.1.content.0: Invalid `signature` in `thinking` block": RefusedPart.THINKING,
    "Thought signature is not valid.": RefusedPart.THINKING,
    "registry.ollama.ai/library/gemma:2b does not support tools": RefusedPart.TOOLS,
    "No endpoints found that support tool use": RefusedPart.TOOLS,
    "The moon is in the wrong phase.": None,
    "messages: text content blocks must be non-empty": None,
    "Unsupported parameter: 'temperature'": None,
}


@pytest.mark.parametrize("said", SAID)
def test_the_part_that_is_refused_is_known_by_the_words(said: str) -> None:
    assert refused_part(said) == SAID[said]


WHOLE = Message(
    role=Role.USER,
    content=(
        Text(text="Look."),
        Image(media_type="image/png", data="iVBORw0KGgo="),
        Document(media_type="application/pdf", data="JVBERi0=", title="a.pdf"),
    ),
)
THOUGHT = Message(
    role=Role.ASSISTANT,
    content=(
        Thinking(text="Hm.", signature="s", wire=WireData(api="anthropic_messages:anthropic", data={})),
        Text(text="So."),
    ),
)


@pytest.mark.parametrize("said", [said for said, part in SAID.items() if part is not None])
async def test_only_a_part_that_was_sent_is_named(said: str) -> None:
    full = request(user("Hi"), THOUGHT, WHOLE)
    bare = request(user("Hi"), tools=())

    with_it, without = await asked("anthropic", Refusing(refusal(said)), full, bare)

    assert isinstance(with_it[-1], StreamFailure)
    assert isinstance(without[-1], StreamFailure)
    assert (with_it[-1].error.refused, without[-1].error.refused) == (SAID[said], None)


class Body:
    """A refusal whose connection is given back as `closing` lets it."""

    def __init__(self, body: bytes, closing: asyncio.Event) -> None:
        self.status, self.headers = 400, {"content-type": "text/plain"}
        self.body, self.closing = body, closing

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self.body

    async def close(self) -> None:
        await self.closing.wait()


async def test_replies_that_are_refused_at_the_same_time_are_told_apart() -> None:
    place = Endpoint(name="anthropic", base_url="http://127.0.0.1")

    async def begin(call: HttpCall) -> Exception:
        return TimeoutError()

    replies = HttpReplies(place, AnthropicMessages(place), begin, amendments=Amendments(), secrets=tuple)
    call = HttpCall(url="", headers={}, body=b"{}")
    closing = asyncio.Event()

    async def read(body: bytes) -> RefusedPart | None:
        events = [one async for one in replies.read(request(user("Hi"), WHOLE), call, Body(body, closing))]
        return events[-1].error.refused if isinstance(events[-1], StreamFailure) else None

    with_image = asyncio.create_task(read(b"x" * 600 + b" could not process image"))
    await asyncio.sleep(0)
    other = asyncio.create_task(read(b"x" * 600))
    for _ in range(20):
        await asyncio.sleep(0)
    closing.set()

    assert (await with_image, await other) == (RefusedPart.IMAGE, None)


async def test_a_server_that_finds_always_something_else_is_asked_four_times() -> None:
    names = ("stream_options", "max_tokens: 64000 > 8000", "max_tokens: 8000 > 4000", "max_tokens: 4000 > 2000", "x")
    answers = [refusal(f"Unknown parameter: {name}" if ":" not in name else name) for name in names]
    server = Refusing(*answers)

    (events,) = await asked("chat", server, ASKED)

    assert isinstance(events[-1], StreamFailure)
    assert len(server.bodies) == 4
