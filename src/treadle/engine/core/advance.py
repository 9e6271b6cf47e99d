"""`advance(state, event) -> (state, effects)`: the whole behaviour of the loop, without clock, chance or I/O."""

from collections.abc import Iterable
from typing import assert_never

from treadle.engine.core import (
    answers,
    calls,
    checklist,
    compaction,
    files,
    goal,
    interruptions,
    learning,
    replies,
    room,
    sealing,
    texts,
    turn_end,
    turns,
)
from treadle.engine.core.legal import refuse_illegal
from treadle.engine.core.machine_effects import (
    Assemble,
    Cancel,
    Effect,
    Notify,
    Seal,
    Transition,
    model_work,
    step_work,
    timer_work,
    turn_timer,
)
from treadle.engine.core.state import (
    Assembling,
    AwaitingBudget,
    AwaitingHooks,
    AwaitingReply,
    Calling,
    Compacting,
    Idle,
    Retrying,
    State,
    Waiting,
    is_beside,
    phase,
    replace,
    tainted_by,
    with_model,
    with_notes,
)
from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored, Rewound
from treadle.protocol.children import ChildEnded, ChildMerges, ChildStarted
from treadle.protocol.errors import DriftError, RefusedError, StoreError
from treadle.protocol.events import (
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
    EditChecklist,
    EditQueued,
    Event,
    Interrupt,
    MoveQueued,
    Noted,
    OfferChanged,
    Op,
    Pin,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    ReplyPart,
    Resumed,
    RevokeAllowance,
    SessionStarted,
    SetFallback,
    SetLimits,
    SetMode,
    SetModel,
    SetPresence,
    SummaryWritten,
    TimerFired,
    TurnMayEnd,
)
from treadle.protocol.goals import GoalChecked, SetGoal
from treadle.protocol.models import ModelChoice
from treadle.protocol.notifications import (
    BY_HOOK,
    CallStatus,
    ConversationRewound,
    ModeChanged,
    ModelChanged,
    Notice,
    PhaseChanged,
    QuestionAsked,
    QuestionClosed,
    TurnResumed,
    TurnStop,
)
from treadle.protocol.permissions import CallAsked, Mode, QuestionKind
from treadle.protocol.sealed import (
    ChecklistUpdated,
    ModelReplaced,
    PromptsDelivered,
    QuestionPut,
    ResultMade,
    RetryPlanned,
    SideAnswered,
    SideAsked,
    StateSealed,
    TurnSettled,
)


