"""A real session with small ports: a scripted model, three tools, a judge that asks about what writes."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from treadle.app.models.offered import OfferedModel
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.live import LiveSession
from treadle.app.session.mentions.mentioning import Enclosed
from treadle.app.session.model_finder import ModelFinder
from treadle.app.session.own_commands.own_shell import OwnShell
from treadle.engine.core.past_history import read_past
from treadle.engine.ports import Output, Ports, Prepared, SharedSpent
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.policy.secrets import known_secrets
from treadle.protocol.attach import ServersAnswer
from treadle.protocol.errors import ConfigError, StoreError
from treadle.protocol.events import Event, EventData, Prompt, Resumed, SessionStarted, SetModel, SetPresence
from treadle.protocol.messages import Text
from treadle.protocol.models import (
    ModelChoice,
    ModelRequest,
    ModelSpec,
    Prices,
    ReplyStop,
    Spent,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
    ToolProtocol,
)
from treadle.protocol.permissions import Allowance, Decision, Mode, Reason, Situation, Standing, Verdict
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import (
    Access,
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
from treadle.store.appending import SessionLog
from treadle.store.sqlite import SessionRow, Store
from treadle.store.trusted_folders import Trust, TrustState

SESSION = "20260101-000000-abcdef"
MODEL = ModelSpec(provider="fake", name="one", context_window=10_000, prices=Prices(input=1.0, output=1.0))
USAGE = Usage(input_tokens=100, output_tokens=20)

SECRET = "hunter2-hunter2-hunter2"
"""Hidden in what commands print."""

FOREVER = 1e9
"""Seconds; a pause that only an interruption ends."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The model says nothing for some seconds."""

    seconds: float


def says(*items: StreamEvent | Pause, stop: ReplyStop = ReplyStop.END_TURN) -> list[StreamEvent | Pause]:
    return [*items, StreamStop(reason=stop, usage=USAGE)]


def text(value: str) -> StreamText:
    return StreamText(text=value)


def calls(name: str, arguments: str) -> list[StreamEvent | Pause]:
    return [
        StreamCallStart(index=0, name=name, wire_id="w1"),
        StreamCallArguments(index=0, text=arguments),
        StreamCallDone(index=0),
        StreamStop(reason=ReplyStop.TOOL_USE, usage=USAGE),
    ]


@dataclass(slots=True)
class FakeProvider:
    """Plays one reply after the other and keeps the requests."""

    replies: list[list[StreamEvent | Pause]]
    requests: list[ModelRequest] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        for item in self.replies.pop(0):
            if isinstance(item, Pause):
                await asyncio.sleep(item.seconds)
            else:
                yield item

    async def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class FakeTool:
    """Does nothing; says what it would do."""

    spec: ToolSpec
    preview: Preview

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        async def run(output: Output) -> CallResult:
            output("first line\nlast line\n")
            return result_text(Outcome.OK, "as wanted")

        return Prepared(accesses=(), preview=self.preview, run=run)


def _tool(name: str, traits: ToolTraits, risk: Risk, preview: Preview) -> FakeTool:
    parameters = {"type": "object", "properties": {}, "additionalProperties": True}
    return FakeTool(ToolSpec(name=name, description="", parameters=parameters, traits=traits, risk=risk), preview)


DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new\n"


def tools(diff: str = DIFF) -> dict[str, FakeTool]:
    known = (
        _tool(
            "edit",
            ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
            Risk.WRITE,
            Preview(title="Edit x.py", text=diff, is_diff=True),
        ),
        _tool(
            "run",
            ToolTraits(kind=ToolKind.EXECUTE),
            Risk.EXECUTE,
            Preview(title="Run", text="echo hi\u202e; rm \x1b[31m-rf"),
        ),
        _tool(
            "ask_followup_question",
            ToolTraits(kind=ToolKind.OTHER, flow=Flow.ASK),
            Risk.NONE,
            Preview(title="Question"),
        ),
    )
    return {tool.spec.name: tool for tool in known}


OFFERED = (
    OfferedModel(ref="anthropic/claude-sonnet-4-5", title="Anthropic", window=200_000, thinks=True),
    OfferedModel(ref="fake/one", title="Fake", window=10_000, price_in=1.0, price_out=1.0, usable=True),
    OfferedModel(ref="fake/two", title="Fake", usable=True),
)


def _choose(ref: str, thinking: int | None) -> SetModel:
    ref = ref.replace("@/", "/")  # the usual key
    if ref != "fake/two":
        raise ConfigError("model-name", f"{ref!r} is not known.", why="There is one other model.", fix="Take it.")
    return SetModel(choice=ModelChoice(model=ref, tool_protocol=ToolProtocol.XML, thinking_budget=thinking))


