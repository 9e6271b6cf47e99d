"""The screen of how Treadle is doing: problems first, and checks that run when they are wanted."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import LiveSession, Reach
from treadle.door.reports import (
    Check,
    CheckStatus,
    Verified,
    circuit_lines,
    disk_report,
    examine,
    failed_check,
    found_keys,
    verify_sessions,
)
from treadle.present.words import counted
from treadle.protocol.errors import TreadleError
from treadle.web.book import SessionBook
from treadle.web.charts import length_of, stacked_bars
from treadle.web.markup import page_text
from treadle.web.page_requests import answer, body_of, book_of, opened_session, page
from treadle.web.page_stream import PageStream
from treadle.web.rights import PageRoute
from treadle.web.templating import render

_MOST_BROKEN = 100
_WORST_FIRST = (CheckStatus.FAIL, CheckStatus.WARN, CheckStatus.OK)
_LARGER = 1_000.0
_LITTLE_FREE = 500 * 1_024 * 1_024
"""Bytes; with less left on the disk a session may not be able to write its log."""


class HealthState:
    """What the last checks of this process found, and when (ms since 1970)."""

    def __init__(self) -> None:
        self.checks: Sequence[Check] = ()
        self.checked_at: int | None = None
        self.verified: Sequence[Verified] = ()
        self.verified_at: int | None = None
        self.running: asyncio.Task[None] | None = None


def health_state(request: Request) -> HealthState:
    """Give the state of this application, made when it is first looked at."""
    state = getattr(request.app.state, "health", None)
    if not isinstance(state, HealthState):
        state = request.app.state.health = HealthState()
    return state


async def _show(request: Request) -> Response:
    state = health_state(request)
    found = await asyncio.to_thread(_now)
    return await page(
        request,
        "health.html",
        checks=sorted(state.checks, key=lambda check: _WORST_FIRST.index(check.status)),
        checked_at=state.checked_at,
        broken=[one for one in state.verified if not one.intact][:_MOST_BROKEN],
        verified=len(state.verified),
        verified_at=state.verified_at,
        sessions=_servers(book_of(request)),
        **found,
    )


def _now() -> Mapping[str, Any]:
    problem: Check | None = None
    keys: Sequence[Any] = ()
    try:
        keys = found_keys()
    except TreadleError as error:
        problem = failed_check("settings", error)
    disk = disk_report()
    total = sum(line.bytes for line in disk.lines)
    parts = [(line.kind, size_words(line.bytes), float(line.bytes)) for line in disk.lines]
    return {
        "problem": problem,
        "keys": keys,
        "circuits": circuit_lines(),
        "disk": disk,
        "total": size_words(total),
        "free": size_words(disk.free),
        "full": length_of(disk.size - disk.free, disk.size),
        "little": disk.free < _LITTLE_FREE,
        "bars": stacked_bars(parts, max(1, total)),
        "sizes": [size_words(line.bytes) for line in disk.lines],
    }


def size_words(count: int) -> str:
    """Write a size: 950 bytes, 12.3 kB, 4.0 MB."""
    amount, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < _LARGER:
            break
        amount, unit = amount / _LARGER, larger
    return f"{count:,} bytes" if unit == "bytes" else f"{amount:,.1f} {unit}"


def _servers(book: SessionBook) -> list[Mapping[str, Any]]:
    """List the MCP servers of the sessions of this process; others are asked when somebody wants to know."""
    found: list[Mapping[str, Any]] = []
    for id_, one in book.opened.items():
        session = one.session
        own = isinstance(session, LiveSession)
        servers = session.servers.health() if isinstance(session, LiveSession) and session.servers is not None else ()
        if servers or not own:
            found.append({"id": id_, "title": session.title or id_, "own": own, "servers": servers})
    return found


async def _servers_elsewhere(request: Request) -> Response:
    """Ask a session of another process about its MCP servers, which takes as long as that takes to answer."""
    session = opened_session(request).session
    if isinstance(session, LiveSession):
        raise HTTPException(404, "This session is open here.")
    found = await asyncio.to_thread(session.servers.command, "")
    return HTMLResponse(render("block_text.html", text=page_text(found.text), size=None))


class _Wanted(Struct):
    calls: bool = False


async def _check(request: Request) -> Response:
    """Run the checks, each told as it is done: a line is a JSON string, the row of one as the screen shows it."""
    wanted, state = await body_of(request, _Wanted), health_state(request)
    if state.running is not None and not state.running.done():
        raise HTTPException(409, "The checks are running. Wait until they are done.")
    queue: asyncio.Queue[Check | None] = asyncio.Queue()
    # It goes on when the browser leaves, so that the next one sees what was found.
    state.running = asyncio.create_task(_examined(state, queue, offline=not wanted.calls), name="health checks")
    return PageStream(_one_by_one(queue), media_type="application/x-ndjson")


async def _one_by_one(queue: "asyncio.Queue[Check | None]") -> AsyncIterator[bytes]:
    while (check := await queue.get()) is not None:
        yield msgspec.json.encode(render("check_row.html", check=check)) + b"\n"


async def _examined(state: HealthState, queue: "asyncio.Queue[Check | None]", *, offline: bool) -> None:
    """Run the checks in a thread with a loop of its own: they look at disks and start programs."""
    found: list[Check] = []
    loop = asyncio.get_running_loop()

    def tell(check: Check) -> None:
        found.append(check)
        with suppress(RuntimeError):  # the server ended meanwhile
            loop.call_soon_threadsafe(queue.put_nowait, check)

    async def run() -> None:
        try:
            async for check in examine(offline=offline):
                tell(check)
        except TreadleError as error:
            tell(failed_check("checks", error))

    try:
        await asyncio.to_thread(lambda: asyncio.run(run()))
        state.checks, state.checked_at = tuple(found), _milliseconds()
    finally:
        queue.put_nowait(None)


async def _verify(request: Request) -> Response:
    """Check the hash chain of every log."""
    state = health_state(request)
    state.verified = await asyncio.to_thread(verify_sessions, "")
    state.verified_at = _milliseconds()
    wrong = sum(not one.intact for one in state.verified)
    damaged = f"{counted(wrong, 'log')} {'is' if wrong == 1 else 'are'} damaged."
    return answer({"said": damaged if wrong else "All logs are intact."})


def _milliseconds() -> int:
    return int(time.time() * 1_000)


ROUTES = (
    PageRoute("/health", _show, Reach.SEE),
    PageRoute("/health/check", _check, Reach.WORK, methods=["POST"]),
    PageRoute("/health/verify", _verify, Reach.SEE, methods=["POST"]),
    PageRoute("/s/{session_id}/servers", _servers_elsewhere, Reach.SEE),
)
