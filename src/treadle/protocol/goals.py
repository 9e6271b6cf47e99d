"""A goal: a condition that a session works on until it is met, as its log keeps it."""

from enum import StrEnum

from msgspec.structs import replace

from treadle.protocol.base import Record, Tagged


class GoalState(StrEnum):
    """How a goal stands: worked on, paused by a person, given up until a person says otherwise, or met."""

    ACTIVE = "active"
    PAUSED = "paused"
    BLOCKED = "blocked"
    MET = "met"


class GoalJudge(StrEnum):
    """What says whether a goal is met: a command, by its exit status, or the model, by its own judgement."""

    COMMAND = "command"
    MODEL = "model"


class GoalStatus(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A goal as surfaces show it. `check` is the command that says whether it is met; empty: the model judges.

    `reason` is why it stands so: what the last check said, `by` what, or without that what ended the work.
    """

    condition: str
    state: GoalState = GoalState.ACTIVE
    check: str = ""
    reason: str = ""
    by: GoalJudge | None = None


BEGIN_GOAL = "Work on the goal of this session until it is met."
"""The message with which a session begins that is given a goal and no task."""

GOAL_INTERRUPTED = "the work was interrupted"
"""The reason of a goal that was paused with the turn that a person interrupted."""


class SetGoal(Tagged, frozen=True, kw_only=True, tag="set_goal"):
    """The user sets the goal of the session, has it `paused`, or goes on with it; without a condition there is none.

    `check` is a shell line whose exit status 0 says that it is met; without one the model judges.
    """

    condition: str = ""
    check: str = ""
    paused: bool = False


class GoalChecked(Tagged, frozen=True, kw_only=True, tag="goal_checked"):
    """At the end of a turn it was asked whether the goal is met: `by` what, and for which `reason`.

    `digest` is the same for the same reason, whatever differs from run to run. `blocked`: nobody but a person can help
    on, such as where the check may not run; `by` is None where nothing judged it.
    """

    met: bool = False
    by: GoalJudge | None = None
    reason: str = ""
    digest: str = ""
    blocked: bool = False

    def changed(self, goal: GoalStatus) -> GoalStatus:
        """Say how a goal stands after this."""
        stands = GoalState.MET if self.met else GoalState.BLOCKED if self.blocked else GoalState.ACTIVE
        return replace(goal, state=stands, reason=self.reason.partition("\n")[0], by=self.by)
