"""A provider that keeps failing is left alone for a while; then one call tries whether it is back."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import cache
from time import monotonic
from typing import Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Provider
from treadle.protocol.models import ErrorKind, ModelError, ModelRequest, StreamEvent, StreamFailure, StreamStop

FAILURES = 5
"""So many in a row, none longer than `FAILURE_WINDOW` before the last, and the provider is left alone."""
FAILURE_WINDOW = 120.0
PAUSE = 30.0
PROBE_WAIT = 5.0
"""How long a call is told to wait while another one tries the provider (seconds, like the two above)."""

LONGEST_PACE = 60.0
"""Seconds for which a call waits because its limit is said to be used up; later it is sent, and its answer counts."""

_CALLS = "requests"

Account: TypeAlias = tuple[str, str]
"""An address, and the key with which it is called: limits are those of an account."""

DOWN = frozenset({ErrorKind.OVERLOADED, ErrorKind.SERVER, ErrorKind.NETWORK, ErrorKind.TIMEOUT})
"""Failures that say that the provider is not well. A rate limit says when to come back and is none of them."""


class Working(Struct, frozen=True):
    """Calls go through. `failures` are the moments of those that failed in a row (seconds)."""

    failures: tuple[float, ...] = ()


class LeftAlone(Struct, frozen=True):
    """No call goes through before `until`; then one does, and while `probing` it is under way."""

    until: float
    probing: bool = False


class UsedUp(Struct, frozen=True):
    """A limit of which nothing is left, by its name in words, `until` a moment (seconds of the clock)."""

    what: str
    until: float


Circuit: TypeAlias = Working | LeftAlone


def _ask(circuit: Circuit, now: float) -> tuple[Circuit, float | None]:
    """Whether a call may go through: None, or else how many seconds to wait."""
    match circuit:
        case Working():
            return circuit, None
        case LeftAlone(until=until) if now < until:
            return circuit, until - now
        case LeftAlone(probing=True):
            return circuit, PROBE_WAIT
        case LeftAlone():
            return replace(circuit, probing=True), None


def succeeded(_: Circuit) -> Circuit:
    """An answer came, whatever it says."""
    return Working()


def _failed(circuit: Circuit, now: float) -> Circuit:
    """A call ended with a failure of `DOWN`."""
    match circuit:
        case LeftAlone(probing=True):
            return LeftAlone(until=now + PAUSE)
        case LeftAlone():  # a call from before; the pause is running
            return circuit
        case Working():
            recent = (*(moment for moment in circuit.failures if now - moment <= FAILURE_WINDOW), now)
            return LeftAlone(until=now + PAUSE) if len(recent) >= FAILURES else Working(recent)


def given_up(circuit: Circuit) -> Circuit:
    """A call ended without any word of the provider: it was interrupted."""
    return replace(circuit, probing=False) if isinstance(circuit, LeftAlone) else circuit


class LimitBoard(Protocol):
    """What other processes got told of limits."""

    def hold(self, account: Account, seconds: float | None) -> None:
        """Take note of a 429: nobody calls for so many seconds; None where it did not say."""
        ...

    def wait(self, account: Account) -> float | None:
        """Give for how many seconds not to call; None where a call may go out."""
        ...


class Circuits:
    """The circuits of a process, by address, and the limits that are used up; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[str, Circuit] = {}
        self._last: dict[str, ModelError] = {}
        self._used_up: dict[tuple[Account, str], UsedUp] = {}
        self._shared: LimitBoard | None = None

    def share(self, limits: LimitBoard) -> None:
        """Go by what other processes learn of limits, too."""
        self._shared = limits

    def last_failure(self, place: str) -> ModelError | None:
        """Give what went wrong at a place when it was called last; None where nothing did."""
        return self._last.get(place)

    def ask(self, place: str) -> float | None:
        """Whether a call to a place may go through: None, or else how many seconds to wait."""
        self._known[place], wait = _ask(self._known.get(place, Working()), self._clock())
        return wait

    def left_alone(self) -> dict[str, float | None]:
        """Give each place that was called, and for how many seconds no call goes to it; None where calls go through."""
        now = self._clock()
        return {
            place: max(0.0, circuit.until - now) if isinstance(circuit, LeftAlone) else None
            for place, circuit in self._known.items()
        }

    def record(self, place: str, end: StreamEvent | None) -> None:
        """Take note of how a call that went through ended; None where it was interrupted."""
        circuit = self._known.get(place, Working())
        match end:
            case None:
                self._known[place] = given_up(circuit)
            case StreamFailure(error=error) if error.kind in DOWN:
                self._known[place] = _failed(circuit, self._clock())
                self._last[place] = error
            case _:
                self._known[place] = succeeded(circuit)
                self._last.pop(place, None)

    def learn(self, account: Account, model: str, limits: Mapping[str, float]) -> None:
        """Take which limits an answer says are used up, in words, and in how many seconds each resets.

        Of one that resets later than `LONGEST_PACE` the provider itself says whether it takes a call after all.
        """
        near = {what: wait for what, wait in limits.items() if 0 < wait <= LONGEST_PACE}
        if near and len(near) == len(limits):
            what = max(near, key=lambda one: near[one])
            self._used_up[account, model] = UsedUp(what, self._clock() + near[what])
        else:
            self._used_up.pop((account, model), None)

    def refused(self, account: Account, model: str, wait: float | None) -> None:
        """Take that a call was one too many (429); the provider takes the next one in `wait` seconds, if it says so."""
        if wait:
            self.learn(account, model, {_CALLS: wait})
        if self._shared is not None:
            self._shared.hold(account, None if wait is None else min(wait, LONGEST_PACE))

    def used_up(self, account: Account, model: str) -> tuple[str, float] | None:
        """Give a limit that is used up now, and in how many seconds it resets; None where a call may go out."""
        known = self._used_up.get((account, model))
        left = 0.0 if known is None else known.until - self._clock()
        elsewhere = None if self._shared is None else self._shared.wait(account)
        if elsewhere is not None and elsewhere > left:
            return _CALLS, elsewhere
        return None if known is None or left <= 0 else (known.what, left)


