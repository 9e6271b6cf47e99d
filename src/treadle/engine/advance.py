"""`advance(state, event) -> (state, effects)`: the whole behaviour of the loop, without clock, chance or I/O."""

from collections.abc import Iterable
from typing import assert_never

from treadle.engine import calls, replies, turns
from treadle.engine.calls import Moved
from treadle.engine.effects import (
    Assemble,
    CallModel,
    Cancel,
    Compact,
    Effect,
    Notify,
    model_work,
    step_work,
    timer_work,
)
from treadle.engine.legal import refuse_illegal
from treadle.engine.state import (
    Assembling,
    AwaitingReply,
    Compacting,
    Idle,
    Retrying,
    State,
    Waiting,
    phase,
    replace,
)
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    ContextExceeded,
    ContextReady,
    EditQueued,
    Event,
    Interrupt,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    Resumed,
    SessionStarted,
    SetLimits,
    SetMode,
    SetModel,
    SetPresence,
    TimerFired,
)
from treadle.protocol.notifications import (
    CallStatus,
    ModeChanged,
    ModelChanged,
    PhaseChanged,
    QuestionAsked,
    QuestionClosed,
)
from treadle.protocol.permissions import QuestionKind


def advance(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    """Take one event; raises `RefusedError`, with the state unchanged, when it is illegal now."""
    refuse_illegal(state, event)
    return replay(state, event)


def replay(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    """Take an event that was accepted before, such as one from the log."""
    before = phase(state)
    state, effects = _handle(replace(state, seq=event.seq), event)
    state, more = turns.settle(state)
    effects = effects + more
    after = phase(state)
    if after is not before:
        effects.append(Notify(notification=PhaseChanged(phase=after)))
    return state, tuple(effects)


def fold(events: Iterable[Event], state: State | None = None) -> State:
    """Rebuild the state from the log."""
    state = State() if state is None else state
    for event in events:
        state, _ = replay(state, event)
    return state


def _handle(state: State, event: Event) -> Moved:  # noqa: C901, PLR0911, PLR0912 - one line for each event
    match event.data:
        case Prompt() as data:
            state = replace(state, queue=(*state.queue, Waiting(prompt=data, source=event.source)))
            return state, [turns.queue_changed(state)]
        case EditQueued() as data:
            return _edit_queue(state, data)
        case Answer() as data:
            return _answer(state, data)
        case Interrupt():
            return _interrupt(state)
        case SetMode() as data:
            return replace(state, mode=data.mode), [Notify(notification=ModeChanged(mode=data.mode))]
        case SetModel() as data:
            state = replace(state, model=data.model, tool_protocol=data.tool_protocol)
            return state, [Notify(notification=ModelChanged(model=data.model))]
        case SetLimits(limits=limits):
            return replace(state, limits=limits), []
        case SetPresence() as data:
            return _set_presence(state, data)
        case SessionStarted() as data:
            return _start_session(state, data), []
        case Resumed() as data:
            return _resume(state, data)
        case ContextReady() as data:
            return replies.context_ready(state, data)
        case ContextExceeded() as data:
            return replies.context_exceeded(state, data)
        case Compacted() as data:
            return replies.compacted(state, data)
        case CallProposed() as data:
            return calls.propose(state, data)
        case ReplyFinished() as data:
            return _finish_reply(state, data)
        case ReplyFailed() as data:
            return replies.reply_failed(state, data)
        case CallJudged() as data:
            return calls.judged(state, data)
        case CallStarted() as data:
            return calls.started(state, data)
        case CallFinished() as data:
            return calls.finished(state, data)
        case TimerFired():
            return replies.retry_now(state)
        case _:
            assert_never(event.data)


def _start_session(state: State, data: SessionStarted) -> State:
    return replace(
        state,
        session_id=data.session_id,
        mode=data.mode,
        model=data.model,
        tool_protocol=data.tool_protocol,
        limits=data.limits,
    )


def _edit_queue(state: State, data: EditQueued) -> Moved:
    queue = tuple(
        replace(waiting, prompt=replace(waiting.prompt, content=data.content or waiting.prompt.content))
        if waiting.prompt.id == data.prompt_id
        else waiting
        for waiting in state.queue
        if waiting.prompt.id != data.prompt_id or data.content
    )
    state = replace(state, queue=queue)
    return state, [turns.queue_changed(state)]


def _answer(state: State, data: Answer) -> Moved:
    question = next(question for question in state.questions if question.id == data.question_id)
    if question.kind is not QuestionKind.GUIDANCE:
        return calls.answered(state, question, data)
    state = replace(state, questions=tuple(other for other in state.questions if other.id != question.id))
    state, effects = turns.guided(state, data.text)
    return state, [Notify(notification=QuestionClosed(question_id=question.id, option=data.option)), *effects]


def _interrupt(state: State) -> Moved:
    effects: list[Effect] = []
    match state.activity:
        case AwaitingReply(step=step, attempt=attempt):
            effects.append(Cancel(work=model_work(step, attempt)))
        case Assembling(step=step) | Compacting(step=step):
            effects.append(Cancel(work=step_work(step)))
            state = replace(state, activity=Idle())
        case Retrying(timer=timer):
            effects.append(Cancel(work=timer_work(timer)))
            state = replace(state, activity=Idle())
        case Idle():
            pass
    state, more = calls.interrupt(state)
    closed = [Notify(notification=QuestionClosed(question_id=question.id)) for question in state.questions]
    return replace(state, cancelling=True, questions=()), [*effects, *more, *closed]


def _finish_reply(state: State, data: ReplyFinished) -> Moved:
    state, effects = replies.reply_finished(state, data)
    if not state.cancelling:
        return state, effects
    state, more = calls.interrupt(state)
    return state, effects + more


def _set_presence(state: State, data: SetPresence) -> Moved:
    state = replace(state, user_present=data.user_present)
    if data.user_present:
        return state, []
    return _withdraw_questions(state)


def _withdraw_questions(state: State) -> Moved:
    effects: list[Effect] = []
    for call in state.calls:
        if call.status is CallStatus.ASKING:
            state, more = calls.ask_again(state, call)
            effects += more
    if any(question.kind is QuestionKind.GUIDANCE for question in state.questions):
        state, more = turns.end_unguided(state)
        effects += more
    return state, effects


def _resume(state: State, data: Resumed) -> Moved:
    state = replace(state, user_present=data.user_present)
    if state.cancelling:
        state, effects = calls.abandon(state)
        return replace(state, activity=Idle()), effects
    match state.activity:
        case Assembling(step=step):
            return state, [Assemble(step=step)]
        case AwaitingReply(step=step, attempt=attempt, failures=failures):
            state, effects = calls.drop_unfinished_reply(state)
            state = replace(state, activity=AwaitingReply(step=step, attempt=attempt + 1, failures=failures))
            return state, [*effects, CallModel(step=step, attempt=attempt + 1)]
        case Retrying():
            return replies.retry_now(state)
        case Compacting(step=step):
            return state, [Compact(step=step)]
        case Idle():
            state, effects = calls.resume(state)
            more = _ask_guidance_again(state) if data.user_present else []
            if not data.user_present:
                state, more = _withdraw_questions(state)
            return state, effects + more


def _ask_guidance_again(state: State) -> list[Effect]:
    asked = (question for question in state.questions if question.kind is QuestionKind.GUIDANCE)
    return [Notify(notification=QuestionAsked(question=question)) for question in asked]
