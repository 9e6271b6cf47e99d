"""The task's checklist in the loop: the model writes it with its calls, the user at any time."""

from treadle.context import focus
from treadle.engine.effects import Effect, Notify
from treadle.engine.state import State, replace
from treadle.protocol.notifications import ChecklistChanged

Moved = tuple[State, list[Effect]]


def from_model(state: State, markdown: str) -> Moved:
    """Take the list that came with a call; what the user changed since the model last saw it stays."""
    wanted = focus.parse(markdown)
    if not wanted:
        return state, []
    merged = focus.merge(focus.parse(state.checklist_told), wanted, focus.parse(state.checklist))
    return _changed(replace(state, checklist_age=0, checklist_told=focus.render(merged)), focus.render(merged))


def from_user(state: State, markdown: str) -> Moved:
    """Take the user's version, and tell the model of it with the next step."""
    before, now = focus.parse(state.checklist), focus.parse(markdown)
    note = focus.edited(before, now)
    if note:
        state = replace(state, notes=(*state.notes, note))
    return _changed(state, focus.render(now))


def begin_step(state: State) -> State:
    """Count the model calls since the last update, and remind the model when it is due."""
    if not state.checklist:
        return state
    state = replace(state, checklist_age=state.checklist_age + 1)
    note = focus.reminder(focus.parse(state.checklist), state.checklist_age)
    return replace(state, notes=(*state.notes, note)) if note else state


def is_open(state: State) -> bool:
    """Whether something on the list is not done."""
    return any(not item.done for item in focus.parse(state.checklist))


def told(state: State) -> State:
    """What the model was told of the list is now all of it."""
    return replace(state, checklist_told=state.checklist) if state.checklist_told != state.checklist else state


def _changed(state: State, text: str) -> Moved:
    if text == state.checklist:
        return state, []
    return replace(state, checklist=text), [Notify(notification=ChecklistChanged(text=text))]
