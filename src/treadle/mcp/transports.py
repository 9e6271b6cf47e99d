"""How the messages of a server come and go: over the pipes of its program, over HTTP, or through its host."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import httpx2
import msgspec
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from treadle.mcp.message_framing import MOST_OF_ONE, Frames, TooLong, answered_id, read_leniently
from treadle.mcp.server_program import ServerProgram
from treadle.protocol.servers import McpServer
from treadle.workspace.files.text import visible
from treadle.workspace.unreached import Obstacle, causes_of, connect_seconds, place_named, proxy_of, why_unreached

Streams = tuple[Any, Any]
"""What is read, and what is written, as the SDK has them."""

MOST_GARBAGE = 200
"""Lines that are no message: a server with more is ended."""

_MOST_NOTED = 20
_MOST_BLOCKS = 1_000

_LONGEST_FAREWELL = 1.0
_SSE_QUIET = 24 * 3600.0


class Noise:
    """What a server said that is no message, counted; `note` is given a line about each of the first."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.count = 0
        self._note = note

    def messages(self, lines: Iterable[bytes | TooLong]) -> Iterator[SessionMessage]:
        """Give what is a message; raises `BrokenPipeError` when too much was none."""
        for line in lines:
            message = _read_message(line)
            if message is not None:
                yield message
                continue
            self.count += 1
            if self.count <= _MOST_NOTED:
                self._note(f"no message: {line[:200] if isinstance(line, bytes) else f'{line.size:,} bytes'!r}")
            if self.count > MOST_GARBAGE:
                raise BrokenPipeError("it sends what is no message")


@asynccontextmanager
async def program_transport(program: ServerProgram, noise: Noise, ended: asyncio.Event) -> AsyncIterator[Streams]:
    """Talk to a program, and end it with the block; `ended` is set when nothing more comes of it."""
    arrived, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, leaving = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        frames = Frames()
        try:
            async with arrived:
                while chunk := await program.read():
                    for message in noise.messages(frames.feed(chunk)):
                        await arrived.send(message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            return
        finally:
            ended.set()

    async def send() -> None:
        try:
            async with leaving:
                async for message in leaving:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await program.write(text.encode() + b"\n")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await arrived.aclose()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        tasks.start_soon(send)
        try:
            yield read, write
        finally:
            for stream in (read, write):
                stream.close()
            try:
                await program.close()
            finally:
                tasks.cancel_scope.cancel()


def _read_message(line: bytes | TooLong) -> SessionMessage | None:
    """Read a line; of an answer that cannot be read an error to whoever waits for it. None for what is no message."""
    if isinstance(line, TooLong):
        return _unreadable(line.answers, f"has {line.size:,} bytes, more than the {MOST_OF_ONE:,} that are read")
    try:
        # This reads JSON three times as fast as the types of the SDK do.
        found = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        try:
            found = read_leniently(line)
        except (ValueError, RecursionError) as error:
            return _unreadable(answered_id(line), f"cannot be read: {error_reason(error)}")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(_bounded(found), by_name=False))
    except (ValueError, RecursionError):
        return _unreadable(answered_id(line), _NOT_AS_AGREED)


_NOT_AS_AGREED = "is not a message of JSON-RPC"


def _unreadable(answers: bytes, why: str) -> SessionMessage | None:
    return _error_about(msgspec.json.decode(answers), why) if answers else None


def _error_about(number: int | str, why: str) -> SessionMessage:
    error = ErrorData(code=INTERNAL_ERROR, message=f"the answer {why}")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))


def _bounded(message: Any) -> Any:
    """Leave out blocks of a result beyond those that anybody reads: each of them takes its time."""
    match message:
        case {"result": {"content": list(blocks)}} if len(blocks) > _MOST_BLOCKS:
            said = {"type": "text", "text": f"[{len(blocks) - _MOST_BLOCKS:,} more parts were left out]"}
            message["result"]["content"] = [*blocks[:_MOST_BLOCKS], said]
    return message


def network_transport(url: str, client: httpx2.AsyncClient, *, events: bool) -> AbstractAsyncContextManager[Streams]:
    """Talk to a server over streamable HTTP, or with `events` the older HTTP, which enters the client."""
    if not events:
        return streamable_http_client(url, http_client=client, max_sse_event_size=MOST_OF_ONE)

    def made(
        headers: dict[str, str] | None = None,  # noqa: ARG001 - the client has its own
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001
        auth: httpx2.Auth | None = None,  # noqa: ARG001
    ) -> httpx2.AsyncClient:
        return client

    return sse_client(url, sse_read_timeout=_SSE_QUIET, httpx_client_factory=made)


