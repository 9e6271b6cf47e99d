"""What can go wrong on the way, at each wire API: a typed failure, and the connection closed."""

import asyncio

import pytest
from tests.providers.support import APIS, collect, failure_of, fixed_server, provider_at, raw_server, request, response

from treadle.protocol.models import ErrorKind, StreamFailure, StreamText
from treadle.protocol.usage import Usage
from treadle.providers.endpoint import Endpoint, StreamLimits
from treadle.providers.event_stream import frame
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.script import Refuse, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import WIRE_FORMATS, ScriptedServer

EACH = pytest.mark.parametrize("api", APIS)
QUICK = StreamLimits(connect=2.0, first_byte=0.4, idle=0.4)  # connecting is not what is tried


def accepted(api: str) -> dict[str, str]:
    """The content type of a reply of this API."""
    make, _ = APIS[api]
    return {"Content-Type": make(Endpoint(name="x", base_url="http://x")).framing.accept}


def first_bytes(api: str) -> bytes:
    """How a reply of this API begins."""
    wire = dict(zip(APIS, (form for _, form in WIRE_FORMATS), strict=True))[api]
    writer = wire.writer({"model": "m"}, Performance(number=0, usage=Usage(), steps=()))
    return writer.begin() + writer.write(StreamText(text="Well"))


@EACH
async def test_accepted_and_never_answered_is_a_timeout(api: str) -> None:
    gone = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            gone.set()

    async with raw_server(answer) as url:
        failed = await failure_of(provider_at(api, url, limits=QUICK), request())
        await gone.wait()
    assert failed.error.kind is ErrorKind.TIMEOUT


@EACH
@pytest.mark.parametrize("cut", [None, 1, -1])
async def test_a_reply_that_stands_still_is_a_timeout(api: str, cut: int | None) -> None:
    gone = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", accepted(api), first_bytes(api)[:cut]))
        try:
            await reader.read()
        finally:
            gone.set()

    async with raw_server(answer) as url:
        failed = await failure_of(provider_at(api, url, limits=QUICK), request())
        await gone.wait()
    assert failed.error.kind is ErrorKind.TIMEOUT


def signs_of_life(api: str, kind: str) -> bytes:
    """What a server may send for ever without saying anything."""
    wire = dict(zip(APIS, (form for _, form in WIRE_FORMATS), strict=True))[api]
    writer = wire.writer({"model": "m"}, Performance(number=0, usage=Usage(), steps=()))
    writer.begin()
    match kind:
        case "empty pieces":
            return writer.write(StreamText(text=""))
        case "a character":
            return writer.write(StreamText(text="x"))
        case _ if api == "bedrock":
            return frame(b'{"p":"abc"}', message_type="event", event_type="ping")
        case "pings":
            return b'event: ping\ndata: {"type":"ping"}\n\n'
        case _:
            return b": PROCESSING\n\n"


async def dripping(api: str, drop: bytes, limits: StreamLimits) -> StreamFailure:
    """How a reply ends of which a bit comes for ever, long before it would stand still."""
    gone = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", accepted(api), first_bytes(api)))
        try:
            while True:
                writer.write(drop)
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            gone.set()

    async with raw_server(answer) as url:
        failed = await failure_of(provider_at(api, url, limits=limits), request())
        await gone.wait()
    return failed


@EACH
@pytest.mark.parametrize("kind", ["comments", "pings", "empty pieces", "a character"])
async def test_a_reply_that_drips_is_given_up(api: str, kind: str) -> None:
    failed = await dripping(api, signs_of_life(api, kind), StreamLimits(progress=0.2))
    assert (failed.error.kind, failed.error.retryable) == (ErrorKind.TIMEOUT, True)
    assert "grew by less than 256 characters in 0.2 s (progress_timeout)" in failed.error.message


@EACH
async def test_a_reply_that_grows_without_end_is_given_up_too(api: str) -> None:
    failed = await dripping(api, signs_of_life(api, "a character") * 200, StreamLimits(progress=60.0, reply=0.2))
    assert (failed.error.kind, "not complete after 0.2 s (reply_timeout)" in failed.error.message) == (
        ErrorKind.TIMEOUT,
        True,
    )


@EACH
async def test_a_refusal_that_drips_is_told_as_far_as_it_came(api: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("503 No", {"Content-Type": "text/plain"}, b"we are sorry"))
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with raw_server(answer) as url:
        failed = await failure_of(provider_at(api, url, limits=StreamLimits(first_byte=0.2)), request())
    assert (failed.error.kind, "we are sorry" in failed.error.message) == (ErrorKind.OVERLOADED, True)


@EACH
async def test_a_storm_of_refusals_stays_typed_and_costs_one_connection(api: str) -> None:
    storm = Script(turns=(Turn(items=(Refuse(status=429, headers={"Retry-After": "3"}), SayText(text="no"))),))
    async with ScriptedServer(storm) as server:
        provider = provider_at(api, server.base_url)
        errors = []
        for _ in range(30):
            events = [event async for event in provider.stream(request())]
            assert isinstance(events[-1], StreamFailure)
            errors.append((events[-1].error.kind, events[-1].error.retry_after))
        await provider.close()
        assert errors == [(ErrorKind.RATE_LIMIT, 3.0)] * 30
        assert server.connections <= 2


@EACH
async def test_a_reply_without_end_is_cut_at_the_limit(api: str) -> None:
    gone = asyncio.Event()
    start, step = first_bytes(api), signs_of_life(api, "a character")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", accepted(api), start))
        try:
            while True:
                writer.write(step * 500)
                await writer.drain()
        finally:
            gone.set()

    async with raw_server(answer) as url:
        failed = await failure_of(provider_at(api, url, limits=StreamLimits(body=1_000_000)), request())
        await gone.wait()
    assert (failed.error.kind, "larger than" in failed.error.message) == (ErrorKind.MALFORMED_STREAM, True)


@EACH
@pytest.mark.parametrize("kind", ["application/pdf", "image/png", "text/html"])
async def test_a_body_of_another_type_is_no_reply(api: str, kind: str) -> None:
    async with fixed_server("200 OK", {"Content-Type": kind}, first_bytes(api)) as url:
        failed = await failure_of(provider_at(api, url), request())
    assert (failed.error.kind, "not" in failed.error.message) == (ErrorKind.BAD_REQUEST, True)


@EACH
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
async def test_a_redirect_is_never_followed(api: str, status: str) -> None:
    asked = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(1)

    async with raw_server(elsewhere) as other, fixed_server(status, {"Location": other}, b"") as url:
        failed = await failure_of(provider_at(api, url), request())
    assert (failed.error.kind, asked) == (ErrorKind.BAD_REQUEST, [])


@EACH
async def test_garbage_is_a_typed_failure_or_an_end_before_the_reply_was_whole(api: str) -> None:
    for body in (b"\x00" * 100, b"data: {\n\n", b"data: []\n\n", b"\xff\xfe" * 50, b'{"type":"message"}'):
        async with fixed_server("200 OK", accepted(api), body) as url:
            events = await collect(provider_at(api, url), request())
        assert isinstance(events[-1], StreamFailure)
        assert events[-1].error.kind is ErrorKind.MALFORMED_STREAM
