"""A world around the machine: it keeps what is outstanding and answers it in any way that the runtime could."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from treadle.context.transcript import Transcript
from treadle.engine.advance import advance
from treadle.engine.effects import (
    Assemble,
    CallModel,
    Cancel,
    Compact,
    Effect,
    JudgeCall,
    RunTool,
    StartTimer,
    call_work,
    model_work,
    step_work,
    timer_work,
)
from treadle.engine.history import record
from treadle.engine.state import AwaitingReply, State
from treadle.protocol.codec import decode_data, encode
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import (
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    ContextExceeded,
    ContextReady,
    Event,
    EventData,
    Limits,
    ReplyFailed,
    ReplyFinished,
    SessionStarted,
    Source,
    TimerFired,
)
from treadle.protocol.messages import ContentBlock, Message, Role, Text, ToolUse
from treadle.protocol.models import ErrorKind, ModelError, ReplyStop, ToolProtocol, Usage
from treadle.protocol.notifications import CallStatus
from treadle.protocol.permissions import Decision, Mode, Verdict
from treadle.protocol.tools import (
    Flow,
    Outcome,
    Preview,
    Risk,
    ToolCall,
    ToolEffect,
    ToolKind,
    ToolTraits,
    result_text,
)

TUI = Source(kind="tui", id="main")

TRAITS = {
    "look": ToolTraits(kind=ToolKind.READ, effect=ToolEffect.PURE),
    "write": ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
    "run": ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE),
    "ask": ToolTraits(flow=Flow.ASK, effect=ToolEffect.ONCE),
    "done": ToolTraits(flow=Flow.END_TURN, effect=ToolEffect.ONCE),
}


def work_of(effect: Effect) -> str:
    match effect:
        case Assemble(step=step) | Compact(step=step):
            return step_work(step)
        case CallModel(step=step, attempt=attempt):
            return model_work(step, attempt)
        case JudgeCall(call=call) | RunTool(call=call):
            return call_work(call.id)
        case StartTimer(timer=timer):
            return timer_work(timer)
        case _:
            return ""


def decision(verdict: Verdict, digest: str = "d", risk: Risk = Risk.WRITE) -> Decision:
    return Decision(verdict=verdict, risk=risk, digest=digest)


@dataclass
class World:
    """Outstanding work, the log, the state and the transcript of one run."""

    protocol: ToolProtocol = ToolProtocol.NATIVE
    limits: Limits = field(default_factory=Limits)
    state: State = field(default_factory=State)
    log: list[Event] = field(default_factory=list)
    outstanding: dict[str, Effect] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    transcript: Transcript = field(default_factory=Transcript)
    proposed: list[ToolUse] = field(default_factory=list)
    calls: int = 0

    def begin(self) -> "World":
        self.take(
            SessionStarted(
                session_id="s",
                workspace="/w",
                model="p/m",
                tool_protocol=self.protocol,
                mode=Mode.ASK,
                limits=self.limits,
            )
        )
        return self

    def take(self, data: EventData, source: Source = TUI) -> tuple[Effect, ...]:
        """Give the machine an event, as it comes back from the log."""
        again = decode_data(encode(data))
        assert again == data
        event = Event(seq=self.state.seq + 1, at=0, source=source, data=again)
        before = self.state
        self.state, effects = advance(before, event)
        record(self.transcript, before, event)
        self.log.append(event)
        for effect in effects:
            if isinstance(effect, Cancel):
                self._cancel(effect.work)
            elif work_of(effect):
                self.outstanding[work_of(effect)] = effect
        self.effects += effects
        return effects

    def try_take(self, data: EventData) -> bool:
        """Give the machine an event that may be refused; a refusal leaves the state as it was."""
        before = self.state
        try:
            self.take(data)
        except RefusedError:
            assert self.state is before
            return False
        return True

    def _cancel(self, work: str) -> None:
        """Cancelled work that still reports stays outstanding; the rest is gone."""
        effect = self.outstanding.get(work)
        running = isinstance(effect, RunTool) and any(
            call.call.id == effect.call.id and call.status is CallStatus.RUNNING for call in self.state.calls
        )
        if not running and not isinstance(effect, CallModel):
            self.outstanding.pop(work, None)

    def settle(self, work: str, data: EventData) -> None:
        """Report an outcome of outstanding work."""
        self.outstanding.pop(work, None)
        self.try_take(data)

    def new_call(self, name: str, problem: str = "") -> CallProposed | None:
        match self.state.activity:
            case AwaitingReply(step=step, attempt=attempt):
                self.calls += 1
                call_id = f"call_{step}_{attempt}_{self.calls}"
                call = ToolCall(id=call_id, name=name, arguments={"n": self.calls % 3}, problem=problem)
                self.proposed.append(ToolUse(id=call_id, name=name, arguments=call.arguments))
                return CallProposed(step=step, attempt=attempt, call=call, traits=TRAITS[name])
            case _:
                return None

    def reply(self, step: int, attempt: int, *, text: str = "answer", stop: ReplyStop | None = None) -> ReplyFinished:
        uses = [use for use in self.proposed if use.id.startswith(f"call_{step}_{attempt}_")]
        content: tuple[ContentBlock, ...] = (Text(text=text), *uses)
        stop = stop or (ReplyStop.TOOL_USE if uses else ReplyStop.END_TURN)
        return ReplyFinished(
            step=step,
            attempt=attempt,
            message=Message(role=Role.ASSISTANT, content=content),
            stop=stop,
            usage=Usage(input_tokens=10, output_tokens=1),
            cost=0.5,
        )

    def failure(self, step: int, attempt: int, kind: ErrorKind) -> ReplyFailed:
        return ReplyFailed(step=step, attempt=attempt, error=ModelError(kind=kind, message="no"), jitter=0.5)

    def outcomes(self, effect: Effect, choice: Callable[[Sequence[Any]], Any]) -> EventData | None:
        """Choose one of the things that can come of an effect."""
        match effect:
            case Assemble(step=step):
                ready: list[EventData] = [ContextReady(step=step, environment="e")] * 4
                return choice([*ready, ContextExceeded(step=step, tokens=9, window=5)])
            case CallModel(step=step, attempt=attempt):
                kind = choice([None] * 6 + list(ErrorKind))
                if kind is not None:
                    return self.failure(step, attempt, kind)
                return self.reply(step, attempt, stop=choice([None, None, None, *ReplyStop]))
            case Compact(step=step):
                return Compacted(step=step, dropped=self.transcript.droppable())
            case JudgeCall(call=call):
                verdict = choice([*Verdict, None])
                if verdict is None:
                    return CallFinished(call_id=call.id, result=result_text(Outcome.INVALID, "bad"))
                return CallJudged(
                    call_id=call.id, decision=decision(verdict, f"d{call.arguments}"), preview=Preview(title="t")
                )
            case RunTool(call=call):
                if any(c.call.id == call.id and c.status is CallStatus.STARTING for c in self.state.calls):
                    return CallStarted(call_id=call.id)
                outcome = choice([Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.INTERRUPTED])
                return CallFinished(call_id=call.id, result=result_text(outcome, choice(["a", "b"])))
            case StartTimer(timer=timer):
                return TimerFired(timer=timer)
            case _:
                return None

    def work_on(self, effect: Effect, choice: Callable[[Sequence[Any]], Any]) -> None:
        """Let one piece of outstanding work report."""
        data = self.outcomes(effect, choice)
        assert data is not None
        if isinstance(data, CallStarted):
            self.try_take(data)
        else:
            self.settle(work_of(effect), data)


def check_alive(world: World) -> None:
    """Always: idle, or something in flight, or somebody is asked."""
    state = world.state
    idle = state.turn is None and not state.queue
    assert idle or world.outstanding or state.questions, state
    if state.questions:
        assert state.user_present


def check_messages(messages: Sequence[Message]) -> None:
    """Roles take turns, and each call has its result in the message behind it, in the order of the calls."""
    for first, second in itertools.pairwise(messages):
        assert first.role is not second.role
    for index, message in enumerate(messages):
        uses = [block.id for block in message.content if isinstance(block, ToolUse)]
        if not uses or index + 1 == len(messages):
            continue
        assert list(_results(messages[index + 1])) == uses


def _results(message: Message) -> Iterator[str]:
    from treadle.protocol.messages import ToolResult

    return (block.call_id for block in message.content if isinstance(block, ToolResult))
