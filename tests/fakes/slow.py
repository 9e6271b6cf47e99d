"""Ports of the engine that take their time, fail and resist, by chance: what a runtime meets on a bad day."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from random import Random
from typing import Any

from tests.fakes.engine import FakeEnvironment, FakeLog, FakeSharedBudgets
from treadle.engine.ports import Output, Prepared, SharedSpent
from treadle.protocol.errors import ToolError
from treadle.protocol.events import Event
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelRequest,
    ReplyStop,
    Spent,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
)
from treadle.protocol.permissions import Decision, Situation, Verdict
from treadle.protocol.tools import (
    CallResult,
    Flow,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)
from treadle.protocol.usage import Usage

TRAITS = {
    "look": ToolTraits(kind=ToolKind.READ, effect=ToolEffect.PURE),
    "write": ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
    "run": ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE),
    "ask": ToolTraits(flow=Flow.ASK, effect=ToolEffect.ONCE),
    "done": ToolTraits(flow=Flow.END_TURN, effect=ToolEffect.ONCE),
}
_ENDINGS = ("quick", "slow", "never", "never", "never", "resists", "answers", "breaks", "fails")


class Delay:
    """Waits for some passes of the loop, for a moment, or not at all."""

    def __init__(self, jitter: Random) -> None:
        self.jitter = jitter

    async def __call__(self) -> None:
        kind = self.jitter.randrange(6)
        if kind == 0:
            await asyncio.sleep(self.jitter.random() * 0.002)
        for _ in range(max(0, kind - 2)):
            await asyncio.sleep(0)


class SlowLog(FakeLog):
    """A log that takes its time."""

    def __init__(self, delay: Delay) -> None:
        super().__init__()
        self._delay = delay

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        """Take a batch."""
        await self._delay()
        await super().append(events, durable=durable)


class SlowEnvironment(FakeEnvironment):
    """Surroundings that take their time."""

    def __init__(self, delay: Delay) -> None:
        self._delay = delay

    async def describe(self, *, first: bool, situation: Situation | None = None) -> str:
        """Say it."""
        await self._delay()
        return await super().describe(first=first, situation=situation)


class SlowPurse(FakeSharedBudgets):
    """A budget of the day that takes its time."""

    def __init__(self, delay: Delay) -> None:
        self._delay = delay

    async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
        """Reserve nothing."""
        await self._delay()
        return await super().reserve(worst, aside=aside)


class SlowProvider:
    """A model that says anything, fails in any way, and closes slowly.

    Where no tools are offered it writes its calls as XML, and now and then as if they were.
    """

    def __init__(self, delay: Delay) -> None:
        self._delay = delay
        self._chance = delay.jitter
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Give a reply."""
        self.requests.append(request)
        try:
            async for event in self._events(request):
                await self._delay()
                yield event
        finally:
            await self._delay()

    async def close(self) -> None:
        """Nothing is held."""

    async def _events(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        kind = self._chance.choice(["calls"] * 12 + ["text", "thinks", "hangs", "busy", "breaks", "long", "empty"])
        usage = Usage(input_tokens=self._chance.choice([10, 10, 9_000]), output_tokens=2)
        if kind == "busy":
            yield _failure(ErrorKind.RATE_LIMIT, retry_after=self._chance.choice([0.0, 30.0]))
            return
        if kind == "long":
            yield _failure(ErrorKind.CONTEXT_TOO_LONG)
            return
        if kind == "thinks":
            yield StreamThinking(text="Let me think.")
        if kind in ("text", "breaks", "hangs"):
            yield StreamText(text="I look at it.")
        if kind == "hangs":
            await asyncio.sleep(3600)
        if kind == "breaks":
            yield _failure(ErrorKind.SERVER)
            return
        native = bool(request.tools) or self._chance.random() < 0.1
        names = self._chance.choices([*TRAITS], weights=[4, 3, 5, 1, 1], k=self._chance.randint(1, 4))
        for index, name in enumerate(names if kind == "calls" else ()):
            number = self._chance.randrange(1000)
            if native:
                yield StreamCallStart(index=index, name=name, wire_id=f"w{len(self.requests)}-{index}")
                yield StreamCallArguments(index=index, text=f'{{"n": {number}}}')
                yield StreamCallDone(index=index)
            else:
                yield StreamText(text=f"<{name}>\n<n>{number}</n>\n</{name}>\n")
        yield StreamStop(reason=ReplyStop.TOOL_USE if kind == "calls" else ReplyStop.END_TURN, usage=usage)


def _failure(kind: ErrorKind, retry_after: float | None = None) -> StreamFailure:
    return StreamFailure(error=ModelError(kind=kind, message="no", retry_after=retry_after))


class SlowTool:
    """A tool that ends in any way, and takes a cancel in any way. `running` counts the runs that have not ended."""

    def __init__(self, name: str, delay: Delay) -> None:
        self._name = name
        self._delay = delay
        self._chance = delay.jitter
        self.running = 0

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
        return ToolSpec(
            name=self._name, description="", parameters=parameters, traits=TRAITS[self._name], risk=Risk.EXECUTE
        )

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Make a call ready, or refuse it."""
        await self._delay()
        if self._chance.random() < 0.1:
            raise ToolError("This cannot be.", invalid=True)
        return Prepared(accesses=(), preview=Preview(title=self._name), run=self._run)

    async def _run(self, output: Output) -> CallResult:
        self.running += 1
        try:
            return await self._end(output, self._chance.choice(_ENDINGS))
        finally:
            self.running -= 1

    async def _end(self, output: Output, ending: str) -> CallResult:
        output("first line\n")
        try:
            await self._delay()
            if ending not in ("quick", "fails"):
                await asyncio.sleep(0.003 if ending == "slow" else 3600)
        except asyncio.CancelledError:
            await self._delay()
            if ending == "resists":
                await asyncio.sleep(0.01)
            elif ending == "answers":
                return result_text(Outcome.OK, "done all the same")
            elif ending == "breaks":
                raise RuntimeError("broke while it was stopped") from None
            raise
        if ending == "fails":
            raise ToolError("It failed.")
        return result_text(Outcome.OK, "done")


def judge_by(jitter: Random) -> Any:
    """Give a judge that mostly agrees."""
    verdicts = [Verdict.ALLOW] * 7 + [Verdict.DENY] + [Verdict.REQUIRE_USER_CONFIRMATION] * 2

    def judge(*_: object) -> Decision:
        return Decision(verdict=jitter.choice(verdicts), risk=Risk.EXECUTE, digest="d")

    return judge
