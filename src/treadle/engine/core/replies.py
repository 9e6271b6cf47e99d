"""The model's side: context, request, reply, failure, retry, overflow."""

from treadle.engine.core import checklist, room, texts
from treadle.engine.core.budgets import Ask, Send, Stop, bill, check_budgets
from treadle.engine.core.interruptions import drop_unfinished_reply
from treadle.engine.core.machine_effects import CallModel, Effect, Notify, StartTimer, Transition
from treadle.engine.core.state import (
    AwaitingBudget,
    AwaitingReply,
    Idle,
    Retrying,
    State,
    replace,
    with_model,
)
from treadle.engine.core.turns import end_turn, mistaken
from treadle.protocol.events import Answer, ContextReady, ReplyFailed, ReplyFinished
from treadle.protocol.messages import Thinking, text_of
from treadle.protocol.models import ErrorKind, ModelChoice, ModelError, RefusedPart, Spent, ToolProtocol
from treadle.protocol.notifications import (
    MessageDone,
    ModelChanged,
    Notice,
    QuestionAsked,
    ReplyDropped,
    RetryScheduled,
    TurnStop,
)
from treadle.protocol.permissions import OptionKind, Question, QuestionKind

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0
_BEFORE_FALLBACK = 2
"""Failures in a row after which the fallback model takes over."""
_EMPTY_RETRIES = 1
"""How often a request is sent again, as it was, after a reply with nothing in it; then the model is told."""
_MOST_REFUSED = 6
"""Times that a request is sent again without a part that was refused: one for each kind of part, and one to spare."""
_LONGEST_WAIT = 10.0
"""Seconds; a provider that wants a longer pause is replaced at once where there is a fallback."""


def context_ready(state: State, data: ContextReady) -> Transition:
    """The user message is sealed: send the request."""
    state = replace(checklist.mark_read(state), calls=(), unread=(), delivering=(), notes=())
    state = replace(state, money=replace(state.money, terms=data.terms))
    return send(state, data.step, attempt=1)


def send(state: State, step: int, attempt: int, failures: int = 0) -> Transition:
    """Send the request if what it can cost at worst fits into the budgets; else ask, or end the turn resumably."""
    fits = Send(None, Spent()) if state.money.terms is None else check_budgets(state, state.money.terms)
    match fits:
        case Send(reply_tokens=reply_tokens):
            activity = AwaitingReply(step=step, attempt=attempt, failures=failures)
            state = replace(state, activity=activity, money=replace(state.money, reply_tokens=reply_tokens))
            return state, [CallModel(step=step, attempt=attempt)]
        case Ask(about=about, text=text, more=more) if state.user_present:
            options = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
            question = Question(id=f"q{state.seq}", kind=QuestionKind.BUDGET, text=text, options=options, more=more)
            held = AwaitingBudget(step=step, attempt=attempt, failures=failures, about=about)
            state = replace(state, activity=held, questions=(*state.questions, question))
            return state, [Notify(notification=QuestionAsked(question=question))]
        case Ask(text=why) | Stop(why=why):
            return end_turn(replace(state, activity=Idle()), TurnStop.BUDGET, why=why)


def budget_answered(state: State, held: AwaitingBudget, data: Answer) -> Transition:
    """Go on as the user says about money."""
    if data.option is not OptionKind.ALLOW_ONCE:
        return end_turn(state, TurnStop.BUDGET, why="the user did not want to spend more")
    state = replace(state, money=replace(state.money, agreed=state.money.agreed | {held.about}))
    return send(state, held.step, held.attempt, held.failures)


def reply_finished(state: State, data: ReplyFinished) -> Transition:
    """The reply counts from here on."""
    state = bill(state, data.usage, data.cost, known=data.usage.context_tokens > 0)
    assert state.turn is not None  # noqa: S101 - a reply belongs to a turn
    text = text_of(data.message.content)
    turn = replace(state.turn, text=text) if text.strip() else state.turn
    if any(isinstance(block, Thinking) and block.searched for block in data.message.content):
        turn = replace(turn, tainted=True)
    state = replace(state, activity=Idle(), reply=data.stop, hint=data.hint, turn=turn)
    done = MessageDone(step=data.step, message=data.message, usage=data.usage, cost=data.cost)
    return state, [Notify(notification=done)]


