"""What begins that room is made in the model's window, and what stays in it for good."""

from treadle.engine.core.effects import MakeRoom
from treadle.engine.core.state import Compacting, State, replace
from treadle.engine.core.transition import Transition
from treadle.protocol.events import CompactNow, Pin

_MOST = 3
"""Times that room is made for one step."""


def can_begin(state: State) -> bool:
    """Whether room may be made once more for this step."""
    return state.space.compactions < _MOST


def begin_compaction(state: State, step: int, attempt: int) -> Transition:
    """Make room for a request; `attempt` is that of the one which was too long, 0 if none was sent.

    A request that the provider refused is too long for the model to sum up, too.
    """
    activity = Compacting(step=step, attempt=attempt)
    space = replace(state.space, compactions=state.space.compactions + 1)
    return replace(state, activity=activity, space=space), [MakeRoom(step=step, write=attempt == 0)]


def compact_now(state: State, data: CompactNow) -> Transition:
    """Make room because the user wants it: at once, or before the next request of a turn."""
    return replace(state, space=replace(state.space, wanted=data.focus)), []


def begin_wanted(state: State) -> Transition:
    """Make the room that the user wanted."""
    focus = state.space.wanted or ""
    activity = Compacting(step=state.step, attempt=0, wanted=True, focus=focus)
    state = replace(state, activity=activity, space=replace(state.space, wanted=None))
    return state, [work_of(activity)]


def pin(state: State, data: Pin) -> State:
    """Keep a text in the prompt for good, or no longer."""
    others = tuple(one for one in state.space.pins if one.id != data.id)
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