def _judge(spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], standing: Standing) -> Decision:
    covered = any(allowance.tool == spec.name for allowance in standing.allowances)
    if covered:
        return Decision(verdict=Verdict.ALLOW, risk=spec.risk, digest=spec.name)
    if spec.risk is Risk.NONE:
        return Decision(verdict=Verdict.ALLOW, risk=spec.risk, digest=spec.name)
    reason = Reason(rule="test-rule", text="it changes something")
    return Decision(
        verdict=Verdict.REQUIRE_USER_CONFIRMATION,
        risk=spec.risk,
        reasons=(reason,),
        digest=spec.name,
        offers=(Allowance(id=spec.name, tool=spec.name),),
    )


class FakeSharedBudgets:
    """No other session spends anything."""

    async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
        return SharedSpent()


async def _same_model(mode: Mode, present: str) -> None:
    return None


class FakeEnvironment:
    """Nothing to say."""

    async def describe(self, *, first: bool, situation: Situation | None) -> str:
        return "here"


class BreakableLog:
    """A log that cannot be written any more once it is broken; it keeps nothing itself."""

    def __init__(self, log: SessionLog, *, broken: bool) -> None:
        self._log = log
        self.broken = broken

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        if self.broken:
            raise StoreError("log-unwritable", "The log cannot be written.", why="disk full", fix="Make room.")
        await self._log.append(events, durable=durable)


@dataclass(slots=True, kw_only=True)
class Rig:
    """A live session and what is behind it."""

    live: LiveSession
    provider: FakeProvider
    log: BreakableLog


@asynccontextmanager
async def session(
    folder: Path,
    *replies: list[StreamEvent | Pause],
    resume: bool = False,
    diff: str = DIFF,
    broken: bool = False,
    trust: SessionTrust | None = None,
    for_mode: Callable[[Mode, str], Awaitable[ModelChoice | None]] | None = None,
) -> AsyncIterator[Rig]:
    """Open a session in `folder`; with `resume`, the one that is there; with `broken`, one whose log fails at once.

    The folder is trusted unless `trust` says otherwise. `for_mode` gives the model that a mode has of its own.
    """
    store = Store(folder / "sessions.db")
    first: tuple[EventData, ...] = (Resumed(user_present=True),)
    if not resume:
        row = SessionRow(
            id=SESSION, workspace=str(folder), model=MODEL.ref, title="", created_at=0, updated_at=0, events=0
        )
        await store.create(row)
        started = SessionStarted(
            choice=ModelChoice(model=MODEL.ref, tool_protocol=ToolProtocol.NATIVE),
            session_id=SESSION,
            workspace=str(folder),
            mode=Mode.ASK,
        )
        first = (started, SetPresence(user_present=True))
    provider, log = FakeProvider(list(replies)), BreakableLog(SessionLog(store, SESSION), broken=broken)
    ports = Ports(
        log=log,
        environment=FakeEnvironment(),
        judge=_judge,
        redactor=lambda: known_secrets({}),
        tools=tools(diff),
        left_out=lambda *_: {},
        provider=lambda _: provider,
        model=lambda _: MODEL,
        system=lambda *_: (PromptPart(name="work", text="system"),),
        clock=lambda: time.time_ns() // 1_000_000,
        jitter=lambda: 0.0,
        shared_budgets=FakeSharedBudgets(),
        remember=lambda _: None,
    )

    past = read_past(store.read(SESSION)) if resume else None
    opened = AsyncExitStack()

    @cache
    def own_shell() -> OwnShell:
        hide = known_secrets({"SHOP_API_KEY": SECRET}).stream
        made = OwnShell(shell="/bin/bash", directory=str(folder), spool=folder / "spool", hide=hide)
        opened.push_async_callback(made.close)
        return made

    live = LiveSession(
        session_id=SESSION,
        engine=Session(Track(past), ports.clock),
        works_with=ports,
        past=() if past is None else past.stamped,
        store=store,
        first=first,
        trust=trust or SessionTrust(trust=Trust(workspace=folder, state=TrustState.TRUSTED, items=())),
        models=ModelFinder(
            spec=lambda _: MODEL, choose=_choose, for_mode=for_mode or _same_model, offered=lambda: OFFERED
        ),
        checklist_file=folder / "checklist.md",
        own_shell=own_shell,
        enclose=_mentions_nothing,
        ports=_NoPorts,
        opened=opened,
    )
    async with live:
        yield Rig(live=live, provider=provider, log=log)


class _NoPorts:
    def command(self, argument: str) -> ServersAnswer:
        return ServersAnswer(text=f"no ports {argument}")


async def _mentions_nothing(text: str) -> Enclosed:
    return Enclosed()


def prompt(value: str) -> Prompt:
    return Prompt(id=value, content=(Text(text=value),))
