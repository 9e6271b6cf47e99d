"""The page of one user of a service, in a process of its own: it hears of the front alone, and ends with it."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from treadle.door.open_session import Reach
from treadle.door.opening import run_schedules
from treadle.door.program import log_quietly, until_signal
from treadle.web.application import web_application
from treadle.web.book import SessionBook
from treadle.web.page_keys import Keys
from treadle.web.service.service_words import (
    Began,
    FromFront,
    FromPage,
    NewBudget,
    PageReady,
    PageUse,
    RunAnswered,
    TurnPlace,
    wire_line,
)
from treadle.web.service.turn_gate import TurnGate
from treadle.web.service.user_schedules import LOOKS_AT_SCHEDULES, UserSchedules
from treadle.web.serving_page import serve_at

if TYPE_CHECKING:
    from treadle.web.service.turn_traces import TurnTraces

NOT_IN_A_SERVICE = frozenset({Reach.PORTS, Reach.DEVICES})
"""What no user may do: a port of this computer is everybody's, and who is let in is for the front to say."""

_LOOK = 2.0
_LONGEST_LINE = 1024 * 1024
_READER = msgspec.json.Decoder(FromFront)


async def serve_user_page(listening: int, control: int) -> int:
    """Serve on a socket, as the front says on the other one; returns the exit code."""
    log_quietly(serving=True)
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=control), limit=_LONGEST_LINE)
    began = _READER.decode(await reader.readline())
    assert isinstance(began, Began)  # noqa: S101 - the front says it first

    def says(said: FromPage) -> None:
        writer.write(wire_line(said))

    gate, keys = TurnGate(says), Keys(lacks=NOT_IN_A_SERVICE)
    traces = _traces(began)
    hears = None if traces is None else traces.hear
    async with AsyncExitStack() as opened:
        if traces is not None:
            opened.push_async_callback(asyncio.to_thread, traces.close)
        made = SessionBook(Path(began.folder), began.flags, trust=began.trust, gate=gate, hears=hears)
        book = await opened.enter_async_context(made)
        application, streams = web_application(book, keys, began.hosts, cookie="treadle-page")

        async def serve() -> None:
            schedules = UserSchedules(book, says)
            running = run_schedules(
                schedules.tell, begin=schedules.begin, looks=LOOKS_AT_SCHEDULES, hears_next=schedules.tell_next
            )
            tasks = [
                asyncio.create_task(_hear(reader, book, gate, schedules), name="what the front says"),
                asyncio.create_task(_tell_use(book, says), name="what the page uses"),
                asyncio.create_task(running, name="schedules"),
            ]
            with socket.socket(fileno=listening) as served:
                says(PageReady(token=keys.token, base=keys.base))
                _be_quiet()
                try:
                    await serve_at([served], _of_front(application, began.scheme), streams)
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)

        return await until_signal(serve)


def _traces(began: Began) -> "TurnTraces | None":
    if not began.traces:
        return None
    from treadle.web.service.turn_traces import TurnTraces

    return TurnTraces(began.traces, began.user)


def _be_quiet() -> None:
    """Write nothing to the front any more, which reads nothing."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        stream.flush()
        os.dup2(nowhere, number)
    os.close(nowhere)


async def _hear(reader: asyncio.StreamReader, book: SessionBook, gate: TurnGate, schedules: UserSchedules) -> None:
    with suppress(OSError, ValueError):
        while line := await reader.readline():
            said = _READER.decode(line)
            if isinstance(said, TurnPlace):
                gate.take(said.turn, said.place)
            elif isinstance(said, NewBudget):
                book.flags = {**book.flags, "budget": said.budget}
                if not said.budget:
                    del book.flags["budget"]
            elif isinstance(said, RunAnswered):
                schedules.take(said)
    os.kill(os.getpid(), signal.SIGTERM)  # the front is gone, or wants it


async def _tell_use(book: SessionBook, says: Callable[[FromPage], None]) -> None:
    told = PageUse(sessions=0, cost=0.0)
    while True:
        opened = tuple(book.opened.values())
        cost = sum(one.content.view.spending.total for one in opened)
        use = PageUse(sessions=len(opened), cost=cost)
        if use != told:
            told = use
            says(use)
        await asyncio.sleep(_LOOK)


def _of_front(application: ASGIApp, scheme: str) -> ASGIApp:
    """Take all requests as those of the user's own browser on this computer: the front let nobody else through."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        await application({**scope, "scheme": scheme, "client": ("127.0.0.1", 0)}, receive, send)

    return served
