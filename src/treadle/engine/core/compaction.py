"""Room is being made in the model's window: the summary, its review, and how the work goes on."""

from collections.abc import Mapping

from treadle.engine.core import goal, replies, room, texts
from treadle.engine.core.budgets import bill
from treadle.engine.core.machine_effects import Assemble, Effect, Notify, Transition
from treadle.engine.core.state import Assembling, CallState, Compacting, Idle, State, replace
from treadle.engine.core.turn_end import end_turn
from treadle.protocol.events import Answer, Compacted, ContextExceeded, SummaryWritten
from treadle.protocol.messages import ResultContent
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import ContextCompacted, Notice, QuestionAsked, QuestionClosed, TurnStop
from treadle.protocol.permissions import Question, QuestionKind
from treadle.protocol.sealed import OF_SUMMARY, WRITTEN_SUMMARY, SideAnswered, SideAsked, used_outside


def context_exceeded(state: State, data: ContextExceeded) -> Transition:
    """The conversation does not fit: make room."""
    if room.can_begin(state):
        return room.begin_compaction(
            replace(state, space=replace(state.space, exceeded=data.tokens)), data.step, attempt=0
        )
    why = f"The conversation is too long for the model: {data.tokens:,} tokens for a window of {data.window:,}."
    return end_turn(state, TurnStop.ERROR, error=_too_long(state, why))


def summary_written(state: State, data: SummaryWritten) -> Transition:
    """The model wrote the summary, or could not: a person looks at it where one is there and wants to."""
    activity = _compacting(state)
    state = bill(_answered(state, OF_SUMMARY), data.usage, data.cost)
    activity = replace(activity, written=True, summary=data.text)
    state = replace(state, activity=activity)
    told: list[Effect] = []
    if state.turn is None and data.usage.context_tokens:
        told.append(Notify(notification=used_outside(WRITTEN_SUMMARY, data.usage, data.cost)))
    if data.error:
        told.append(Notify(notification=Notice(text=texts.no_summary(data.error))))
    if not data.error and room.is_reviewed(state, activity):
        state, more = room.review(state, data.text)
        return state, told + more
    return state, [*told, room.work_of(activity)]


def side_asked(state: State, data: SideAsked) -> Transition:
    """Note that the model is asked something: a program that is killed now has a call to pay for."""
    told: list[Effect] = [Notify(notification=one) for one in data.notices()]
    return replace(state, asked=(*state.asked, data.question)), told


def _answered(state: State, question: str) -> State:
    """Forget one of those that ask this; logs of before say only how they ended."""
    if question not in state.asked:
        return state
    at = state.asked.index(question)
    return replace(state, asked=(*state.asked[:at], *state.asked[at + 1 :]))


def side_answered(state: State, data: SideAnswered) -> Transition:
    """A question beside the work, or a summary that was cut, is billed; notices tell what no turn will."""
    state = _answered(state, data.question)
    working = state.turn is not None
    told: list[Effect] = [Notify(notification=one) for one in data.notices(working=working)]
    return bill(state, data.usage, data.cost), told


def summary_answered(state: State, question: Question, data: Answer) -> Transition:
    """Use the summary, do without it, or have it written once more as the user says."""
    activity = _compacting(state)
    use, without = question.options
    if data.text == without:
        activity = replace(activity, summary="")
    elif data.text != use:
        focus = f"{activity.focus}\n{data.text}".strip()
        activity = replace(activity, written=False, summary="", focus=focus)
    return replace(state, activity=activity), [room.work_of(activity)]


def take_up(state: State, activity: Compacting) -> Transition:
    """Go on after a restart, or when nobody is there any more to look at the summary."""
    asked = [question for question in state.questions if question.kind is QuestionKind.SUMMARY]
    if asked and state.user_present:
        return state, [Notify(notification=QuestionAsked(question=question)) for question in asked]
    state = replace(state, questions=tuple(one for one in state.questions if one not in asked))
    closed: list[Effect] = [Notify(notification=QuestionClosed(question_id=one.id)) for one in asked]
    return state, [*closed, room.work_of(activity)]


def _compacting(state: State) -> Compacting:
    assert isinstance(state.activity, Compacting)  # noqa: S101 - `advance` has checked it
    return state.activity


def compacted(state: State, data: Compacted) -> Transition:
    """Room was made, or there was none to make."""
    activity = _compacting(state)
    shorter = {one.call_id: one.content for one in data.shortened}
    summary = activity.summary if data.dropped and activity.summary else state.space.summary
    state = replace(state, space=replace(state.space, largest=data.largest, summary=summary))
    state = replace(state, calls=tuple(_shortened(call, shorter) for call in state.calls))
    if data.dropped:
        state = goal.remind_model(state)
    nothing = data.dropped == 0 and not shorter
    if nothing and not activity.wanted and not _shorter_reply_is_left(state, activity.error):
        said = "" if activity.error is None else f" {activity.error.message}"
        why = f"The conversation is too long for the model, and nothing more can be left out.{said}"
        return end_turn(state, TurnStop.ERROR, error=_too_long(state, why))
    told: list[Effect] = []
    if nothing and activity.wanted:
        told.append(Notify(notification=Notice(text=texts.NOTHING_TO_LEAVE_OUT)))
    if not nothing:
        made = ContextCompacted(dropped=data.dropped, summary=data.summary, before=data.before, after=data.after)
        told.append(Notify(notification=made))
    if state.turn is None:
        return replace(state, activity=Idle()), told
    if activity.attempt == 0:
        return replace(state, activity=Assembling(step=data.step)), [*told, Assemble(step=data.step)]
    state, effects = replies.send(state, data.step, activity.attempt + 1)
    return state, told + effects


def _shorter_reply_is_left(state: State, error: ModelError | None) -> bool:
    """Whether the first refusal of a step's request named the window: it bounds the reply of the next."""
    return error is not None and error.window is not None and state.space.compactions == 1


def _shortened(call: CallState, contents: Mapping[str, tuple[ResultContent, ...]]) -> CallState:
    if call.result is None or call.call.id not in contents:
        return call
    return replace(call, result=replace(call.result, content=contents[call.call.id]))


def _too_long(state: State, why: str) -> ModelError:
    return ModelError(kind=ErrorKind.CONTEXT_TOO_LONG, message=room.with_largest(state, why))
