"""Hooks that are URLs, against a real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from treadle.app.config.hook_settings import HookEvent, HookSpec
from treadle.app.hooks.hook_requests import HttpHook
from treadle.app.hooks.hook_rows import HookAnswer, HookFailedError

GIVEN: dict[str, Any] = {"tool_name": "Bash"}


@asynccontextmanager
async def server(status: str, body: bytes, *headers: str) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers each request in the same way; gives its URL and what it was sent."""
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        seen.append(head + await reader.readexactly(length))
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook", seen


def hook(url: str, **more: Any) -> HttpHook:
    return HttpHook(HookSpec(event=HookEvent.PRE_TOOL_USE, kind="http", url=url, **more))


async def test_the_event_is_posted_and_the_response_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", "k1")
    monkeypatch.setenv("OTHER_KEY", "k2")
    async with server("200 OK", b'{"decision": "block", "reason": "No."}') as (url, seen):
        headers = {"Authorization": "Bearer $HOOK_KEY", "X-Other": "a${OTHER_KEY}b"}
        found = await hook(url, headers=headers, allowed_variables=("HOOK_KEY",))(GIVEN)
    assert found == HookAnswer(objects=({"decision": "block", "reason": "No."},))
    (request,) = seen
    assert request.startswith(b"POST /hook HTTP/1.1\r\n")
    assert b"authorization: bearer k1\r\n" in request.lower()
    assert b"x-other: ab\r\n" in request.lower()
    assert request.endswith(b'{"tool_name": "Bash"}')


async def test_an_address_that_cannot_be_reached_is_named() -> None:
    async with server("204 No Content", b"") as (url, _):
        pass
    with pytest.raises(HookFailedError, match=f"nothing listens at {url}"):
        await hook(url)(GIVEN)


async def test_an_empty_response_says_nothing() -> None:
    async with server("204 No Content", b"") as (url, _):
        assert await hook(url)(GIVEN) == HookAnswer()


@pytest.mark.parametrize(
    ("status", "body", "headers", "why"),
    [
        ("500 Oops", b"{}", (), "the response was 500 Internal Server Error"),
        ("302 Found", b"", ("location: http://127.0.0.1:1/",), "the response was 302 Found"),
        ("200 OK", b'{"a', (), "it printed broken JSON"),
        ("200 OK", b"x" * 2_000_000, (), "it printed more than 1,048,576 bytes"),
    ],
)
async def test_anything_else_is_a_failure(status: str, body: bytes, headers: tuple[str, ...], why: str) -> None:
    async with server(status, body, *headers) as (url, seen):
        try:
            found = (await hook(url)(GIVEN)).unread
        except HookFailedError as error:
            found = str(error)
    assert why in found
    assert len(seen) == 1


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/", "ftp://localhost/x", "http://169.254.169.254/x", "http://a:b@localhost/", "http://x y/"],
)
async def test_no_request_goes_where_none_may_go(url: str) -> None:
    with pytest.raises(HookFailedError):
        await hook(url)(GIVEN)
