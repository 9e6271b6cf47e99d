"""The model's side: context, request, reply, failure, retry, overflow."""

from math import ceil

from treadle.engine.core import checklist, room, texts
from treadle.engine.core.budgets import Ask, Send, Stop, bill, check_budgets
from treadle.engine.core.interruptions import drop_unfinished_reply
from treadle.engine.core.machine_effects import CallModel, Cancel, Effect, Notify, StartTimer, Transition, timer_work
from treadle.engine.core.state import (
    AwaitingBudget,
    AwaitingReply,
    Idle,
    Retrying,
    State,
    replace,
    with_model,
)
from treadle.engine.core.turn_end import end_turn
from treadle.engine.core.turns import mistaken
from treadle.protocol.events import Answer, ContextReady, ReplyFailed, ReplyFinished
from treadle.protocol.messages import Thinking, text_of
from treadle.protocol.models import ErrorKind, ModelChoice, ModelError, RefusedPart, ReplyStop, Spent, ToolProtocol
from treadle.protocol.notifications import (
    MessageDone,
    ModelChanged,
    Notice,
    QuestionAsked,
    ReplyDropped,
    RetryScheduled,
    TurnStop,
)
from treadle.protocol.permissions import WAIT_FOR, OptionKind, Question, QuestionKind
from treadle.protocol.tools import Flow

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0
"""Seconds; a longer wait is one for a limit's reset, which needs the user's word."""
_BRIDGED = 300.0
"""Seconds; trying again bridges a limit that resets sooner, so nobody is asked about it."""
_MOST_WAITS = 6
"""Waits in a row after which a provider that still takes nothing is given up."""

_NO_RESET = "The provider does not say when its limit resets, so nothing waits for that."
_GIVEN_UP = "Its limit did not reset when it said."
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


def budget_answered(state: State, held: AwaitingBudget, data: Answer, at: int) -> Transition:
    """Go on as the user says about money, or about waiting for a limit's reset."""
    if held.error is not None and data.option is OptionKind.ALLOW_ONCE:
        return wait_on(state, _waiting(held.step, held.attempt - 1, held.failures, held.until), held.error, at)
    if held.error is not None:
        return unagreed(state, held)
    if data.option is not OptionKind.ALLOW_ONCE:
        return end_turn(state, TurnStop.BUDGET, why="the user did not want to spend more")
    state = replace(state, money=replace(state.money, agreed=state.money.agreed | {held.about}))
    return send(state, held.step, held.attempt, held.failures)


def unagreed(state: State, held: AwaitingBudget) -> Transition:
    """End the turn where nobody is there to agree to what its request waits for, or who is does not."""
    if held.error is not None:
        return end_turn(replace(state, activity=Idle()), TurnStop.ERROR, error=held.error)
    return end_turn(state, TurnStop.BUDGET, why="nobody is here to agree to what it costs")


def reply_finished(state: State, data: ReplyFinished) -> Transition:
    """The reply counts from here on."""
    state = bill(state, data.usage, data.cost, known=data.usage.context_tokens > 0)
    assert state.turn is not None  # noqa: S101 - a reply belongs to a turn
    text = text_of(data.message.content)
    whole = f"{state.cut}{text}"
    turn = replace(state.turn, text=whole) if text.strip() else state.turn
    goes_on = data.stop is ReplyStop.MAX_TOKENS and not state.calls and state.limits.joins_cut is True
    works = any(call.traits.flow is not Flow.END_TURN for call in state.calls)
    state = replace(state, cut=whole if goes_on else "", returns=0 if works else state.returns)
    if any(isinstance(block, Thinking) and block.searched for block in data.message.content):
        turn = replace(turn, tainted=True)
    state = replace(state, activity=Idle(), reply=data.stop, hint=data.hint, turn=turn)
    done = MessageDone(step=data.step, message=data.message, usage=data.usage, cost=data.cost)
    return state, [Notify(notification=done)]


