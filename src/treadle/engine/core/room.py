"""What begins that room is made in the model's window, and what stays in it for good."""

from treadle.engine.core import texts
from treadle.engine.core.machine_effects import MakeRoom, Notify, Transition
from treadle.engine.core.state import CallState, Compacting, State, replace, with_note
from treadle.protocol.events import CompactNow, Pin
from treadle.protocol.models import ModelError
from treadle.protocol.notifications import QuestionAsked
from treadle.protocol.permissions import Mode, Question, QuestionKind
from treadle.protocol.tools import Flow, Preview

_REVIEWED = (Mode.PLAN, Mode.ASK)
"""Modes in which a person who is there sees a summary before it is used, also where they did not ask for it."""

_MOST = 3
"""Times that room is made for one step."""


def can_begin(state: State) -> bool:
    """Whether room may be made once more for this step."""
    return state.space.compactions < _MOST


def begin_compaction(state: State, step: int, attempt: int, error: ModelError | None = None) -> Transition:
    """Make room for a request; `attempt` is that of the one which was refused with `error`, 0 if none was sent.

    A request that the provider refused is too long for the model to sum up, too.
    """
    activity = Compacting(step=step, attempt=attempt, error=error)
    space = replace(state.space, compactions=state.space.compactions + 1)
    return replace(state, activity=activity, space=space), [MakeRoom(step=step, write=attempt == 0)]


def compact_now(state: State, data: CompactNow) -> Transition:
    """Make room because the user wants it: at once, or before the next request of a turn."""
    return replace(state, space=replace(state.space, wanted=data.focus)), []


def condense(state: State, call: CallState) -> State:
    """Have room made with the summary that the model gave in a call; who was asked about a new task has seen it."""
    given = call.call.arguments.get("context", "")
    seen = call.traits.flow is Flow.NEW_TASK
    return replace(state, space=replace(state.space, wanted="", given=str(given), reviewed=seen))


def begin_wanted(state: State) -> Transition:
    """Make the room that the user or the model wanted."""
    space = state.space
    activity = Compacting(
        step=state.step,
        attempt=0,
        wanted=True,
        focus=space.wanted or "",
        written=bool(space.given),
        summary=space.given,
    )
    state = forget_wanted(replace(state, activity=activity))
    if space.given and not space.reviewed and is_reviewed(state, activity):
        return review(state, space.given)
    return state, [work_of(activity)]


def focus_wanted(state: State) -> str | None:
    """Say what the user, who has room made, wants kept above all; None where the session or the model has it made."""
    match state.activity:
        case Compacting(wanted=True, written=False, focus=focus):
            return focus
        case _:
            return None


def is_reviewed(state: State, activity: Compacting) -> bool:
    """Whether a person is there who wants to see a summary before it is used."""
    return state.user_present and (activity.wanted or state.mode in _REVIEWED)


def review(state: State, summary: str) -> Transition:
    """Ask the user about a summary."""
    question = Question(
        id=f"q{state.seq}",
        kind=QuestionKind.SUMMARY,
        text=texts.REVIEW_SUMMARY,
        options=(texts.USE_SUMMARY, texts.WITHOUT_SUMMARY),
        preview=Preview(title=texts.SUMMARY_TITLE, text=summary),
    )
    return replace(state, questions=(*state.questions, question)), [
        Notify(notification=QuestionAsked(question=question))
    ]


def forget_wanted(state: State) -> State:
    """Make no room after all: the user stops what is going on."""
    return replace(state, space=replace(state.space, wanted=None, given="", reviewed=False))


def pin(state: State, data: Pin) -> State:
    """Keep a text in the prompt for good, or no longer. The model reads it with its next message, too."""
    others = tuple(one for one in state.space.pins if one.id != data.id)
    if data.text:
        state = with_note(state, texts.pinned(data.text))
    return replace(state, space=replace(state.space, pins=(*others, data) if data.text else others))


def work_of(activity: Compacting) -> MakeRoom:
    """Give the work that making room takes now."""
    return MakeRoom(
        step=activity.step,
        wanted=activity.wanted,
        write=activity.attempt == 0 and not activity.written,
        focus=activity.focus,
        summary=activity.summary,
    )


def with_largest(state: State, why: str) -> str:
    """Say what fills the window; what a person can do is the surface's to say."""
    return f"{why} The largest parts of it: {state.space.largest}." if state.space.largest else why