@cache
def process_circuits() -> Circuits:
    """Give the circuits that all sessions of this process share: what one learned of a provider counts for all."""
    return Circuits(monotonic)


class GuardedProvider:
    """The `Provider` port before another one: refuses at once while its place is left alone.

    A call whose limit is used up is not sent either: its failure says when it may be, and that it was paced.
    """

    def __init__(self, inner: Provider, circuits: Circuits, *, name: str, account: Account) -> None:
        self._inner = inner
        self._circuits = circuits
        self._name = name
        self._account = account
        self._place = account[0]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the model if it is not left alone; see the port."""
        wait = self._circuits.ask(self._place)
        if wait is not None:
            yield StreamFailure(error=self._left_alone(wait))
            return
        used_up = self._circuits.used_up(self._account, request.model)
        if used_up is not None:
            yield StreamFailure(error=self._paced(*used_up))
            return
        end: StreamEvent | None = None
        try:
            async with aclosing(self._inner.stream(request)) as events:
                async for event in events:
                    if isinstance(event, StreamStop | StreamFailure):
                        end = event
                    yield event
        finally:
            self._circuits.record(self._place, end)
            if isinstance(end, StreamFailure) and end.error.kind is ErrorKind.RATE_LIMIT:
                self._circuits.refused(self._account, request.model, end.error.retry_after)

    async def close(self) -> None:
        """Give back connections."""
        await self._inner.close()

    def _paced(self, what: str, left: float) -> ModelError:
        message = f"{self._name} has no {what} left for now, as its last answer says, so nothing is sent yet."
        return ModelError(kind=ErrorKind.RATE_LIMIT, message=message, retry_after=left, paced=True)

    def _left_alone(self, wait: float) -> ModelError:
        """Refuse in the words of the last failure: what is not there is not overloaded, and waiting does not help."""
        last = self._circuits.last_failure(self._place)
        why = "" if last is None else f" The last time: {last.message}"
        return ModelError(
            kind=ErrorKind.OVERLOADED if last is None else last.kind,
            message=f"{self._name} failed {FAILURES} times in a row, so it is not called for {wait:.0f} s.{why}",
            retry_after=wait,
            fix="" if last is None else last.fix,
            retries=None if last is None or last.retries is None else 0,
        )