def advance(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    """Take one event; raises `RefusedError`, with the state unchanged, when it is illegal now.

    What the machine says and decides because of it are effects too: events that belong into the log right behind it.
    """
    refuse_illegal(state, event)
    after, effects = _take(state, event)
    said = sealing.sealed(state, event, after, effects)
    return after, (*effects, *(Seal(data=data) for data in said))


def _take(state: State, event: Event) -> tuple[State, list[Effect]]:
    known, before = state, phase(state)
    state, effects = _handle(replace(state, seq=event.seq), event)
    state, more = turns.settle(state)
    state, timed = turn_end.keep_time(known, state, event)
    effects = [*effects, *more, *timed]
    after = phase(state)
    if after is not before:
        effects.append(Notify(notification=PhaseChanged(phase=after)))
    return state, effects


def fold(events: Iterable[Event], state: State | None = None) -> State:
    """Rebuild the state from events that were taken before; raises `DriftError` for one that does not fit.

    Where the log holds the state at the end of a turn, that is the state, whatever the events before say.
    """
    state = State() if state is None else state
    for event in events:
        state = _refold(state, event)
    return state


def _refold(state: State, event: Event) -> State:
    try:
        if isinstance(event.data, TurnSettled | StateSealed):
            return replace(sealing.read(event.data.state), seq=event.seq)
        refuse_illegal(state, event)
        return _take(state, event)[0]
    except (RefusedError, StoreError) as error:
        raise DriftError(event.seq, type(event.data).__name__, error.why) from error
    except (AssertionError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise DriftError(event.seq, type(event.data).__name__, str(error)) from error


def _handle(state: State, event: Event) -> Transition:  # noqa: C901, PLR0911, PLR0912 - one line for each event
    match event.data:
        case CheckpointTaken() as data:
            return files.taken(state, data)
        case Restored() as data:
            return files.restored(state, data)
        case Rewound() as data:
            state, effects = files.rewound(state, data, sealing.read(data.state))
            return state, [Notify(notification=ConversationRewound(to=data.to)), *effects]
        case SideAsked() as data:
            return compaction.side_asked(state, data)
        case SideAnswered() as data:
            return compaction.side_answered(state, data)
        case GoalChecked() as data:
            return goal.checked(state, data)
        case SessionStarted() as data:
            return _start_session(state, data), []
        case Resumed() as data:
            return _resume(state, data, event.at)
        case ContextReady() as data:
            return replies.context_ready(state, data)
        case ContextExceeded() as data:
            return compaction.context_exceeded(state, data)
        case SummaryWritten() as data:
            return compaction.summary_written(state, data)
        case Compacted() as data:
            return compaction.compacted(state, data)
        case CallProposed() as data:
            state, effects = calls.propose(state, data)
            state, more = checklist.from_model(state, data.progress)
            return state, effects + more
        case ReplyFinished() as data:
            return _finish_reply(state, data)
        case ReplyFailed() as data:
            return replies.reply_failed(state, data, event.at)
        case CallJudged() as data:
            return calls.judged(state, data)
        case CallStarted() as data:
            return calls.started(state, data)
        case CallFinished() as data:
            return calls.finished(learning.forget_subagents(state, data.call_id), data)
        case ChildStarted() as data:
            return learning.subagent_began(state, data)
        case ChildMerges() as data:
            return files.merges(state, data)
        case ChildEnded() as data:
            return learning.subagent_ended(state, data)
        case CallAsked() as data:
            return answers.call_asked(state, data)
        case ResultMade() | QuestionPut() | ChecklistUpdated():
            return _as_sealed(state, event.data), []
        case OfferChanged() | PromptsDelivered() | RetryPlanned() | ModelReplaced() | TurnSettled() | StateSealed():
            return state, []
        case ReplyPart():
            return state, []
        case TurnMayEnd() as data:
            return turn_end.may_end(state, data)
        case TimerFired(timer=timer) if _bounds_turn(state, timer):
            return _interrupt(replace(state, stopping=TurnStop.TIME))
        case TimerFired():
            return replies.retry_now(state)
        case op:
            return _obey(state, op, event)


def _obey(state: State, op: Op, event: Event) -> Transition:  # noqa: C901, PLR0911, PLR0912 - one line for each op
    match op:
        case Prompt() as data:
            state = goal.person_spoke(state, event.source, event.at)
            waiting = Waiting(prompt=data, source=event.source)
            if event.source == HOOK and state.limits.asks_end is True:
                over = state.cancelling or not isinstance(state.activity, AwaitingHooks)
                return (state, []) if over else turns.sent_back(state, waiting)  # it is for no other turn
            state = replace(state, queue=(*state.queue, waiting))
            return state, [turns.queue_changed(state)]
        case EditQueued() as data:
            return turns.edit_queue(state, data)
        case MoveQueued() as data:
            return turns.move_queued(state, data)
        case Answer() as data:
            state, effects = _answer(state, data, event.at)
            return state, [answers.named_by(event.source, data, effect) for effect in effects]
        case Interrupt(hold=hold, why=why):
            state, paused = goal.pause_interrupted(state, event.source)
            state = replace(state, stopped_by=f"{BY_HOOK}{why}" if why else "")
            state, effects = _interrupt(state)
            state, held = turns.hold_queue(state) if hold else (state, [])
            return state, [*paused, *held, *effects]
        case SetMode() as data:
            return _set_mode(state, data)
        case RevokeAllowance() as data:
            return answers.revoke(state, data)
        case SetModel(choice=choice):
            return _choose(state, choice)
        case SetFallback(choice=fallback):
            return replace(state, model=replace(state.model, fallback=fallback)), []
        case EditChecklist(text=text):
            return checklist.from_user(state, text)
        case Noted(notes=notes):
            return with_notes(state, notes), []
        case CompactNow() as data:
            return room.compact_now(state, data)
        case Pin() as data:
            return room.pin(state, data), []
        case Restore() as data:
            return files.restore(state, data)
        case SetGoal() as data:
            return goal.set_goal(state, data, event.at)
        case SetLimits(limits=limits):
            return replace(state, limits=limits), []
        case SetPresence() as data:
            return _set_presence(state, data)
        case _:
            assert_never(op)


def _as_sealed(state: State, data: ResultMade | QuestionPut | ChecklistUpdated) -> State:
    """Go by what the log says that was said, whatever this version of the machine would say."""
    match data:
        case ResultMade(call_id=call_id, result=result):
            return calls.made(state, call_id, result)
        case QuestionPut(question=put):
            asked = tuple(sealing.as_put(one, put) if one.id == put.id else one for one in state.questions)
            return replace(state, questions=asked)
        case ChecklistUpdated(text=text):
            return checklist.updated(state, text)


def _start_session(state: State, data: SessionStarted) -> State:
    return replace(
        state,
        session_id=data.session_id,
        mode=data.mode,
        model=Calling(choice=data.choice, fallback=data.fallback),
        limits=data.limits,
    )


def _set_mode(state: State, data: SetMode) -> Transition:
    effects: list[Effect] = [Notify(notification=ModeChanged(mode=data.mode))]
    before, state = state.mode, replace(state, mode=data.mode)
    older = any(answers.is_older_than_plan(state, call) for call in state.calls)
    beside = any(is_beside(question) and not (question.form or question.url) for question in state.questions)
    if data.mode is Mode.PLAN and before is not Mode.PLAN and (older or beside):
        effects.append(Notify(notification=Notice(text=texts.OLDER_IN_PLAN)))
    if data.choice is None:
        return state, effects
    state, more = _choose(state, data.choice)
    return state, effects + more


def _choose(state: State, choice: ModelChoice) -> Transition:
    state = with_model(state, choice)
    state = replace(state, model=replace(state.model, replaced=None))
    return replies.chosen(state, [Notify(notification=ModelChanged(model=choice.model))])


def _bounds_turn(state: State, timer: str) -> bool:
    return state.turn is not None and timer == turn_timer(state.turn.number)


def _answer(state: State, data: Answer, at: int) -> Transition:
    state = tainted_by(state, data.enclosed)
    question = next(question for question in state.questions if question.id == data.question_id)
    if is_beside(question):
        return answers.elicitation_closed(state, question.id, data)
    if question.kind in (QuestionKind.PERMISSION, QuestionKind.FOLLOWUP):
        return answers.call_answered(state, question, data)
    state = replace(state, questions=tuple(other for other in state.questions if other.id != question.id))
    match state.activity:
        case AwaitingBudget() as held:
            state, effects = replies.budget_answered(state, held, data, at)
        case Compacting():
            state, effects = compaction.summary_answered(state, question, data)
        case _ if question.kind is QuestionKind.BUDGET:
            state, effects = turns.steps_answered(state, data.option)
        case _:
            state, effects = turns.guided(state, data.text, data.enclosed)
    return state, [Notify(notification=QuestionClosed(question_id=question.id, option=data.option)), *effects]


def _interrupt(state: State) -> Transition:
    effects: list[Effect] = []
    state = room.forget_wanted(state)
    match state.activity:
        case AwaitingReply(step=step, attempt=attempt):
            effects.append(Cancel(work=model_work(step, attempt)))
        case Assembling(step=step) | Compacting(step=step):
            effects.append(Cancel(work=step_work(step)))
            state = replace(state, activity=Idle())
        case Retrying(timer=timer):
            effects.append(Cancel(work=timer_work(timer)))
            state = replace(state, activity=Idle())
        case AwaitingBudget():
            state = replace(state, activity=Idle())
        case AwaitingHooks():
            return turn_end.end_interrupted(state)
        case Idle():
            pass
    state, more = interruptions.interrupt(state)
    state, withdrawn = answers.close_elicitations(state)
    closed = [Notify(notification=QuestionClosed(question_id=question.id)) for question in state.questions]
    return replace(state, cancelling=state.turn is not None, questions=()), [*effects, *more, *withdrawn, *closed]


def _finish_reply(state: State, data: ReplyFinished) -> Transition:
    state, effects = replies.reply_finished(state, data)
    if not state.cancelling:
        return state, effects
    state, more = interruptions.interrupt(state)
    return state, effects + more


def _set_presence(state: State, data: SetPresence) -> Transition:
    state = replace(state, user_present=data.user_present)
    if data.user_present:
        return state, []
    return _withdraw_questions(state)


def _withdraw_questions(state: State) -> Transition:
    state, effects = answers.close_elicitations(state)
    for call in state.calls:
        if call.status is CallStatus.ASKING:
            state, more = interruptions.ask_again(state, call)
            effects += more
    if any(question.kind is QuestionKind.GUIDANCE for question in state.questions):
        state, more = turns.end_unguided(state)
        effects += more
    if isinstance(state.activity, Compacting) and state.questions:
        state, more = compaction.take_up(state, state.activity)
        effects += more
    elif isinstance(state.activity, AwaitingBudget):
        state, more = replies.unagreed(state, state.activity)
        effects += more
    elif any(question.kind is QuestionKind.BUDGET for question in state.questions):
        state, more = turn_end.end_turn(state, TurnStop.MAX_TURN_REQUESTS)
        effects += more
    return state, effects


def _resume(state: State, data: Resumed, at: int) -> Transition:
    state = turn_end.counts_anew(goal.resumed(state, at))
    state, effects = files.go_on_after_restart(replace(state, user_present=data.user_present))
    if state.turn is not None:
        effects = [Notify(notification=TurnResumed()), *effects]
    state, closed = answers.close_elicitations(state)  # who asked is gone with its program
    effects += closed
    if state.cancelling:
        # Of a reply that did not become whole the log has no calls, so none of them has a result.
        unwritten = isinstance(state.activity, AwaitingReply)
        state, more = (interruptions.drop_unfinished_reply if unwritten else interruptions.abandon)(state)
        return replace(state, activity=Idle()), effects + more
    state, more = _take_up(state, data, at)
    return state, [*effects, *more]


def _take_up(state: State, data: Resumed, at: int) -> Transition:
    match state.activity:
        case Assembling(step=step):
            return state, [Assemble(step=step)]
        case AwaitingReply(step=step, attempt=attempt, failures=failures):
            state, effects = interruptions.drop_unfinished_reply(state)
            state, more = replies.send(state, step, attempt + 1, failures)
            return state, effects + more
        case Retrying(error=error) as waiting:
            return replies.wait_on(state, waiting, error, at)
        case Compacting() as activity:
            return compaction.take_up(state, activity)
        case AwaitingBudget() if not data.user_present:
            return _withdraw_questions(state)
        case AwaitingBudget():
            return state, _ask_again(state)
        case AwaitingHooks():
            return turn_end.ask_hooks(state)
        case Idle():
            state, effects = interruptions.resume(state, keeps=data.keeps is True)
            more = _ask_again(state) if data.user_present else []
            if not data.user_present:
                state, more = _withdraw_questions(state)
            return state, effects + more


def _ask_again(state: State) -> list[Effect]:
    """Put the questions again that are about the turn; those about calls are put with their calls."""
    asked = (question for question in state.questions if not question.call_id)
    return [Notify(notification=QuestionAsked(question=question)) for question in asked]