def network_reason(error: BaseException, server: McpServer) -> str:
    """Say why a server that has an address is not connected to, with the address and what to do about it."""
    place = place_named(server.url)
    causes = list(causes_of(error))
    if any(isinstance(one, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError) for one in causes):
        seconds = min(server.connect_seconds, connect_seconds(server.url))
        proxy = proxy_of(server.url)
        found = why_unreached(error, server.url, seconds=seconds, proxy=proxy)
        at_proxy = proxy and found.obstacle not in (Obstacle.CERTIFICATE, Obstacle.NO_TLS)
        return f"{found.text}. {_ADVICE[Obstacle.PROXY if at_proxy else found.obstacle]}"
    if any(isinstance(one, TimeoutError) for one in causes):
        return f"{place} did not answer within {server.connect_seconds:g} s"
    if any(isinstance(one, httpx2.RemoteProtocolError) for one in causes):
        return f"{place} gave no answer of HTTP ({error_reason(error)}). Check its port, and whether it is https://."
    said = error_reason(error)
    where = " Check the path of its url." if _NOT_THERE in said else ""
    return f"{place} answered: {said}.{where}"


_NOT_THERE = "Not Found"
_ADVICE = {
    Obstacle.REFUSED: "Start the server, or correct its url in mcp.json.",
    Obstacle.NO_HOST: "Check whether this machine is online, or correct its url in mcp.json.",
    Obstacle.SILENT: "Check the network, or correct its url in mcp.json.",
    Obstacle.NO_TLS: "If the server has no TLS, write its url with http://.",
    Obstacle.CERTIFICATE: "Name the file with its CA certificate (PEM) in SSL_CERT_FILE, or do not trust it.",
    Obstacle.PROXY: "Check HTTPS_PROXY in the environment; hosts that need no proxy go into NO_PROXY.",
    Obstacle.OTHER: "Check the network, or correct its url in mcp.json.",
}


_LINK = re.compile(r" For further information visit https://errors\.pydantic\.dev/\S+")


def error_reason(error: BaseException) -> str:
    """Name what is behind an error, which may be a group of such, in one harmless line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, httpx2.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    said = _LINK.sub("", " ".join(visible(str(error)).split()))[:300]
    return said or type(error).__name__


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Reads answers that are no stream of events only up to the bound. Raises `httpx2.ReadError` beyond it.

    An answer that is packed is refused: how large it is shows only when it is unpacked.

    `refused` is the status of an answer that wanted somebody to sign in; 0 for none, and once a token is accepted.
    """

    refused = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the one that ends a session is not waited for long."""
        if request.method == "DELETE":
            request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": _LONGEST_FAREWELL}
        response = await super().handle_async_request(request)
        if response.status_code in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
            self.refused = response.status_code
        elif response.is_success and request.method == "POST" and "authorization" in request.headers:
            self.refused = 0  # with a new token
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is packed, which was not asked for", request=request)
        if "text/event-stream" not in response.headers.get("content-type", ""):
            response.stream = _Bounded(response.stream, request)
        return response


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, request: httpx2.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MOST_OF_ONE:
                raise httpx2.ReadError(
                    f"the answer has more than the {MOST_OF_ONE:,} bytes that are read", request=self._request
                )
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


Exchanged = Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]]


@asynccontextmanager
async def inside_transport(exchange: Exchanged) -> AsyncIterator[Streams]:
    """Talk to a server that its host has: each message goes through `exchange`, which gives the answer, if any."""
    arrived, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, leaving = anyio.create_memory_object_stream[SessionMessage](0)

    async def pass_on(message: dict[str, Any]) -> None:
        answer = await exchange(message)
        if answer is not None and "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], **answer}
            try:
                said = SessionMessage(jsonrpc_message_adapter.validate_python(answer, by_name=False))
            except ValueError:
                said = _error_about(message["id"], _NOT_AS_AGREED)
            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await arrived.send(said)

    async def send(tasks: anyio.abc.TaskGroup) -> None:
        async with leaving:
            async for message in leaving:
                tasks.start_soon(pass_on, message.message.model_dump(by_alias=True, exclude_unset=True, mode="json"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send, tasks)
        try:
            yield read, write
        finally:
            for stream in (read, write, arrived):
                stream.close()
            tasks.cancel_scope.cancel()
