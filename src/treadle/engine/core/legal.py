"""Which events are legal when. Everything else is refused with the reason, never ignored."""

from typing import assert_never

from treadle.engine.core import goal
from treadle.engine.core.calls import find
from treadle.engine.core.machine_effects import turn_timer
from treadle.engine.core.state import (
    Assembling,
    AwaitingHooks,
    AwaitingReply,
    Compacting,
    Retrying,
    State,
    is_beside,
    phase,
)
from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored, Rewound
from treadle.protocol.children import ChildEnded, ChildMerges, ChildStarted
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import (
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
    EventData,
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
from treadle.protocol.notifications import CallStatus
from treadle.protocol.permissions import CallAsked, Mode, OptionKind, QuestionKind
from treadle.protocol.sealed import (
    ChecklistUpdated,
    ModelReplaced,
    PromptsDelivered,
    QuestionPut,
    ResultMade,
    RetryPlanned,
    Sealed,
    SideAnswered,
    SideAsked,
    StateSealed,
    TurnSettled,
)

_WITH_ARGUMENTS = (QuestionKind.PERMISSION, QuestionKind.ELICITATION)


def refuse_illegal(state: State, event: Event) -> None:
    """Raise `RefusedError` if the event cannot be taken in this state."""
    why = _why_not(state, event)
    if why:
        raise RefusedError(type(event.data).__name__, phase(state), why)


def _why_not(state: State, event: Event) -> str:
    # What follows on its cause in a log of an older schema has no number of its own.
    if event.seq < state.seq or (event.seq == state.seq and not isinstance(event.data, Sealed)):
        return f"its number {event.seq} is not after {state.seq}"
    if isinstance(event.data, SessionStarted):
        return "the session has already started" if state.session_id else ""
    if not state.session_id:
        return "the session has not started"
    return _objection(state, event.data)


def _objection(state: State, data: EventData) -> str:  # noqa: C901, PLR0911, PLR0912 - one line for each event
    match data:
        case SideAsked() | SideAnswered() | Resumed():
            return ""
        case GoalChecked():
            return "" if goal.is_due(state) else "no goal is being checked"
        case Restored(checkpoint=n):
            going_on = state.files.restoring
            return "" if going_on is not None and going_on.checkpoint == n else "nothing is being restored"
        case Rewound(to=to):
            return _rewind(state, to)
        case CheckpointTaken(n=n):
            return "" if n == state.files.taken + 1 else f"the next checkpoint is number {state.files.taken + 1}"
        case OfferChanged(step=step):
            fits = isinstance(state.activity, AwaitingReply) and state.activity.step == step
            return "" if fits else "no request of this step is being made"
        case ContextReady(step=step) | ContextExceeded(step=step):
            return "" if state.activity == Assembling(step=step) else "this step is not being assembled"
        case SummaryWritten(step=step) | Compacted(step=step):
            held = not all(map(is_beside, state.questions))
            fits = isinstance(state.activity, Compacting) and state.activity.step == step and not held
            return "" if fits else "this step is not being compacted"
        case CallProposed():
            return _reply(state, data.step, data.attempt) or _new_call(state, data.call.id)
        case ReplyFinished() | ReplyFailed() | ReplyPart():
            return _reply(state, data.step, data.attempt)
        case CallJudged(call_id=call_id):
            return _call(state, call_id, CallStatus.JUDGING)
        case CallStarted(call_id=call_id):
            return _call(state, call_id, CallStatus.STARTING, *_started_before(state, call_id))
        case CallAsked():
            return _asked(state, data)
        case ChildStarted() | ChildMerges() | ChildEnded():
            return _child(state, data)
        case CallFinished(call_id=call_id):
            return _call(state, call_id, CallStatus.RUNNING, CallStatus.JUDGING)
        case TurnMayEnd():
            return (
                "" if isinstance(state.activity, AwaitingHooks) and not state.cancelling else "no turn is about to end"
            )
        case TimerFired(timer=timer):
            return "" if _timer_runs(state, timer) else "no such timer runs"
        case ResultMade(call_id=call_id):
            known = call_id in state.unread or find(state, call_id) is not None
            return "" if known else "no such call is open"
        case QuestionPut(question=question):
            known = any(one.id == question.id for one in state.questions)
            return "" if known else "no such question is open"
        case PromptsDelivered() | RetryPlanned() | ModelReplaced() | ChecklistUpdated() | TurnSettled() | StateSealed():
            return ""
        case SessionStarted():
            return "the session has already started"
        case op:
            return _objection_to_op(state, op)


def _objection_to_op(state: State, op: Op) -> str:  # noqa: C901 - one line for each op
    match op:
        case Prompt(id=prompt_id, content=content):
            return _prompt(state, prompt_id, empty=not content)
        case EditQueued(prompt_id=prompt_id) | MoveQueued(prompt_id=prompt_id):
            waits = any(waiting.prompt.id == prompt_id for waiting in (*state.queue, *state.held))
            return "" if waits else "the prompt is no longer queued"
        case Answer():
            return _answer(state, op)
        case Interrupt():
            if state.turn is None and not isinstance(state.activity, Compacting):
                return "nothing is running"
            return "it is being interrupted already" if state.cancelling else ""
        case SetMode() | SetModel() | SetFallback() | SetLimits() | SetPresence() | EditChecklist() | Noted():
            return ""
        case CompactNow():
            return _room(state)
        case Pin(id=pin_id, text=text):
            known = text or any(one.id == pin_id for one in state.space.pins)
            return "" if known else "nothing with this id is pinned"
        case Restore() as wanted:
            return _restore(state, wanted)
        case SetGoal(condition=condition):
            return "" if condition or state.goal else "there is no goal"
        case RevokeAllowance(allowance_id=allowance_id):
            known = any(allowance.id == allowance_id for allowance in state.allowances)
            return "" if known else "nothing with this id is allowed for this session"
        case _:
            assert_never(op)


def _room(state: State) -> str:
    if state.turns == 0:
        return "there is no message yet"
    return "room is being made already" if isinstance(state.activity, Compacting) else ""


def _restore(state: State, wanted: Restore) -> str:
    if state.files.restoring is not None:
        return "something is being restored already"
    if wanted.checkpoint > state.files.taken or (wanted.checkpoint < 1 and (wanted.files or not wanted.to)):
        return f"there is no checkpoint {wanted.checkpoint}"
    return _busy(state)


def _rewind(state: State, to: int) -> str:
    return _busy(state) if 1 <= to <= state.seq else "there is no such event before"


def _busy(state: State) -> str:
    if state.turn is not None or isinstance(state.activity, Compacting):
        return "a turn is going on: interrupt it first"
    return "a message waits: drop it first" if state.queue else ""


def _timer_runs(state: State, timer: str) -> bool:
    if isinstance(state.activity, Retrying) and state.activity.timer == timer:
        return True
    if state.turn is None or timer != turn_timer(state.turn.number):
        return False
    return not state.cancelling and not state.asked_at


def _prompt(state: State, prompt_id: str, *, empty: bool) -> str:
    if empty:
        return "it is empty"
    waits = any(waiting.prompt.id == prompt_id for waiting in (*state.queue, *state.held))
    unread = any(prompt.id == prompt_id for prompt in state.delivering)
    return "a prompt with this id is already queued" if waits or unread else ""


def _answer(state: State, data: Answer) -> str:
    question = next((question for question in state.questions if question.id == data.question_id), None)
    if question is None:
        return "this question was already answered or withdrawn"
    has_run = question.denial is not None or question.copy is not None
    if data.arguments is not None and (has_run or question.kind not in _WITH_ARGUMENTS):
        return "there are no arguments to change"
    if data.arguments is not None and data.option not in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS):
        return "only a call that is allowed can be changed"
    if question.kind in (*_WITH_ARGUMENTS, QuestionKind.BUDGET):
        return "" if data.option in question.options else f"{data.option} is not among the offered options"
    return "" if data.option is OptionKind.ANSWER else "this question needs an answer in words"


