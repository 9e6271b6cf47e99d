"""The task's checklist in the loop: the model writes it with its calls, the user at any time."""

from typing import Any

from treadle.context import focus
from treadle.engine.core.machine_effects import Notify, Transition
from treadle.engine.core.state import State, replace, with_note
from treadle.protocol.notifications import ChecklistChanged


def from_model(state: State, markdown: str) -> Transition:
    """Take the list that came with a call; what the user changed since the model last saw it stays."""
    wanted = focus.parse_checklist(markdown)
    if not wanted:
        return state, []
    merged = focus.merge_checklists(
        focus.parse_checklist(state.checklist.read), wanted, focus.parse_checklist(state.checklist.text)
    )
    return _changed(_with(state, age=0, read=focus.render_checklist(merged)), focus.render_checklist(merged))


def from_user(state: State, markdown: str) -> Transition:
    """Take the user's version, and tell the model of it with the next step."""
    before, now = focus.parse_checklist(state.checklist.text), focus.parse_checklist(markdown)
    note = focus.edited(before, now)
    if note:
        state = with_note(state, note)
    return _changed(state, focus.render_checklist(now))


def count_step(state: State) -> State:
    """Count the model calls since the last update, and remind the model when it is due."""
    if not state.checklist.text:
        return state
    state = _with(state, age=state.checklist.age + 1)
    note = focus.reminder(focus.parse_checklist(state.checklist.text), state.checklist.age)
    return with_note(state, note) if note else state


def is_open(state: State) -> bool:
    """Whether something on the list is not done."""
    return any(not item.done for item in focus.parse_checklist(state.checklist.text))


def mark_read(state: State) -> State:
    """What the model was told of the list is now all of it."""
    return _with(state, read=state.checklist.text) if state.checklist.read != state.checklist.text else state


def updated(state: State, text: str) -> State:
    """Take the list as the log says that it was."""
    return _with(state, text=text)


def _with(state: State, **changes: Any) -> State:
    return replace(state, checklist=replace(state.checklist, **changes))


def _changed(state: State, text: str) -> Transition:
    if text == state.checklist.text:
        return state, []
    return _with(state, text=text), [Notify(notification=ChecklistChanged(text=text))]
