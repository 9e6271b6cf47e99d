"""A session of the engine over small ports: a log in memory, tools that do what a test says, a judge that agrees."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treadle.engine.ports import Output, Ports, Prepared, SharedSpent
from treadle.policy.secrets import known_secrets
from treadle.protocol.events import Event, SessionStarted
from treadle.protocol.models import (
    ModelChoice,
    ModelRequest,
    ModelSpec,
    ReplyStop,
    Spent,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    ToolProtocol,
)
from treadle.protocol.permissions import Decision, Mode, Situation, Verdict
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import CallResult, Preview, Risk, ToolSpec, ToolTraits
from treadle.protocol.usage import Usage

SPEC = ModelSpec(provider="fake", name="one", context_window=10_000)
USAGE = Usage(input_tokens=10, output_tokens=2)
STARTED = SessionStarted(
    choice=ModelChoice(model=SPEC.ref, tool_protocol=ToolProtocol.NATIVE),
    session_id="s",
    workspace="/w",
    mode=Mode.FULL,
)

Work = Callable[[Output], Any]
"""Runs a call: takes where output goes, gives an awaitable `CallResult`."""


def calls(*names: str, **arguments: str) -> list[StreamEvent]:
    """A reply that calls tools, each with these arguments."""
    events: list[StreamEvent] = []
    for index, name in enumerate(names):
        events += [
            StreamCallStart(index=index, name=name, wire_id=f"w{index}"),
            StreamCallArguments(index=index, text=json.dumps(arguments)),
            StreamCallDone(index=index),
        ]
    return [*events, StreamStop(reason=ReplyStop.TOOL_USE, usage=USAGE)]


class FakeLog:
    """Keeps the events, and the batches that they came in; `appended` is called after each batch."""

    def __init__(self, appended: Callable[[Sequence[Event]], None] = lambda _: None) -> None:
        self.events: list[Event] = []
        self.batches: list[tuple[str, ...]] = []
        self.appended = appended

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        """Take a batch."""
        self.events += events
        self.batches.append(tuple(type(event.data).__name__ for event in events))
        self.appended(events)


class FakeProvider:
    """Answers every request with the same reply."""

    def __init__(self, *events: StreamEvent) -> None:
        self.requests: list[ModelRequest] = []
        self._events = events

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Give the reply."""
        self.requests.append(request)
        for event in self._events:
            yield event

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class FakeTool:
    """Does what a test says."""

    name: str
    work: Work
    traits: ToolTraits = field(default_factory=ToolTraits)

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        parameters = {"type": "object", "properties": {}}
        return ToolSpec(name=self.name, description="", parameters=parameters, traits=self.traits, risk=Risk.EXECUTE)

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Make the call ready."""

        async def run(output: Output) -> CallResult:
            result: CallResult = await self.work(output)
            return result

        return Prepared(accesses=(), preview=Preview(title=self.name), run=run)


class FakeEnvironment:
    """Says the same each time."""

    async def describe(self, *, first: bool, situation: Situation | None = None) -> str:
        """Say it."""
        return "here"


class FakeSharedBudgets:
    """No other session spends anything."""

    async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
        """Reserve nothing."""
        return SharedSpent()


def agree(*_: object) -> Decision:
    """Let everything run."""
    return Decision(verdict=Verdict.ALLOW, risk=Risk.EXECUTE, digest="d")


def ports(provider: Any, *tools: Any, log: FakeLog | None = None, **others: Any) -> Ports:
    """Put ports together; `others` take the place of the usual ones."""
    by_name = {tool.spec.name: tool for tool in tools}
    usual: dict[str, Any] = {
        "log": FakeLog() if log is None else log,
        "environment": FakeEnvironment(),
        "judge": agree,
        "redactor": lambda: known_secrets({}),
        "tools": by_name,
        "left_out": lambda *_: {},
        "check_tool": "execute_command",
        "provider": lambda _: provider,
        "model": lambda _: SPEC,
        "system": lambda *_: (PromptPart(name="work", text="system"),),
        "clock": lambda: 0,
        "jitter": lambda: 0.0,
        "shared_budgets": FakeSharedBudgets(),
        "remember": lambda _: None,
    }
    return Ports(**{**usual, **others})
