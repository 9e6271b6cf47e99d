"""The model's side: context, request, reply, failure, retry, overflow."""

from treadle.engine.calls import Moved, drop_unfinished_reply
from treadle.engine.effects import Assemble, CallModel, Compact, Effect, Notify, StartTimer
from treadle.engine.state import Assembling, AwaitingReply, Compacting, Idle, Retrying, State, replace
from treadle.engine.turns import end_turn
from treadle.protocol.events import Compacted, ContextExceeded, ContextReady, ReplyFailed, ReplyFinished
from treadle.protocol.messages import text_of
from treadle.protocol.models import ErrorKind, ModelError, Usage
from treadle.protocol.notifications import ContextCompacted, MessageDone, ReplyDropped, RetryScheduled, TurnStop

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0


def context_ready(state: State, data: ContextReady) -> Moved:
    """The user message is sealed: send the request."""
    state = replace(state, calls=(), delivering=(), notes=(), activity=AwaitingReply(step=data.step, attempt=1))
    return state, [CallModel(step=data.step, attempt=1)]


def context_exceeded(state: State, data: ContextExceeded) -> Moved:
    """The conversation does not fit: make room once."""
    if not state.compacted:
        return replace(state, activity=Compacting(step=data.step, attempt=0), compacted=True), [Compact(step=data.step)]
    return end_turn(state, TurnStop.ERROR, error=_too_long(f"{data.tokens} tokens for a window of {data.window}"))


def compacted(state: State, data: Compacted) -> Moved:
    """Room was made, or there was none to make."""
    assert isinstance(state.activity, Compacting)  # noqa: S101 - `advance` has checked it
    attempt = state.activity.attempt
    if data.dropped == 0:
        return end_turn(state, TurnStop.ERROR, error=_too_long("nothing is left that could be taken out"))
    told: list[Effect] = [Notify(notification=ContextCompacted(dropped=data.dropped))]
    if attempt == 0:
        return replace(state, activity=Assembling(step=data.step)), [*told, Assemble(step=data.step)]
    state = replace(state, activity=AwaitingReply(step=data.step, attempt=attempt + 1))
    return state, [*told, CallModel(step=data.step, attempt=attempt + 1)]


def _too_long(why: str) -> ModelError:
    return ModelError(
        kind=ErrorKind.CONTEXT_TOO_LONG,
        message=(
            f"The conversation is too long for the model ({why}). "
            "Start a new session, or choose a model with a larger window."
        ),
    )


def reply_finished(state: State, data: ReplyFinished) -> Moved:
    """The reply counts from here on."""
    state = _bill(state, data.usage, data.cost)
    assert state.turn is not None  # noqa: S101 - a reply belongs to a turn
    text = text_of(data.message.content)
    turn = replace(state.turn, text=text) if text.strip() else state.turn
    state = replace(state, activity=Idle(), reply=data.stop, turn=turn)
    done = MessageDone(step=data.step, message=data.message, usage=data.usage, cost=data.cost)
    return state, [Notify(notification=done)]


def reply_failed(state: State, data: ReplyFailed) -> Moved:
    """Nothing of the reply counts: try again, make room, or end the turn."""
    assert isinstance(state.activity, AwaitingReply)  # noqa: S101 - `advance` has checked it
    failures = state.activity.failures + 1
    state = _bill(state, data.usage, data.cost)
    state, effects = drop_unfinished_reply(state)
    effects.append(Notify(notification=ReplyDropped()))
    state = replace(state, activity=Idle())
    if state.cancelling:
        return state, effects
    error = data.error
    if error.kind is ErrorKind.CONTEXT_TOO_LONG and not state.compacted:
        state = replace(state, activity=Compacting(step=data.step, attempt=data.attempt), compacted=True)
        return state, [*effects, Compact(step=data.step)]
    if error.retryable and failures <= state.limits.max_retries:
        return _retry(state, data, failures, effects)
    state, more = end_turn(state, TurnStop.ERROR, error=error)
    return state, effects + more


def _retry(state: State, data: ReplyFailed, failures: int, effects: list[Effect]) -> Moved:
    seconds = _delay(failures, data.error.retry_after, data.jitter)
    timer = f"retry-{data.step}-{data.attempt}"
    activity = Retrying(step=data.step, attempt=data.attempt + 1, failures=failures, timer=timer)
    told = RetryScheduled(attempt=failures, seconds=seconds, error=data.error)
    return replace(state, activity=activity), [
        *effects,
        Notify(notification=told),
        StartTimer(timer=timer, seconds=seconds),
    ]


def _delay(failures: int, retry_after: float | None, jitter: float) -> float:
    """Exponential with full jitter; what the server asks for is the least, up to the cap."""
    ceiling = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** (failures - 1))
    if retry_after is None:
        return ceiling * (0.5 + jitter / 2)
    return min(_LONGEST_DELAY, max(0.0, retry_after) + jitter * min(1.0, ceiling))


def retry_now(state: State) -> Moved:
    """The wait is over."""
    assert isinstance(state.activity, Retrying)  # noqa: S101 - `advance` has checked it
    waiting = state.activity
    activity = AwaitingReply(step=waiting.step, attempt=waiting.attempt, failures=waiting.failures)
    return replace(state, activity=activity), [CallModel(step=waiting.step, attempt=waiting.attempt)]


def _bill(state: State, usage: Usage, cost: float | None) -> State:
    turn = state.turn
    if turn is None:
        return state
    total = None if cost is None or turn.cost is None else turn.cost + cost
    return replace(state, turn=replace(turn, usage=turn.usage + usage, cost=total))
