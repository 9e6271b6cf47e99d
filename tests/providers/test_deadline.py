"""One timer for many waits ends each of them exactly as a timeout of its own would."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.clock import FakeClockLoop, run_at_once

from treadle.providers.http_connections import Deadline, RunningClock

Wait = tuple[int, int, int]
"""How long something takes, how much is waited for it, and the pause after it (seconds)."""

Waits = Callable[[Awaitable[str], float], Awaitable[str]]


async def outcomes(waits: list[Wait], wait: Waits) -> list[tuple[str, float]]:
    """Wait for one thing after the other; gives what came of each, and when."""
    loop = asyncio.get_running_loop()
    found: list[tuple[str, float]] = []
    for takes, most, pause in waits:
        try:
            said = await wait(asyncio.sleep(takes, "done"), loop.time() + most)
        except TimeoutError:
            said = "late"
        found.append((said, loop.time()))
        await asyncio.sleep(pause)
    return found


async def timed_out(doing: Awaitable[str], until: float) -> str:
    async with asyncio.timeout_at(until):
        return await doing


seconds = st.integers(0, 50).map(lambda half: half * 2)


@given(st.lists(st.tuples(seconds, seconds.map(lambda even: even + 1), seconds), max_size=8))
def test_waits_end_as_with_a_timeout_for_each(waits: list[Wait]) -> None:
    async def shared() -> list[tuple[str, float]]:
        deadline = Deadline()
        try:
            return await outcomes(waits, deadline.wait)
        finally:
            deadline.close()

    assert run_at_once(shared()) == run_at_once(outcomes(waits, timed_out))


def test_a_cancellation_from_outside_stays_one() -> None:
    async def cancelled() -> None:
        deadline = Deadline()
        loop = asyncio.get_running_loop()
        waiting = asyncio.ensure_future(deadline.wait(asyncio.sleep(9), loop.time() + 5))
        await asyncio.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        deadline.close()

    run_at_once(cancelled())


@pytest.mark.parametrize("first", ["cancelled", "late"])
def test_a_cancellation_in_the_moment_of_the_timeout_is_not_lost(first: str) -> None:
    async def both() -> None:
        deadline = Deadline()
        loop = asyncio.get_running_loop()
        waiting = asyncio.ensure_future(deadline.wait(asyncio.sleep(9), 5.0))
        if first == "cancelled":
            loop.call_at(5.0, waiting.cancel)
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(0)
            loop.call_at(5.0, waiting.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        deadline.close()

    run_at_once(both())


def test_what_ends_otherwise_when_it_is_late_leaves_no_cancellation_behind() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            return "gave up"
        return "done"

    async def work() -> None:
        deadline = Deadline()
        assert await deadline.wait(stubborn(), 5.0) == "gave up"
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        deadline.close()

    run_at_once(work())


def stopped_at(loop: asyncio.AbstractEventLoop, at: float, seconds: float) -> None:
    """Let the clock go on by so many seconds in which the process does nothing."""
    assert isinstance(loop, FakeClockLoop)
    loop.call_at(at, loop.skip, seconds)


async def received(stop: float, comes: float | None) -> tuple[str, float, float]:
    """Wait 3 s for bytes where the process is stopped after 2 s; what came, when, and what the clock left out.

    They come so many seconds after the stop began; what came during it lies in the socket when it is over.
    """
    loop = asyncio.get_running_loop()
    here, there = socket.socketpair()
    here.setblocking(False)
    deadline = Deadline(clock := RunningClock())
    with here, there, closing(deadline):
        stopped_at(loop, 2.0, stop)
        if comes is not None:
            loop.call_at(2.0 + comes, there.send, b"bytes")
        try:
            said = (await deadline.wait(loop.sock_recv(here, 100), 3.0)).decode()
        except TimeoutError:
            said = "late"
    return said, loop.time(), clock.stopped


@pytest.mark.parametrize(
    ("stop", "comes", "expected"),
    [
        (1.5, 1.0, ("bytes", 3.5, 0.0)),
        (1.5, None, ("late", 3.5, 0.0)),
        (100.0, 50.0, ("bytes", 102.0, 102.0)),
        (100.0, 101.0, ("bytes", 103.0, 102.0)),
        (100.0, None, ("late", 105.0, 102.0)),
    ],
)
def test_a_process_that_was_stopped_finds_what_came_and_has_not_waited(
    stop: float, comes: float | None, expected: tuple[str, float, float]
) -> None:
    assert run_at_once(received(stop, comes)) == expected


def test_what_keeps_coming_after_the_moment_is_given_up_all_the_same() -> None:
    async def flowing(deadline: Deadline) -> None:
        for _ in range(100):
            await deadline.wait(asyncio.sleep(0), 5.0)

    async def given_up() -> None:
        await asyncio.sleep(6)
        with closing(Deadline()) as deadline, pytest.raises(TimeoutError):
            await flowing(deadline)

    run_at_once(given_up())
