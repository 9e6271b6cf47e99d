"""The goal of a session in the loop: set by the user, checked when a turn ends, worked on until it is met."""

from typing import Any

from treadle.engine.core import texts
from treadle.engine.core.learning import awaits_subagents
from treadle.engine.core.machine_effects import Notify, Transition
from treadle.engine.core.state import Goal, State, TurnState, replace, with_note
from treadle.protocol.events import GOAL, HOOK, Source
from treadle.protocol.goals import GOAL_INTERRUPTED, GoalChecked, GoalState, GoalStatus, SetGoal
from treadle.protocol.notifications import NOT_THE_USER, GoalChanged, TurnStop
from treadle.protocol.permissions import Mode

_SAME = 3
"""Checks in a row that fail for the same reason, after which the work does not go on by itself."""

_GOES_ON = (GOAL.kind, "subagent")
"""Kinds of sources that go on with the work on a goal."""


def is_active(state: State) -> bool:
    """Whether the session works on a goal."""
    return state.goal is not None and state.goal.stands is GoalState.ACTIVE


def is_wanted(state: State) -> bool:
    """Whether it is to be asked if the goal is met: no turn goes on. In plan mode nothing can be done for it."""
    return state.goal is not None and state.goal.due and state.turn is None and state.mode is not Mode.PLAN


def is_due(state: State) -> bool:
    """Whether it is asked now: no subagent works in the background, whose end will wake the session."""
    return is_wanted(state) and not awaits_subagents(state)


def goal_status(state: State) -> GoalStatus | None:
    """Say how the goal stands."""
    goal = state.goal
    if goal is None:
        return None
    reason = goal.reason.partition("\n")[0]
    return GoalStatus(condition=goal.condition, state=goal.stands, check=goal.check, reason=reason, by=goal.by)


def paused(state: State) -> SetGoal | None:
    """Give what pauses the goal where it is being checked; None where it is not."""
    goal = state.goal
    return SetGoal(condition=goal.condition, check=goal.check, paused=True) if goal and is_due(state) else None


def set_goal(state: State, data: SetGoal, at: int) -> Transition:
    """Take the user's goal, or what they say of it; the model reads of it with its next message."""
    before = state.goal
    if not data.condition:
        return _changed(with_note(replace(state, goal=None), texts.GOAL_CLEARED))
    goal = Goal(condition=data.condition, check=data.check, since=at)
    if data.paused:
        paused = replace(state, goal=replace(goal, stands=GoalState.PAUSED))
        return _changed(with_note(paused, texts.GOAL_PAUSED))
    same = before is not None and (before.condition, before.check) == (data.condition, data.check)
    due = same and state.turn is None and state.mode is not Mode.PLAN
    return _changed(remind_model(replace(state, goal=replace(goal, due=due))))


def checked(state: State, data: GoalChecked) -> Transition:
    """Take the answer: the goal is met, the work goes on with the reason, or it does not get on by itself."""
    goal = _known(state)
    same = goal.same + 1 if data.digest and data.digest == goal.digest else 1
    state = _with(state, reason=data.reason, by=data.by, digest=data.digest, same=same)
    if data.met or data.blocked:
        return _changed(_with(state, stands=GoalState.MET if data.met else GoalState.BLOCKED, due=False))
    # It stays due until the next turn begins: whatever happens between, it is asked again.
    return _changed(state)


def bounded_check(state: State, data: GoalChecked, now: int) -> GoalChecked:
    """Say of a goal that is not met whether the work goes on by itself; `now` is in milliseconds since 1970."""
    goal = _known(state)
    if data.met or data.blocked:
        return data
    left, limit = _seconds_left(state, now), state.limits.max_steps
    again = data.digest and data.digest == goal.digest and goal.same + 1 >= _SAME
    if again:
        why = f"{_SAME} checks in a row failed in the same way"
    elif limit is not None and goal.steps >= limit and not state.user_present:
        why = f"the limit of {limit} steps is reached"
    elif left is not None and left <= 0:
        why = f"the limit of {state.limits.max_seconds:g} s is reached"
    else:
        return data
    return replace(data, blocked=True, reason=f"{why}: {data.reason}")


def _seconds_left(state: State, now: int) -> float | None:
    seconds = state.limits.max_seconds
    return None if seconds is None else seconds - (now - _known(state).since) / 1000


def begun(state: State, source: Source) -> State:
    """Begin a turn: one that goes on with the goal, or that a subagent wakes, has the steps that others left."""
    if state.goal is None or state.turn is None:
        return state
    if not (is_active(state) and source.kind in _GOES_ON):
        return _with(state, steps=0, due=False)
    return _with(replace(state, turn=replace(state.turn, more=-state.goal.steps)), due=False)


def person_spoke(state: State, source: Source, at: int) -> State:
    """Count anew from the user's words on."""
    return state if state.goal is None or source.kind in NOT_THE_USER else _with(state, since=at, same=0)


def pause_interrupted(state: State, source: Source) -> Transition:
    """Pause the goal where a person interrupts the turn."""
    if not is_active(state) or state.turn is None or source.kind == HOOK.kind:
        return state, []
    paused = _with(state, stands=GoalState.PAUSED, reason=GOAL_INTERRUPTED, by=None)
    return _changed(with_note(paused, texts.GOAL_PAUSED))


def turn_ended(state: State, turn: TurnState, stop: TurnStop, why: str) -> Transition:
    """Have the goal checked after an answer; what cuts a turn ends the work on it until a person says otherwise."""
    if not is_active(state):
        return state, []
    answered = stop is TurnStop.END_TURN
    state = _with(state, steps=turn.steps - turn.more, due=answered and state.mode is not Mode.PLAN)
    if answered:
        return state, []
    return _changed(_with(state, stands=GoalState.BLOCKED, reason=why or texts.STOPPED_WORK[stop], by=None))


def resumed(state: State, at: int) -> State:
    """Count anew after a restart, as the limit of a turn does."""
    return state if state.goal is None else _with(state, since=at)


def waited(state: State, asked_at: int, at: int) -> State:
    """Leave out of the goal's time that for which a person was asked."""
    if state.goal is None:
        return state
    since = state.goal.since
    return _with(state, since=since + max(0, at - max(asked_at, since)))


def remind_model(state: State) -> State:
    """Tell the model of the goal where what it was told may have left its conversation."""
    if state.goal is None or state.goal.stands is not GoalState.ACTIVE:
        return state
    note = texts.goal_set(state.goal.condition, state.goal.check)
    return state if any(one.text == note for one in state.notes) else with_note(state, note)


def keep_goal(state: State, back: State) -> Transition:
    """Keep the goal where the conversation goes back: one that was met, or could not be, is open again."""
    if state.goal is None:
        return replace(back, goal=None), []
    goal = state.goal
    if goal.stands is GoalState.PAUSED:
        return replace(back, goal=goal), []
    fresh = Goal(condition=goal.condition, check=goal.check, since=goal.since)
    return _changed(remind_model(replace(back, goal=fresh)))


def _known(state: State) -> Goal:
    assert state.goal is not None  # noqa: S101 - the caller has looked
    return state.goal


def _with(state: State, **changes: Any) -> State:
    return replace(state, goal=replace(_known(state), **changes))


def _changed(state: State) -> Transition:
    return state, [Notify(notification=GoalChanged(goal=goal_status(state)))]