def reply_failed(state: State, data: ReplyFailed) -> Transition:
    """Nothing of the reply counts: try again, make room, or end the turn."""
    assert isinstance(state.activity, AwaitingReply)  # noqa: S101 - `advance` has checked it
    if data.left and not state.cancelling:
        return _left(state, state.activity, data)
    failures = state.activity.failures + 1
    state = bill(state, data.usage, data.cost)
    state, effects = drop_unfinished_reply(state)
    effects.append(Notify(notification=ReplyDropped(usage=data.usage, cost=data.cost, kept=data.partial)))
    state = replace(state, activity=Idle())
    if state.cancelling:
        return state, effects
    error = data.error
    if error.kind is ErrorKind.CONTEXT_TOO_LONG and room.can_begin(state):
        state = replace(
            state,
            space=replace(state.space, exceeded=0),
            model=replace(state.model, window=error.window or state.model.window),
        )
        state, more = room.begin_compaction(state, data.step, attempt=data.attempt)
        return state, effects + more
    if error.refused is not None and failures <= _MOST_REFUSED:
        state, more = _without_refused(state, error.refused)
        state, sent = send(state, data.step, data.attempt + 1, failures)
        return state, [*effects, *more, *sent]
    if state.model.fallback is not None and _should_fall_back(state, error, failures):
        state, more = _use_fallback(state, state.model.fallback, error)
        state, sent = send(state, data.step, data.attempt + 1)
        return state, [*effects, *more, *sent]
    if error.kind is ErrorKind.EMPTY_REPLY and failures > _EMPTY_RETRIES:
        state, more = mistaken(state, texts.EMPTY_REPLY)
        return state, effects + more
    if error.retryable and failures <= _most_retries(state, error):
        return _retry(state, data, failures, effects)
    if error.kind is ErrorKind.CONTEXT_TOO_LONG:
        error = replace(error, message=room.with_largest(state, f"{error.message} Making room did not help."))
    state, more = end_turn(state, TurnStop.ERROR, error=error)
    return state, effects + more


def _left(state: State, waiting: AwaitingReply, data: ReplyFailed) -> Transition:
    """Count what was used; the request waits, as after a failure, for the session to be taken up."""
    state, effects = drop_unfinished_reply(bill(state, data.usage, data.cost))
    timer = f"left-{data.step}-{data.attempt}"
    activity = Retrying(step=data.step, attempt=data.attempt + 1, failures=waiting.failures, timer=timer)
    dropped = ReplyDropped(usage=data.usage, cost=data.cost)
    return replace(state, activity=activity), [*effects, Notify(notification=dropped)]


def _most_retries(state: State, error: ModelError) -> int:
    """Say how often in a row a failed call is tried again: as often as the session lets, and as is of use."""
    most = state.limits.max_retries
    return most if error.retries is None else min(most, error.retries)


def _without_refused(state: State, part: RefusedPart) -> Transition:
    """Go on without what the provider refused: a line stands in its place, or calls are written as text."""
    if part is not RefusedPart.TOOLS:
        return state, [Notify(notification=Notice(text=texts.LEFT_OUT[part]))]
    choice = replace(state.choice, tool_protocol=ToolProtocol.XML)
    changed = ModelChanged(model=choice.model, why=texts.TOOLS_REFUSED)
    return with_model(state, choice), [Notify(notification=changed)]


def _should_fall_back(state: State, error: ModelError, failures: int) -> bool:
    """Whether the chosen model's provider is to be left alone for the rest of the turn."""
    if state.model.replaced is not None:
        return False
    if error.kind is ErrorKind.BALANCE:
        return True
    return error.retryable and (failures >= _BEFORE_FALLBACK or (error.retry_after or 0.0) > _LONGEST_WAIT)


def _use_fallback(state: State, fallback: ModelChoice, error: ModelError) -> Transition:
    chosen = state.choice
    notice = ModelChanged(
        model=fallback.model, why=f"{chosen.model} keeps failing ({error.message}); {fallback.model} takes over"
    )
    state = with_model(state, fallback)
    return replace(state, model=replace(state.model, replaced=chosen)), [Notify(notification=notice)]


def _retry(state: State, data: ReplyFailed, failures: int, effects: list[Effect]) -> Transition:
    seconds = _delay(failures, data.error.retry_after, data.jitter)
    timer = f"retry-{data.step}-{data.attempt}"
    activity = Retrying(step=data.step, attempt=data.attempt + 1, failures=failures, timer=timer)
    notice = RetryScheduled(attempt=failures, seconds=seconds, error=data.error, most=_most_retries(state, data.error))
    return replace(state, activity=activity), [
        *effects,
        Notify(notification=notice),
        StartTimer(timer=timer, seconds=seconds),
    ]


def _delay(failures: int, retry_after: float | None, jitter: float) -> float:
    """Exponential with full jitter; what the server asks for is the least, up to the cap."""
    ceiling = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** (failures - 1))
    if retry_after is None:
        return ceiling * (0.5 + jitter / 2)
    return min(_LONGEST_DELAY, max(0.0, retry_after) + jitter * min(1.0, ceiling))


def retry_now(state: State) -> Transition:
    """The wait is over."""
    assert isinstance(state.activity, Retrying)  # noqa: S101 - `advance` has checked it
    waiting = state.activity
    return send(state, waiting.step, waiting.attempt, waiting.failures)
