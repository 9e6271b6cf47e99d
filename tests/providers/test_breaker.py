"""The circuit breaker: as a state machine, and before a real server."""

import asyncio
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.providers.support import collect, failure_of, fixed_server, provider_at, request

from treadle.protocol.models import ErrorKind, ModelError, ReplyStop, StreamEvent, StreamFailure, StreamStop, StreamText
from treadle.protocol.usage import Usage
from treadle.providers.breaker import FAILURE_WINDOW, FAILURES, PAUSE, PROBE_WAIT, Circuits, GuardedProvider
from treadle.providers.connect import provider_for
from treadle.providers.endpoint import Endpoint
from treadle.providers.provider_rows import ProviderRow
from treadle.providers.scripted.provider import ScriptedProvider
from treadle.providers.scripted.script import Refuse, SayText, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

PLACE = "https://api.example.org"
STOP = StreamStop(reason=ReplyStop.END_TURN, usage=Usage())


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def failure(kind: ErrorKind) -> StreamFailure:
    return StreamFailure(error=ModelError(kind=kind, message="no"))


DOWN = failure(ErrorKind.SERVER)


def fail(circuits: Circuits, times: int) -> None:
    for _ in range(times):
        assert circuits.ask(PLACE) is None
        circuits.record(PLACE, DOWN)


def test_after_so_many_failures_in_a_row_nothing_goes_through_but_one_probe_after_the_pause() -> None:
    clock = Clock()
    circuits = Circuits(clock)
    fail(circuits, FAILURES)
    assert circuits.ask(PLACE) == PAUSE
    assert circuits.ask("https://elsewhere") is None
    clock.now += PAUSE
    assert [circuits.ask(PLACE) for _ in range(3)] == [None, PROBE_WAIT, PROBE_WAIT]
    circuits.record(PLACE, DOWN)
    assert circuits.ask(PLACE) == PAUSE
    clock.now += PAUSE
    assert circuits.ask(PLACE) is None
    circuits.record(PLACE, STOP)
    assert [circuits.ask(PLACE) for _ in range(3)] == [None] * 3


@pytest.mark.parametrize("end", [STOP, failure(ErrorKind.BAD_REQUEST), failure(ErrorKind.RATE_LIMIT)])
def test_any_answer_in_between_begins_the_count_anew(end: StreamEvent) -> None:
    circuits = Circuits(Clock())
    for _ in range(3):
        fail(circuits, FAILURES - 1)
        circuits.record(PLACE, end)
    assert circuits.ask(PLACE) is None


def test_failures_far_apart_do_not_count_together() -> None:
    clock = Clock()
    circuits = Circuits(clock)
    for _ in range(3 * FAILURES):
        fail(circuits, 1)
        clock.now += FAILURE_WINDOW / 2
    assert circuits.ask(PLACE) is None


def test_an_interrupted_probe_lets_another_one_through() -> None:
    clock = Clock()
    circuits = Circuits(clock)
    fail(circuits, FAILURES)
    clock.now += PAUSE
    assert circuits.ask(PLACE) is None
    circuits.record(PLACE, None)
    assert circuits.ask(PLACE) is None


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from([STOP, DOWN, None, failure(ErrorKind.RATE_LIMIT), "ask", 1.0, PAUSE, FAILURE_WINDOW]),
        max_size=60,
    )
)
def test_however_calls_overlap_it_never_stays_shut(steps: list[StreamEvent | str | float | None]) -> None:
    clock = Clock()
    circuits = Circuits(clock)
    running = 0
    for step in steps:
        if isinstance(step, float):
            clock.now += step
        elif step == "ask":
            wait = circuits.ask(PLACE)
            assert wait is None or 0 < wait <= PAUSE
            running += wait is None
        elif running:
            assert not isinstance(step, str)
            running -= 1
            circuits.record(PLACE, step)
    for _ in range(running):
        circuits.record(PLACE, None)
    clock.now += PAUSE
    assert circuits.ask(PLACE) is None
    circuits.record(PLACE, STOP)
    assert circuits.ask(PLACE) is None


def guarded(url: str, circuits: Circuits) -> GuardedProvider:
    return GuardedProvider(provider_at("chat", url), circuits, name="acme", account=(url, ""))


