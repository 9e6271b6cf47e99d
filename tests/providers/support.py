"""Parts that the tests of the providers share."""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from treadle.engine.ports import Provider
from treadle.protocol.messages import Message, Role, Text, ToolResult, ToolUse
from treadle.protocol.models import (
    ModelRequest,
    StreamCallArguments,
    StreamEvent,
    StreamFailure,
    StreamText,
    StreamThinking,
    StreamUsage,
)
from treadle.protocol.tools import Risk, ToolSpec, ToolTraits
from treadle.providers.anthropic_messages import AnthropicMessages
from treadle.providers.bedrock_converse import BedrockConverse
from treadle.providers.endpoint import Endpoint
from treadle.providers.gemini import Gemini
from treadle.providers.http_provider import HttpProvider
from treadle.providers.openai_chat import OpenAIChat
from treadle.providers.openai_responses import OpenAIResponses
from treadle.providers.wire import WireApi

KEY = "sk-very-secret-key"
SHARED = Path(os.environ.get("TREADLE_CASES", Path(__file__).resolve().parents[3] / "shared" / "cases"))
APIS: dict[str, tuple[Callable[[Endpoint], WireApi], str]] = {
    "anthropic": (AnthropicMessages, ""),
    "chat": (OpenAIChat, "/v1"),
    "responses": (OpenAIResponses, "/v1"),
    "gemini": (Gemini, "/v1beta"),
    "bedrock": (BedrockConverse, ""),
}

READ = ToolSpec(
    name="read_file",
    description="Reads a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    traits=ToolTraits(),
    risk=Risk.READ,
)


def user(*texts: str) -> Message:
    return Message(role=Role.USER, content=tuple(Text(text=text) for text in texts))


def request(*messages: Message, tools: tuple[ToolSpec, ...] = (READ,), system: str = "Be brief.") -> ModelRequest:
    return ModelRequest(id="r1", model="scripted", system=system, messages=messages or (user("Hello"),), tools=tools)


def called(call_id: str = "call_0_0", path: str = "a.py") -> Message:
    use = ToolUse(id="c1", name="read_file", arguments={"path": path}, wire_id=call_id)
    return Message(role=Role.ASSISTANT, content=(Text(text="Let me look."), use))


def result(text: str, call_id: str = "call_0_0", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id="c1", name="read_file", content=(Text(text=text),), is_error=is_error, wire_id=call_id)


def provider_at(api: str, base_url: str, **endpoint: object) -> HttpProvider:
    make, path = APIS[api]
    settings = {"name": api, "base_url": base_url + path, "api_key": KEY, **endpoint}
    place = Endpoint(**settings)  # type: ignore[arg-type]
    return HttpProvider(place, make(place))


async def collect(provider: Provider, asked: ModelRequest) -> list[StreamEvent]:
    """The whole reply, without what the provider said of its use; after that the provider is closed."""
    try:
        return [event async for event in provider.stream(asked) if not isinstance(event, StreamUsage)]
    finally:
        await provider.close()


async def first_piece(stream: AsyncGenerator[StreamEvent, None]) -> StreamEvent:
    """The first of a reply itself: what the provider says of its use may come before."""
    while isinstance(event := await anext(stream), StreamUsage):
        pass
    return event


def joined(events: list[StreamEvent]) -> list[StreamEvent]:
    """The stream with neighbouring pieces of text put together, so that the splitting does not matter."""
    out: list[StreamEvent] = []
    for event in events:
        last = out[-1] if out else None
        match event, last:
            case StreamText(), StreamText():
                out[-1] = StreamText(text=last.text + event.text)
            case StreamThinking(), StreamThinking():
                out[-1] = StreamThinking(text=last.text + event.text)
            case StreamCallArguments(), StreamCallArguments() if last.index == event.index:
                out[-1] = StreamCallArguments(index=event.index, text=last.text + event.text)
            case _:
                out.append(event)
    return out


async def failure_of(provider: Provider, asked: ModelRequest) -> StreamFailure:
    events = await collect(provider, asked)
    assert isinstance(events[-1], StreamFailure)
    assert not any(isinstance(event, StreamFailure) for event in events[:-1])
    assert KEY not in events[-1].error.message
    return events[-1]


@asynccontextmanager
async def raw_server(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[str, None]:
    """A server that answers each connection's first request with exactly what `answer` writes; gives its base URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(sizes[0].partition(b":")[2]))
            await answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"{'https' if tls else 'http'}://{host}:{port}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def response(status: str, headers: dict[str, str], body: bytes) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        *(f"{name}: {value}" for name, value in headers.items()),
        "Connection: close",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def fixed_server(status: str, headers: dict[str, str], body: bytes) -> AsyncGenerator[str, None]:
    """A server that gives one and the same response."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response(status, headers, body))
        await writer.drain()

    async with raw_server(answer) as url:
        yield url
