"""What a stream says of the bill: whether the provider took the request, and what it has said of its use so far."""

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest
from tests.providers.support import APIS, fixed_server, provider_at, raw_server, request

from treadle.engine.ports import Provider, UnsentError
from treadle.protocol.models import ErrorKind, StreamEvent, StreamFailure, StreamStop, StreamText, StreamUsage
from treadle.protocol.usage import Usage
from treadle.providers.endpoint import Endpoint, StreamLimits
from treadle.providers.http_provider import HttpProvider
from treadle.providers.scripted.script import BreakOff, Cut, Refuse, SayText, Script, ScriptItem, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.providers.wire import HttpCall

EACH = pytest.mark.parametrize("api", APIS)
USED = Usage(input_tokens=70, output_tokens=30)
TOLD_FIRST = {
    "anthropic": Usage(input_tokens=70, output_tokens=1),
    "chat": Usage(),
    "responses": Usage(),
    "gemini": Usage(),
    "bedrock": Usage(),
}
"""What each API has said when its first text comes."""


async def whole(provider: Provider) -> list[StreamEvent]:
    try:
        return [event async for event in provider.stream(request())]
    finally:
        await provider.close()


async def scripted(api: str, *items: ScriptItem) -> list[StreamEvent]:
    async with ScriptedServer(Script(turns=(Turn(items=items, usage=USED),))) as server:
        return await whole(provider_at(api, server.base_url))


def told(events: list[StreamEvent]) -> list[Usage]:
    return [event.usage for event in events if isinstance(event, StreamUsage)]


@EACH
async def test_what_was_said_last_is_what_the_stop_has(api: str) -> None:
    events = await scripted(api, SayText(text="Well"))
    assert isinstance(events[-1], StreamStop)
    assert events[-1].usage == USED
    before = events[: next(at for at, event in enumerate(events) if isinstance(event, StreamText))]
    assert (told(before) or [Usage()])[-1] == TOLD_FIRST[api]
    assert all(one.context_tokens <= USED.context_tokens for one in told(events))


@EACH
async def test_a_refused_request_is_not_said_to_be_billed(api: str) -> None:
    for status in (400, 401, 429, 500, 529):
        events = await scripted(api, Refuse(status=status))
        assert told(events) == []
        assert isinstance(events[-1], StreamFailure)
        assert events[-1].usage == Usage()


@EACH
@pytest.mark.parametrize("end", [Cut(), Cut(after_bytes=30), BreakOff(kind=ErrorKind.OVERLOADED)], ids=str)
async def test_a_reply_that_broke_is_said_to_be_billed(api: str, end: ScriptItem) -> None:
    events = await scripted(api, SayText(text="Well"), end, SayText(text="no"))
    assert isinstance(events[-1], StreamFailure)
    assert told(events)[-1] == TOLD_FIRST[api] == events[-1].usage


@EACH
async def test_a_server_that_takes_a_request_and_says_nothing_may_bill_it(api: str) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async def leaves(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    for answer, kind in ((silent, ErrorKind.TIMEOUT), (leaves, ErrorKind.NETWORK)):
        async with raw_server(answer) as address:
            limits = StreamLimits(connect=5.0, first_byte=0.3)
            events = await whole(provider_at(api, address, limits=limits))
        assert isinstance(events[-1], StreamFailure)
        assert (events[-1].error.kind, told(events)) == (kind, [Usage()])


@EACH
async def test_a_server_that_was_never_reached_bills_nothing(api: str) -> None:
    async with ScriptedServer(Script(turns=())) as server:
        gone = server.base_url
    events = await whole(provider_at(api, gone))
    assert isinstance(events[-1], StreamFailure)
    assert (events[-1].error.kind, told(events)) == (ErrorKind.NETWORK, [])


@dataclass
class Slow:
    """Proves who asks, one day: its request never leaves."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    secrets: tuple[str, ...] = ()

    async def headers(self, call: HttpCall) -> dict[str, str]:
        self.asked.set()
        await asyncio.Event().wait()
        return {}


async def cut(provider: Provider, moment: asyncio.Event) -> asyncio.CancelledError:
    """Cancel a call at a moment; give what comes of that."""

    async def call() -> asyncio.CancelledError | None:
        try:
            await whole(provider)
        except asyncio.CancelledError as cancelled:
            return cancelled
        return None

    calling = asyncio.create_task(call())
    await moment.wait()
    calling.cancel()
    found = await calling
    assert found is not None
    return found


@EACH
async def test_a_cancel_says_whether_the_request_had_left(api: str) -> None:
    make, path = APIS[api]
    place = Endpoint(name=api, base_url=f"http://127.0.0.1:9{path}", api_key="key")
    slow = Slow()
    assert isinstance(await cut(HttpProvider(place, make(place), slow), slow.asked), UnsentError)
    reached = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await asyncio.sleep(60)

    async with raw_server(silent) as address:
        assert not isinstance(await cut(provider_at(api, address), reached), UnsentError)


WRITTEN = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 700,
    "cache_read_input_tokens": 20,
    "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 500},
}


async def test_what_was_written_to_the_cache_for_an_hour_is_said_apart() -> None:
    events = [
        {"type": "message_start", "message": {"usage": WRITTEN}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    ]
    body = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events)
    async with fixed_server("200 OK", {"Content-Type": "text/event-stream"}, body) as url:
        stop = (await whole(provider_at("anthropic", url)))[-1]
    assert isinstance(stop, StreamStop)
    assert stop.usage == Usage(
        input_tokens=3,
        output_tokens=4,
        cache_read_tokens=20,
        cache_write_tokens=700,
        cache_write_hour_tokens=500,
    )