async def test_a_server_that_keeps_failing_is_not_called_again() -> None:
    refused = Script(turns=(Turn(items=(Refuse(status=503, times=FAILURES), SayText(text="Back"))),))
    clock = Clock()
    circuits = Circuits(clock)
    async with ScriptedServer(refused) as server:
        errors = [(await failure_of(guarded(server.base_url, circuits), request())).error for _ in range(FAILURES + 2)]
        assert [error.status for error in errors] == [503] * FAILURES + [None] * 2
        last = errors[FAILURES - 1].message
        assert len(server.requests) == FAILURES
        failed = await failure_of(guarded(server.base_url, circuits), request())
        assert failed.error == ModelError(
            kind=ErrorKind.OVERLOADED,
            message=f"acme failed 5 times in a row, so it is not called for 30 s. The last time: {last}",
            retry_after=PAUSE,
        )
        clock.now += PAUSE
        assert (await collect(guarded(server.base_url, circuits), request()))[0] == StreamText(text="Back")
        assert circuits.ask(server.base_url) is None


async def test_what_is_not_listening_counts_and_a_refusal_of_the_request_does_not() -> None:
    circuits = Circuits(Clock())
    async with fixed_server("400 No", {"Content-Type": "application/json"}, b'{"message":"no"}') as url:
        for _ in range(2 * FAILURES):
            assert (await failure_of(guarded(url, circuits), request())).error.kind is ErrorKind.BAD_REQUEST
    errors = [(await failure_of(guarded(url, circuits), request())).error for _ in range(FAILURES + 1)]
    assert [(error.kind, error.retries) for error in errors] == [(ErrorKind.NETWORK, 2)] * FAILURES + [
        (ErrorKind.NETWORK, 0)
    ]
    assert all(f"nothing listens at {url}" in error.message for error in errors)
    assert {error.fix for error in errors} == {errors[0].fix}


async def test_an_interrupted_call_is_no_failure_and_is_passed_on() -> None:
    circuits = Circuits(Clock())
    inner = ScriptedProvider(Script(turns=(Turn(items=(SayText(text="Well"), Wait(seconds=60))),)))
    provider = GuardedProvider(inner, circuits, name="acme", account=(PLACE, ""))
    for _ in range(2 * FAILURES):
        task = asyncio.create_task(collect(provider, request()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert circuits.ask(PLACE) is None


USED_UP = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"}
ANSWER = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def account_at(url: str, circuits: Circuits, key: str = "") -> GuardedProvider:
    """Give a provider that tells the circuits of its limits, as those of a session do."""
    account = (url, key)
    endpoint = Endpoint(name="acme", base_url=url, api_key=key)
    row = ProviderRow(name="acme", title="Acme", base_url=url)
    inner = provider_for(row, endpoint, limits=partial(circuits.learn, account))
    return GuardedProvider(inner, circuits, name="acme", account=account)


async def test_a_call_waits_where_the_last_answer_to_any_session_says_that_nothing_is_left() -> None:
    clock = Clock()
    circuits = Circuits(clock)
    async with fixed_server("200 OK", {"Content-Type": "text/event-stream", **USED_UP}, ANSWER) as url:
        one, other = (account_at(url, circuits) for _ in range(2))
        assert StreamText(text="Hi") in await collect(one, request())
        clock.now += 5
        paced = (await failure_of(other, request())).error
        assert (paced.kind, paced.paced, paced.retryable) == (ErrorKind.RATE_LIMIT, True, True)
        assert paced.retry_after == pytest.approx(15.0)
        assert paced.message == "acme has no requests left for now, as its last answer says, so nothing is sent yet."
        assert StreamText(text="Hi") in await collect(account_at(url, circuits, "another-account"), request())
        assert StreamText(text="Hi") in await collect(other, msgspec.structs.replace(request(), model="another"))
        clock.now += 15.5
        assert StreamText(text="Hi") in await collect(other, request())
        for provider in (one, other):
            await provider.close()


async def test_a_refusal_for_too_many_requests_holds_up_other_sessions_too_and_one_for_hours_does_not() -> None:
    for wait, paces in (("30", True), ("7200", False)):
        circuits = Circuits(Clock())
        headers = {"Content-Type": "application/json", "Retry-After": wait}
        async with fixed_server("429 Slow", headers, b'{"message":"slow"}') as url:
            first = (await failure_of(account_at(url, circuits), request())).error
            second = (await failure_of(account_at(url, circuits), request())).error
        assert (first.paced, first.status, second.paced) == (False, 429, paces)


def test_what_is_left_of_one_limit_does_not_hide_that_another_is_used_up_and_a_later_answer_counts() -> None:
    circuits, account = Circuits(Clock()), (PLACE, "")
    circuits.learn(account, "m", {"tokens": 12.0, "requests": 3.0})
    assert circuits.used_up(account, "m") == ("tokens", 12.0)
    circuits.learn(account, "m", {})
    assert circuits.used_up(account, "m") is None
