"""What the machine said and decided while it took an event, as events of its own that the log keeps.

The machine's words and rules may change with every version; these events are what a later one goes by.
"""

from collections.abc import Iterator, Sequence

import msgspec

from treadle.engine.core.calls import find
from treadle.engine.core.machine_effects import Effect, Notify
from treadle.engine.core.state import State, replace
from treadle.protocol.checkpoints import Rewound
from treadle.protocol.errors import StoreError
from treadle.protocol.events import CallFinished, CallJudged, ContextReady, Event
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    ChecklistChanged,
    ModelChanged,
    Notification,
    PromptDelivered,
    QuestionAsked,
    RetryScheduled,
    TurnEnded,
    TurnStarted,
)
from treadle.protocol.permissions import Decision, Question
from treadle.protocol.sealed import (
    ChecklistUpdated,
    ModelReplaced,
    PromptsDelivered,
    QuestionPut,
    ResultMade,
    RetryPlanned,
    Sealed,
    StateSealed,
    TurnSettled,
)
from treadle.protocol.tools import CallResult

STEPS_BETWEEN_STATES = 50


def sealed(before: State, event: Event, after: State, effects: Sequence[Effect]) -> Iterator[Sealed]:
    """Give the events that belong behind this one, in the order in which surfaces are notified."""
    turn = before.turns
    brought = event.data.result if isinstance(event.data, CallFinished) else None
    known = {question.id for question in before.questions}
    for effect in effects:
        if not isinstance(effect, Notify):
            continue
        match effect.notification:
            case TurnStarted(turn=number):
                turn = number
            case PromptDelivered(prompt_id=prompt_id):
                yield PromptsDelivered(turn=turn, prompt_ids=(prompt_id,))
            case QuestionAsked(question=question) if question.id not in known:
                yield QuestionPut(question=_without_call(question, _judged(before, event, question.call_id)))
            case TurnEnded(outcome=outcome):
                yield TurnSettled(turn=turn, outcome=outcome, state=written(after))
            case notification:
                yield from _of_call_or_model(notification, brought)
    yield from _whole_state(event, after)


def _whole_state(event: Event, after: State) -> Iterator[Sealed]:
    """Write the state down after a way back, and now and then in a long turn: taking it up again stays quick."""
    match event.data:
        case ContextReady(step=step) if step % STEPS_BETWEEN_STATES == 0 and after.turn is not None:
            yield StateSealed(state=written(after))
        case Rewound():
            yield StateSealed(state=written(after))
        case _:
            return


def _of_call_or_model(notification: Notification, brought: CallResult | None) -> Iterator[Sealed]:
    match notification:
        case CallChanged(status=CallStatus.FINISHED, result=CallResult() as result) if result is not brought:
            yield ResultMade(call_id=notification.call.id, result=result)
        case RetryScheduled(attempt=attempt, seconds=seconds, most=most, until=until):
            yield RetryPlanned(attempt=attempt, seconds=seconds, most=most, until=until)
        case ModelChanged(model=model, why=why) if why:
            yield ModelReplaced(model=model, why=why)
        case ChecklistChanged(text=text):
            yield ChecklistUpdated(text=text)
        case _:
            return


def _judged(before: State, event: Event, call_id: str) -> Decision | None:
    """Give the decision about a call that the log has before the question about it."""
    if isinstance(event.data, CallJudged):
        return event.data.decision
    call = find(before, call_id)
    return None if call is None else call.decision


def _without_call(question: Question, known: Decision | None) -> Question:
    """Leave out what the events of the question's call say already."""
    if not question.call_id:
        return question
    return replace(
        question,
        preview=None,
        decision=None if question.decision == known else question.decision,
        accesses=(),
        arguments={},
        copy=None,
    )


def as_put(question: Question, put: Question) -> Question:
    """Give a question the words with which it was put."""
    decision = put.decision or question.decision
    return replace(question, text=put.text, options=put.options, more=put.more, decision=decision)


def written(state: State) -> dict[str, object]:
    """Write a state down whole, as the log keeps it."""
    builtins: dict[str, object] = msgspec.to_builtins(state, order="deterministic")
    return builtins


def read(builtins: dict[str, object]) -> State:
    """Read a state that was written down; raises `StoreError`."""
    try:
        return msgspec.convert(builtins, State)
    except msgspec.ValidationError as error:
        raise StoreError(
            "log-damaged",
            "The state at the end of a turn cannot be read.",
            why=str(error),
            fix="Update Treadle if the session was written with a newer version.",
        ) from error