def _asked(state: State, data: CallAsked) -> str:
    known = any(question.id == data.question_id for question in state.questions)
    if not data.text:
        return "" if known else "this question was already answered or withdrawn"
    if known or state.cancelling:
        return "there is such a question already" if known else "it is being interrupted"
    call = find(state, data.call_id)
    if data.after:
        return "" if call is None or call.finished else "its call is not over"
    return _call(state, data.call_id, CallStatus.RUNNING)


def _child(state: State, data: ChildStarted | ChildMerges | ChildEnded) -> str:
    known = next((one for one in state.children if one.started.session_id == data.session_id), None)
    if isinstance(data, ChildStarted):
        return "there is such a subagent already" if known else _call(state, data.call_id, CallStatus.RUNNING)
    if isinstance(data, ChildMerges) and data.over is (data.session_id not in state.merging):
        return "its changes come in already, or do not"
    return "no such subagent is going on" if known is None or known.ended is not None else ""


def _reply(state: State, step: int, attempt: int) -> str:
    match state.activity:
        case AwaitingReply(step=awaited, attempt=number) if (awaited, number) == (step, attempt):
            return ""
        case _:
            return "no such reply is expected"


def _new_call(state: State, call_id: str) -> str:
    return "" if find(state, call_id) is None else "a call with this id already exists"


def _started_before(state: State, call_id: str) -> tuple[CallStatus, ...]:
    """Give the other status from which a call may start: in older logs a yes in plan mode ran it at once."""
    call = find(state, call_id)
    older = call is not None and call.decision is not None and state.mode is Mode.PLAN
    return (CallStatus.JUDGING,) if older else ()


def _call(state: State, call_id: str, *wanted: CallStatus) -> str:
    call = find(state, call_id)
    if call is None:
        return "no such call is open"
    return "" if call.status in wanted else f"the call is {call.status}"
