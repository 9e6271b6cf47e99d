"""The machine without a runtime: a world that keeps what is outstanding and answers it in any way a runtime could.

The table of states in the docs is found with it, and so are the machine's properties in the tests.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from treadle.context.log_reader import TranscriptReader
from treadle.context.transcript import Transcript
from treadle.engine.core.advance import advance
from treadle.engine.core.machine_effects import (
    AskHooks,
    Assemble,
    CallModel,
    Cancel,
    Effect,
    JudgeCall,
    MakeRoom,
    Notify,
    RunTool,
    Seal,
    StartTimer,
    call_work,
    end_work,
    model_work,
    step_work,
    timer_work,
)
from treadle.engine.core.state import AwaitingReply, State, phase, replace
from treadle.engine.runtime.window import next_message
from treadle.protocol.attach import Stamped
from treadle.protocol.children import ChildEnded, ChildMerges, ChildOutcome, ChildStarted
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import (
    ENGINE,
    HOOK,
    Answer,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    CompactNow,
    ContextExceeded,
    ContextReady,
    Delivery,
    EditChecklist,
    EditQueued,
    Event,
    EventData,
    Interrupt,
    MoveQueued,
    Noted,
    Pin,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    Resumed,
    RevokeAllowance,
    SessionStarted,
    SetFallback,
    SetLimits,
    SetMode,
    SetModel,
    SetPresence,
    Source,
    SummaryWritten,
    TimerFired,
    TurnMayEnd,
)
from treadle.protocol.limits import Budget, Limits, Terms
from treadle.protocol.messages import ContentBlock, Enclosure, EnclosureKind, Message, Role, Text, ToolUse
from treadle.protocol.models import ErrorKind, ModelChoice, ModelError, ReplyStop, ToolProtocol
from treadle.protocol.notifications import CallStatus, Notification, Phase
from treadle.protocol.permissions import (
    Allowance,
    AllowScope,
    CallAsked,
    Decision,
    Mode,
    OptionKind,
    Question,
    QuestionKind,
    Verdict,
)
from treadle.protocol.sealed import Passage, PassageKind, ResultMade
from treadle.protocol.tools import (
    CallResult,
    ChangeKind,
    Confinement,
    CopyChange,
    CopyChanges,
    FileChange,
    Flow,
    Origin,
    Outcome,
    OutputFolder,
    Preview,
    Right,
    Rights,
    Risk,
    SandboxDenial,
    ToolCall,
    ToolEffect,
    ToolKind,
    ToolTraits,
    result_text,
)
from treadle.protocol.usage import Usage

T = TypeVar("T")

TUI = Source(kind="tui", id="main")

TRAITS = {
    "look": ToolTraits(kind=ToolKind.READ, effect=ToolEffect.PURE),
    "write": ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
    "run": ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE),
    "agents": ToolTraits(kind=ToolKind.OTHER, effect=ToolEffect.IDEMPOTENT, apart=True),
    "ask": ToolTraits(flow=Flow.ASK, effect=ToolEffect.ONCE),
    "done": ToolTraits(flow=Flow.END_TURN, effect=ToolEffect.ONCE),
}


MADE = CopyChanges(digest="c", changes=(CopyChange(path="/made", kind=ChangeKind.ADDED, added=1, removed=0),))
"""What a command left in its throw-away copy."""

_HELD = replace(MADE.changes[0], held="a reason")
IN_PART = replace(MADE, changes=(_HELD,), rights=Rights(confinement=Confinement.GIT))
"""The same where it cannot be applied."""

UNSHOWN = replace(MADE, changes=(replace(MADE.changes[0], unshown=True),))
OUTPUTS = CopyChanges(digest="o", outputs=(OutputFolder(path="/build", files=2),))
"""What is too large to be shown, and what needs no question."""


def work_of(effect: Effect) -> str:
    match effect:
        case Assemble(step=step) | MakeRoom(step=step):
            return step_work(step)
        case CallModel(step=step, attempt=attempt):
            return model_work(step, attempt)
        case JudgeCall(call=call) | RunTool(call=call):
            return call_work(call.id)
        case StartTimer(timer=timer):
            return timer_work(timer)
        case AskHooks(turn=turn):
            return end_work(turn)
        case _:
            return ""


def decision(verdict: Verdict, digest: str = "d", risk: Risk = Risk.WRITE) -> Decision:
    return Decision(verdict=verdict, risk=risk, digest=digest, confinement=Confinement.LOOK)


class Choose(Protocol):
    """Makes a choice, such as `random.choice`."""

    def __call__(self, options: Sequence[T], /) -> T:
        """Choose one."""
        ...


@dataclass
class World:
    """Outstanding work, the log, the state and the transcript of one run."""

    protocol: ToolProtocol = ToolProtocol.NATIVE
    limits: Limits = field(default_factory=Limits)
    state: State = field(default_factory=State)
    log: list[Event] = field(default_factory=list)
    outstanding: dict[str, Effect] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    reader: TranscriptReader = field(default_factory=TranscriptReader)
    proposed: list[ToolUse] = field(default_factory=list)
    calls: int = 0
    at: int = 0
    stamped: list[Stamped] = field(default_factory=list)

    def begin(self) -> "World":
        self.take(
            SessionStarted(
                session_id="s",
                workspace="/w",
                choice=ModelChoice(model="p/m", tool_protocol=self.protocol),
                mode=Mode.ASK,
                limits=self.limits,
            )
        )
        return self

    @property
    def transcript(self) -> Transcript:
        """The conversation so far."""
        return self.reader.transcript

    def ready(self, environment: str = "e", **others: Any) -> ContextReady:
        """Seal the next user message."""
        return replace(next_message(self.state, self.reader, environment), **others)

    def take(self, data: EventData, source: Source = TUI) -> tuple[Effect, ...]:
        """Give the machine an event, and what it says because of it; raises `RefusedError`."""
        event = Event(seq=self.state.seq + 1, at=self.at, source=source, data=data)
        self.state, effects = advance(self.state, event)
        self.reader.take(event)
        self.log.append(event)
        for effect in effects:
            if isinstance(effect, Seal):
                assert self.take(effect.data, ENGINE) == ()
        for effect in effects:
            if isinstance(effect, Cancel):
                self._cancel(effect.work)
            elif work_of(effect):
                self.outstanding[work_of(effect)] = effect
        self.effects += effects
        told = (effect.notification for effect in effects if isinstance(effect, Notify))
        self.stamped += [Stamped(notification=one, seq=event.seq, at=event.at) for one in told]
        return effects

    def results(self) -> list[CallResult]:
        """Give what the log has last as the outcomes of calls, in the order of the calls."""
        found: dict[str, CallResult] = {}
        for event in self.log:
            if isinstance(event.data, CallFinished | ResultMade):
                found[event.data.call_id] = event.data.result
        proposed = (event.data.call.id for event in self.log if isinstance(event.data, CallProposed))
        return [found[call_id] for call_id in proposed if call_id in found]

    def told(self) -> list[Notification]:
        """Give what surfaces were notified of."""
        return [effect.notification for effect in self.effects if isinstance(effect, Notify)]

    def try_take(self, data: EventData, source: Source = TUI) -> bool:
        """Give the machine an event that may be refused; says whether it was taken."""
        try:
            self.take(data, source)
        except RefusedError:
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
        effect = self.outstanding.pop(work, None)
        self.try_take(data, HOOK if isinstance(effect, AskHooks) else TUI)

    def new_call(self, name: str, problem: str = "") -> CallProposed | None:
        match self.state.activity:
            case AwaitingReply(step=step, attempt=attempt):
                self.calls += 1
                call_id = f"call_{step}_{attempt}_{self.calls}"
                call = ToolCall(id=call_id, name=name, arguments={"n": self.calls % 3}, problem=problem)
                self.proposed.append(ToolUse(id=call_id, name=name, arguments=call.arguments))
                progress = "- [ ] one\n- [x] two" if self.calls % 4 == 1 else ""
                return CallProposed(step=step, attempt=attempt, call=call, traits=TRAITS[name], progress=progress)
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

    def outcomes(self, effect: Effect, choice: Choose) -> EventData | None:
        """Choose one of the things that can come of an effect."""
        match effect:
            case Assemble(step=step):
                terms = choice([None, Terms(input_tokens=100, max_output=5_000, input_price=1.0, output_price=1.0)])
                ready: list[EventData] = [self.ready(terms=terms, step=step)]
                ready *= 1 if self.state.space.compactions else 4
                return choice([*ready, ContextExceeded(step=step, tokens=9, window=5)])
            case CallModel(step=step, attempt=attempt):
                kinds: list[ErrorKind | None] = [None] * 6
                kind = choice([*kinds, *ErrorKind])
                if kind is not None:
                    failed = self.failure(step, attempt, kind)
                    wait = choice([None, 7_200.0]) if kind is ErrorKind.RATE_LIMIT else None
                    return replace(failed, error=replace(failed.error, retry_after=wait))
                stops: list[ReplyStop | None] = [None, None, None, *ReplyStop]
                return self.reply(step, attempt, stop=choice(stops))
            case MakeRoom(step=step, write=True):
                written = SummaryWritten(
                    step=step, text="what the model says of it", usage=Usage(input_tokens=10), cost=0.1
                )
                results: list[EventData] = [self.room_made(step), written, SummaryWritten(step=step, error="too much")]
                return choice(results)
            case MakeRoom(step=step):
                return self.room_made(step)
            case JudgeCall(call=call):
                verdicts: list[Verdict | None] = [*Verdict, None]
                verdict = choice(verdicts)
                if verdict is None:
                    return CallFinished(call_id=call.id, result=result_text(Outcome.INVALID, "bad"))
                offers = choice([(), (Allowance(id=f"always {call.name}", tool=call.name),)])
                decided = replace(decision(verdict, f"d{call.arguments}"), offers=offers)
                return CallJudged(call_id=call.id, decision=decided, preview=Preview(title="t"))
            case RunTool():
                return self.ran(effect, choice)
            case StartTimer(timer=timer):
                return TimerFired(timer=timer)
            case AskHooks(turn=turn):
                more = Prompt(id=f"h{turn}.{self.state.seq}", content=(Text(text="run the tests"),))
                words: list[EventData] = [TurnMayEnd(), TurnMayEnd(), TurnMayEnd(stop="enough"), more]
                return choice(words)
            case _:
                return None

    def room_made(self, step: int) -> Compacted:
        """Leave out what can be."""
        dropped = self.transcript.droppable()
        through = self.transcript.through(dropped)
        return Compacted(step=step, through=through, dropped=dropped, summary="what left")

    def ran(self, effect: RunTool, choice: Choose) -> EventData:
        """Choose what comes of a run, or of applying what one left in its copy."""
        call_id = effect.call.id
        if any(one.call.id == call_id and one.status is CallStatus.STARTING for one in self.state.calls):
            return CallStarted(call_id=call_id)
        if effect.keep:
            kept = FileChange(path="/made", before="", after="x")
            return CallFinished(call_id=call_id, result=replace(result_text(Outcome.OK, "kept"), changes=(kept,)))
        outcome = choice([Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.INTERRUPTED])
        denial = choice([None, None, SandboxDenial(right=Right.NETWORK)])
        origin = choice([Origin.COMMAND, Origin.COMMAND, Origin.WEB])
        copy = choice([None, None, None, MADE, IN_PART, UNSHOWN, OUTPUTS, CopyChanges(ignored=2)])
        result = replace(result_text(outcome, choice(["a", "b"])), denial=denial, origin=origin, copy=copy)
        return CallFinished(call_id=call_id, result=result)

    def work_on(self, effect: Effect, choice: Choose) -> None:
        """Let one piece of outstanding work report."""
        data = self.outcomes(effect, choice)
        if data is None:
            return
        if isinstance(data, CallStarted):
            self.try_take(data)
        else:
            self.settle(work_of(effect), data)


def walk(jitter: random.Random, limits: Limits, *, longest: int = 60, world: World | None = None) -> World:
    """Drive one session at random."""
    world = (World(limits=limits) if world is None else world).begin()
    world.take(SetPresence(user_present=jitter.random() < 0.8))
    for number in range(longest):
        _move(world, jitter, number)
    return world


def explore(jitter: random.Random, walks: int, *, longest: int = 60) -> Iterator[tuple[Phase, str, Phase]]:
    """Walk at random; yields the phase before, the event that was taken, and the phase after."""
    for _ in range(walks):
        limits = (
            BOUNDED if jitter.random() < _OFTEN_BOUNDED else Limits(max_steps=8, max_retries=2, wait_for_reset=True)
        )
        asks, joins, works = (jitter.random() < _OFTEN_BOUNDED for _ in range(3))
        limits = replace(limits, asks_end=asks, joins_cut=joins, counts_work=works, turns_together=works)
        world = World(limits=limits, at=1).begin()
        world.take(SetPresence(user_present=jitter.random() < 0.8))
        for number in range(longest):
            before, known = phase(world.state), len(world.log)
            _move(world, jitter, number)
            for event in world.log[known:]:
                yield before, type(event.data).__name__, phase(world.state)


def answer_to(question: Question, choice: Choose) -> Answer:
    """Choose one of the answers that a question takes."""
    permission = question.kind is QuestionKind.PERMISSION
    keys = question.kind in (QuestionKind.PERMISSION, QuestionKind.BUDGET, QuestionKind.ELICITATION)
    option = OptionKind(choice(question.options if keys else (OptionKind.ANSWER,)))
    has_run = question.denial is not None or question.copy is not None
    can_amend = permission and not has_run and option is not OptionKind.REJECT_ONCE
    amended = choice([None, None, {"n": "amended"}]) if can_amend else None
    return Answer(
        question_id=question.id,
        option=option,
        text=choice([*question.options, "so"] if question.kind is QuestionKind.SUMMARY else ["", "so"]),
        arguments=amended,
        scope=choice(list(AllowScope)),
    )


ENCLOSED = Enclosure(kind=EnclosureKind.FILE, origin="a.py", content=(Text(text="<file>a</file>"),))
"""What goes along with some prompts."""


def asked_by_user(world: World, number: int, choice: Choose) -> list[EventData]:
    """List what a user may want now, beside answers."""
    waiting = [one.prompt.id for one in (*world.state.queue, *world.state.held)]
    queued = [EditQueued(prompt_id=one) for one in waiting]
    places = [None, 0, len(waiting)]
    moved = [MoveQueued(prompt_id=one, delivery=choice([*Delivery]), place=choice(places)) for one in waiting]
    other = (Text(text="do it otherwise"),)
    edited = [EditQueued(prompt_id=one, content=other, keeps=choice([True, False])) for one in waiting]
    asks = [
        CallAsked(call_id=call.call.id, question_id=f"{call.call.id}-asks-{number}", text="what?")
        for call in world.state.calls
        if call.status is CallStatus.RUNNING
    ]
    withdrawn = [
        CallAsked(call_id=one.call_id, question_id=one.id)
        for one in world.state.questions
        if one.kind is QuestionKind.ELICITATION
    ]
    allowed = [RevokeAllowance(allowance_id=one.id) for one in world.state.allowances]
    return [
        Prompt(id=f"p{number}", content=(Text(text="do it"),), enclosed=(ENCLOSED,)),
        Prompt(id=f"s{number}", content=(Text(text="do it"),), delivery=Delivery.STEER),
        Interrupt(),
        Interrupt(hold=True),
        SetMode(mode=Mode.PLAN),
        SetMode(mode=Mode.ASK, choice=ModelChoice(model="p/m", tool_protocol=world.protocol)),
        SetModel(choice=ModelChoice(model="p/other", tool_protocol=world.protocol)),
        SetFallback(choice=ModelChoice(model="q/spare", tool_protocol=world.protocol)),
        EditChecklist(text="- [ ] mine"),
        Noted(notes=(Passage(kind=PassageKind.FILES, text="a.py was changed", origin="a.py"),)),
        CompactNow(focus="names"),
        Pin(id="a", text="keep this"),
        Pin(id="a"),
        SetLimits(limits=world.limits),
        SetPresence(user_present=True),
        *queued,
        *moved,
        *edited,
        *allowed,
        *asks,
        *withdrawn,
    ]


BOUNDED = Limits(
    max_steps=8,
    max_retries=2,
    max_seconds=5.0,
    max_auto_approved=2,
    session=Budget(tokens=6_000),
    wait_for_reset=False,
)
"""Limits that are all reached now and then."""


def children_may(world: World, number: int, choice: Choose) -> list[EventData]:
    """List what subagents of the session can report."""
    found: list[EventData] = []
    for call in world.state.calls:
        if call.traits.apart and call.status is CallStatus.RUNNING:
            one = ChildStarted(call_id=call.call.id, session_id=f"s{number}", agent="worker", task="t")
            found.append(replace(one, background=choice([False, False, True])))
    for child in world.state.children:
        session_id = child.started.session_id
        if child.ended is None:
            over = session_id in world.state.merging
            ended = ChildEnded(session_id=session_id, outcome=choice(list(ChildOutcome)), denied=choice([0, 1]))
            found += [ChildMerges(session_id=session_id, over=over), *([] if over else [ended])]
    return found


def _move(world: World, jitter: random.Random, number: int) -> None:
    """Make one move, most often the next thing that outstanding work reports."""
    kind = jitter.choice(_MOVES)
    if kind == "work" and world.outstanding:
        world.work_on(jitter.choice(list(world.outstanding.values())), jitter.choice)
    elif kind == "call":
        data = world.new_call(
            jitter.choice(list(TRAITS)),
            jitter.choice(["", "", "", "not valid"]),
        )
        if data is not None and not world.try_take(data):
            world.proposed.pop()
    elif kind == "answer" and world.state.questions:
        world.take(answer_to(jitter.choice(world.state.questions), jitter.choice))
    elif kind == "child" and (of_children := children_may(world, number, jitter.choice)):
        world.try_take(jitter.choice(of_children))
    elif kind == "user":
        world.try_take(jitter.choice(asked_by_user(world, number, jitter.choice)))
    elif kind == "resume":
        world.outstanding.clear()
        world.take(Resumed(user_present=jitter.random() < 0.8))


_OFTEN_BOUNDED = 0.3
_MOVES = (*["work"] * 10, *["call"] * 5, *["answer"] * 3, *["user"] * 3, *["child"] * 2, "resume")
