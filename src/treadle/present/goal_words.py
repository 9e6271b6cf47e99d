"""The goal of a session in words; what is the model's own judgement is marked wherever it is shown."""

from msgspec.structs import replace

from treadle.present.escape import exact
from treadle.present.words import clip_text
from treadle.protocol.goals import GoalJudge, GoalState, GoalStatus
from treadle.protocol.permissions import Mode

CHECKING_GOAL = "Checking the goal"
"""What is done while it is asked if the goal is met."""

_NOT_IN_PLAN = "it was not checked, because the session is in plan mode; continue in another one, such as --mode edits"

_SHOWN = 300


def goal_words(goal: GoalStatus | None) -> str:
    """Say how a goal stands, in a line or two."""
    if goal is None:
        return "There is no goal any more."
    condition, reason = clip_text(exact(goal.condition), _SHOWN), _reason(goal)
    match goal.state:
        case GoalState.ACTIVE if goal.reason:
            return f"The goal is not met yet{reason}"
        case GoalState.ACTIVE:
            return f"Goal: {condition} ({judged_by(goal)})"
        case GoalState.PAUSED:
            return f"The goal is paused{reason}: {condition} (/goal resume continues it)"
        case GoalState.BLOCKED:
            return f"The goal is blocked{reason}. Goal: {condition} (/goal resume checks it again)"
        case GoalState.MET:
            return f"The goal is met{reason}. Goal: {condition}"


def left_unchecked(goal: GoalStatus | None, mode: Mode) -> GoalStatus | None:
    """Give the goal after a run with why it was not checked; None where that is not because of plan mode."""
    if goal is None or goal.state is not GoalState.ACTIVE or mode is not Mode.PLAN:
        return None
    return replace(goal, reason=_NOT_IN_PLAN, by=None)


def judged_by(goal: GoalStatus) -> str:
    """Say what decides whether a goal is met."""
    return f"checked by `{exact(goal.check)}`" if goal.check else "the model judges it"


def goal_label(state: GoalState | None) -> str:
    """Name the state of a goal where there is little room; empty without one."""
    return "" if state is None else f"goal {state}"


def _reason(goal: GoalStatus) -> str:
    if not goal.reason:
        return ""
    by = {GoalJudge.MODEL: " (the model's judgement)", GoalJudge.COMMAND: f" (`{exact(goal.check)}`)", None: ""}[
        goal.by
    ]
    return f"{by}: {clip_text(exact(goal.reason), _SHOWN).rstrip('.')}"