def reply_failed(state: State, data: ReplyFailed, at: int) -> Transition:
    """Nothing of the reply counts: try again, wait, make room, or end the turn; `at` is in milliseconds since 1970."""
    assert isinstance(state.activity, AwaitingReply)  # noqa: S101 - `advance` has checked it
    if data.left and not state.cancelling:
        return _left(state, state.activity, data)
    failures = state.activity.failures + (not data.error.paced)
    state = bill(state, data.usage, data.cost)
    state, effects = drop_unfinished_reply(state)
    effects.append(Notify(notification=ReplyDropped(usage=data.usage, cost=data.cost, kept=data.partial)))
    state = replace(state, activity=Idle())
    if state.cancelling:
        return state, effects
    error = data.error
    if error.kind is ErrorKind.BUDGET:
        state, more = end_turn(state, TurnStop.BUDGET, why=error.message)
        return state, effects + more
    if error.kind is ErrorKind.CONTEXT_TOO_LONG and room.can_begin(state):
        state = replace(
            state,
            space=replace(state.space, exceeded=0),
            model=replace(state.model, window=error.window or state.model.window),
        )
        state, more = room.begin_compaction(state, data.step, data.attempt, error)
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
    if (again := _again(state, data, failures, at)) is not None:
        return again[0], effects + again[1]
    if error.kind is ErrorKind.CONTEXT_TOO_LONG:
        error = replace(error, message=room.with_largest(state, f"{error.message} Making room did not help."))
    state, more = end_turn(state, TurnStop.ERROR, error=_without_reset(state, error))
    return state, effects + more


def _again(state: State, data: ReplyFailed, failures: int, at: int) -> Transition | None:
    """Try again in a moment or when a limit resets, or ask whether to; None where the turn does not go on like that."""
    until = at + round(((data.error.retry_after or 0.0) + data.jitter) * 1000)
    waiting = _waiting(data.step, data.attempt, failures, until)
    if _waits_for_reset(state, data.error, failures):
        return _wait_for_reset(state, waiting, data.error, at)
    if _is_wait_offered(state, data.error, failures):
        return _offer_wait(state, waiting, data.error)
    tries = data.error.paced or (data.error.retryable and failures <= _most_retries(state, data.error))
    return _retry(state, data, failures) if tries else None


def _waiting(step: int, attempt: int, failures: int, until: int = 0) -> Retrying:
    """Give the wait behind an attempt that failed."""
    timer = f"retry-{step}-{attempt}"
    return Retrying(step=step, attempt=attempt + 1, failures=failures, timer=timer, until=until)


def wait_on(state: State, waiting: Retrying, error: ModelError | None, at: int) -> Transition:
    """Go on waiting until a limit resets, as long as that moment is to come; else send the request."""
    if error is not None and waiting.until > at:
        return _wait_for_reset(state, waiting, error, at)
    return send(state, waiting.step, waiting.attempt, waiting.failures)


def chosen(state: State, notices: list[Effect]) -> Transition:
    """Go on at once with another model or key where the present one's limit is waited for."""
    waiting = state.activity
    if not isinstance(waiting, Retrying) or not waiting.until:
        return state, notices
    state, sent = send(state, waiting.step, waiting.attempt)
    return state, [*notices, Cancel(work=timer_work(waiting.timer)), *sent]


def _left(state: State, waiting: AwaitingReply, data: ReplyFailed) -> Transition:
    """Count what was used; the request waits, as after a failure, for the session to be taken up."""
    state, effects = drop_unfinished_reply(bill(state, data.usage, data.cost))
    timer = f"left-{data.step}-{data.attempt}"
    activity = Retrying(step=data.step, attempt=data.attempt + 1, failures=waiting.failures, timer=timer)
    dropped = ReplyDropped(usage=data.usage, cost=data.cost, kept=data.partial, left=True)
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
    if state.model.replaced is not None or error.paced:
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


