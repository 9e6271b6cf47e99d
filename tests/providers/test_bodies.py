"""The same reply in every form that servers and the proxies before them give a body, and bodies that are none."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable

import pytest
from tests.providers.support import APIS, collect, failure_of, fixed_server, joined, provider_at, raw_server, request

from treadle.protocol.models import (
    ErrorKind,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
)
from treadle.protocol.usage import Usage
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.scripted_server import WIRE_FORMATS

SSE = [api for api in APIS if api != "bedrock"]
EACH = pytest.mark.parametrize("api", SSE)
STREAM = {"Content-Type": "text/event-stream"}


def reply(api: str) -> bytes:
    """The body of a reply with a text and a call."""
    wire = dict(zip(APIS, (form for _, form in WIRE_FORMATS), strict=True))[api]
    writer = wire.writer({"model": "m"}, Performance(number=0, usage=Usage(input_tokens=7, output_tokens=5), steps=()))
    said: list[StreamEvent] = [
        StreamText(text="Well, naïve 🙂"),
        StreamCallStart(index=1, name="read_file", wire_id="call_1"),
        StreamCallArguments(index=1, text='{"path":"a"}'),
        StreamCallDone(index=1),
        StreamStop(reason=ReplyStop.TOOL_USE, usage=Usage(input_tokens=7, output_tokens=5)),
    ]
    return writer.begin() + b"".join(writer.write(event) for event in said)


def in_lines(body: bytes) -> bytes:
    """Each event's JSON over many lines."""
    out = []
    for line in body.split(b"\n"):
        data = line.removeprefix(b"data: ")
        if data == line or data == b"[DONE]":
            out.append(line)
        else:
            out += [b"data:" + part.encode() for part in json.dumps(json.loads(data), indent=1).split("\n")]
    return b"\n".join(out)


def kept_alive(body: bytes) -> bytes:
    return b": hello\n\n\n\n" + body.replace(b"\n\n", b"\n\n: keep-alive\n\nevent: ping\ndata:\n\n")


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "CRLF": lambda body: body.replace(b"\n", b"\r\n"),
    "CR": lambda body: body.replace(b"\n", b"\r"),
    "BOM": lambda body: b"\xef\xbb\xbf" + body,
    "no space": lambda body: body.replace(b"data: ", b"data:"),
    "no last empty line": lambda body: body.rstrip(b"\n"),
    "ids and retries": lambda body: body.replace(b"data: ", b"id: 1\nretry: 10\ndata: "),
    "many lines": in_lines,
    "kept alive": kept_alive,
}


async def read(api: str, headers: dict[str, str], body: bytes) -> list[StreamEvent]:
    async with fixed_server("200 OK", headers, body) as url:
        return joined(await collect(provider_at(api, url), request()))


@EACH
@pytest.mark.parametrize("form", FORMS)
async def test_a_reply_says_the_same_in_every_form_of_an_event_stream(api: str, form: str) -> None:
    events = await read(api, STREAM, reply(api))
    assert isinstance(events[-1], StreamStop)
    assert len(events) > 4
    assert await read(api, STREAM, FORMS[form](reply(api))) == events


@EACH
async def test_a_reply_says_the_same_packed_or_under_another_type(api: str) -> None:
    events = await read(api, STREAM, reply(api))
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(reply(api)),
        "deflate": zlib.compress(reply(api)),
        " deflate": raw.compress(reply(api)) + raw.flush(),
    }
    for name, body in packed.items():
        assert await read(api, {**STREAM, "Content-Encoding": name.strip()}, body) == events
    for kind in ("text/event-stream; charset=utf-8", "text/plain", "application/json"):
        assert await read(api, {"Content-Type": kind}, reply(api)) == events


@EACH
@pytest.mark.parametrize("packing", ["br", "zstd", "snappy"])
async def test_a_packing_that_was_not_asked_for_is_named(api: str, packing: str) -> None:
    async with fixed_server("200 OK", {**STREAM, "Content-Encoding": packing}, b"\x1b\x07\x00\xf8" * 20) as url:
        failed = await failure_of(provider_at(api, url), request())
    assert failed.error.kind is ErrorKind.MALFORMED_STREAM
    assert f"compressed ({packing}), which was not requested" in failed.error.message


@EACH
@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain", "application/json", ""])
@pytest.mark.parametrize("before", [b"", b"\n\n\n"])
async def test_a_refusal_with_the_status_of_success_is_told_whatever_its_type(
    api: str, kind: str, before: bytes
) -> None:
    body = before + b'{"error": {"type": "invalid_api_key", "message": "No such key."}}'
    async with fixed_server("200 OK", {"Content-Type": kind} if kind else {}, body) as url:
        failed = await failure_of(provider_at(api, url), request())
    assert (failed.error.kind, "No such key." in failed.error.message) == (ErrorKind.AUTHENTICATION, True)


@EACH
async def test_a_web_page_behind_empty_lines_is_named_as_one(api: str) -> None:
    async with fixed_server("200 OK", STREAM, b"\n" * 300 + b"<!doctype html><title>Sign in</title>") as url:
        failed = await failure_of(provider_at(api, url), request())
    assert (failed.error.kind, "HTML" in failed.error.message) == (ErrorKind.BAD_REQUEST, True)


@EACH
@pytest.mark.parametrize(
    ("event", "kind", "words"),
    [
        (b"upstream timed out", ErrorKind.MALFORMED_STREAM, "upstream timed out"),
        (b'[{"error": {"status": "UNAVAILABLE", "message": "Busy."}}]', ErrorKind.OVERLOADED, "Busy."),
        (b'{"error": "model is not loaded"}', ErrorKind.SERVER, "model is not loaded"),
    ],
)
async def test_what_stands_in_place_of_an_event_is_told(api: str, event: bytes, kind: ErrorKind, words: str) -> None:
    async with fixed_server("200 OK", STREAM, b"event: error\ndata: " + event + b"\n\n") as url:
        failed = await failure_of(provider_at(api, url), request())
    assert (failed.error.kind, words in failed.error.message) == (kind, True)


@pytest.mark.sample(2)
@EACH
async def test_an_event_of_many_megabytes_is_read_to_its_limit_and_refused_beyond_it(api: str) -> None:
    async def end_of(size: int) -> StreamEvent:
        event = b'data: {"type":"padding","x":"' + b"x" * size + b'"}\n\n'

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            writer.write(event + reply(api))
            await writer.drain()

        async with raw_server(answer) as url:
            return (await collect(provider_at(api, url), request()))[-1]

    assert isinstance(await end_of(1 << 23), StreamStop)
    refused = await end_of(20 << 20)
    assert "an event is larger than 16 MiB" in str(refused)