def _retry(state: State, data: ReplyFailed, failures: int) -> Transition:
    seconds = _delay(failures, data.error.retry_after, data.jitter)
    activity, most = _waiting(data.step, data.attempt, failures), _most_retries(state, data.error)
    if data.error.paced:
        most = 0
    notice = RetryScheduled(attempt=failures, seconds=seconds, error=data.error, most=most)
    return replace(state, activity=activity), [
        Notify(notification=notice),
        StartTimer(timer=activity.timer, seconds=seconds),
    ]


def _delay(failures: int, retry_after: float | None, jitter: float) -> float:
    """Exponential with full jitter; what the server asks for is the least, up to the cap."""
    ceiling = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** (failures - 1))
    if retry_after is None:
        return ceiling * (0.5 + jitter / 2)
    return min(_LONGEST_DELAY, max(0.0, retry_after) + jitter * min(1.0, ceiling))


def _waits_for_reset(state: State, error: ModelError, failures: int) -> bool:
    """Whether the turn waits until the limit resets, as the user wants it."""
    return state.limits.wait_for_reset is True and _limited(error, _LONGEST_DELAY) and failures <= _most_waits(state)


def _is_wait_offered(state: State, error: ModelError, failures: int) -> bool:
    """Whether the user is asked to wait: one who is there, and whom no setting has answered for."""
    offers = state.limits.wait_for_reset is False and state.user_present
    return offers and _limited(error, _BRIDGED) and failures <= _most_waits(state)


def _without_reset(state: State, error: ModelError) -> ModelError:
    """Say of a limit that ends a turn why the turn does not wait, although it should."""
    if state.limits.wait_for_reset is not True or error.kind is not ErrorKind.RATE_LIMIT:
        return error
    why = _NO_RESET if error.retry_after is None else _GIVEN_UP if _limited(error, _LONGEST_DELAY) else ""
    return replace(error, message=f"{error.message} {why}") if why else error


def _offer_wait(state: State, waiting: Retrying, error: ModelError) -> Transition:
    """Ask the user whether to wait for the moment of `waiting`."""
    words = _span(error.retry_after or 0.0)
    text = f"The limit of {state.choice.model.partition('/')[0]} resets in {words}. Wait for that, and continue then?"
    text = f"{text}\n{error.message}\nwait_for_reset = true in your settings waits without asking."
    options = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
    question = Question(
        id=f"q{state.seq}", kind=QuestionKind.BUDGET, text=text, options=options, more=f"{WAIT_FOR}{words}"
    )
    held = AwaitingBudget(
        step=waiting.step,
        attempt=waiting.attempt,
        failures=waiting.failures,
        about="reset",
        until=waiting.until,
        error=error,
    )
    state = replace(state, activity=held, questions=(*state.questions, question))
    return state, [Notify(notification=QuestionAsked(question=question))]


def _wait_for_reset(state: State, waiting: Retrying, error: ModelError, at: int) -> Transition:
    """Wait until the moment of `waiting`; it is `at` now (both in milliseconds since 1970)."""
    seconds = max(0, waiting.until - at) / 1000
    notice = RetryScheduled(attempt=waiting.failures, seconds=seconds, error=error, until=waiting.until)
    return replace(state, activity=replace(waiting, error=error)), [
        Notify(notification=notice),
        StartTimer(timer=waiting.timer, seconds=seconds),
    ]


def _limited(error: ModelError, longer: float) -> bool:
    return error.kind is ErrorKind.RATE_LIMIT and (error.retry_after or 0.0) > longer


def _most_waits(state: State) -> int:
    return max(_MOST_WAITS, state.limits.max_retries)


def _span(seconds: float) -> str:
    """Write a long time so that a person can plan with it: 45 min, 2 h 5 min."""
    hours, minutes = divmod(ceil(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours and minutes else f"{hours} h" if hours else f"{minutes} min"


def retry_now(state: State) -> Transition:
    """The wait is over."""
    assert isinstance(state.activity, Retrying)  # noqa: S101 - `advance` has checked it
    waiting = state.activity
    return send(state, waiting.step, waiting.attempt, waiting.failures)
