"""Effects: what the machine wants done. Each piece of work has a name, by which it can be cancelled."""

from typing import Any, TypeAlias

from msgspec import field

from treadle.engine.core.state import State
from treadle.protocol.base import Tagged
from treadle.protocol.checkpoints import Moment, Restore
from treadle.protocol.events import Answer, Source
from treadle.protocol.notifications import Notification, TurnOutcome
from treadle.protocol.permissions import Allowance, AllowScope, OptionKind
from treadle.protocol.sealed import Sealed
from treadle.protocol.tools import Rights, ToolCall


class Assemble(Tagged, frozen=True, kw_only=True, tag="assemble"):
    """Describe the environment and check the window for this step."""

    step: int


class CallModel(Tagged, frozen=True, kw_only=True, tag="call_model"):
    """Send the request of this step."""

    step: int
    attempt: int


class MakeRoom(Tagged, frozen=True, kw_only=True, tag="make_room"):
    """Choose what leaves the prompt.

    `wanted`: the user asked for it. With `write` the model is asked for a summary first, with the user's `focus`, where
    the settings say so; else `summary` is what it wrote, if anything.
    """

    step: int
    wanted: bool = False
    write: bool = False
    focus: str = ""
    summary: str = ""


class JudgeCall(Tagged, frozen=True, kw_only=True, tag="judge_call"):
    """Prepare the call and ask the security layer."""

    call: ToolCall


class RunTool(Tagged, frozen=True, kw_only=True, tag="run_tool"):
    """Run what was judged under this digest; `rerun` after a restart in the middle of it.

    `rights` are what its command runs in: those of the decision, and what the sandbox stopped the first time. With
    `keep` it does not run again: what it changed in its throw-away copy, under this digest, is applied. What `changes`
    files waits for the checkpoints that are being taken.
    """

    call: ToolCall
    digest: str
    rerun: bool = False
    rights: Rights | None = None
    keep: str = ""
    changes: bool = False


class TakeCheckpoint(Tagged, frozen=True, kw_only=True, tag="take_checkpoint"):
    """Keep the files as they are now."""

    step: int
    moment: Moment


class RestoreCheckpoint(Tagged, frozen=True, kw_only=True, tag="restore_checkpoint"):
    """Bring back what the user wants."""

    wanted: Restore


class PassAnswer(Tagged, frozen=True, kw_only=True, tag="pass_answer"):
    """Give a running call what the user said to its question; no `option`: nobody will say anything.

    `scope` says for how long `allow_always` holds. A subagent is given the `whole` answer.
    """

    question_id: str
    option: OptionKind | None = None
    scope: AllowScope = AllowScope.SESSION
    values: dict[str, Any] = field(default_factory=dict)
    whole: Answer | None = None


class Remember(Tagged, frozen=True, kw_only=True, tag="remember"):
    """Write to the user's rules what is allowed from now on in every session."""

    allowances: tuple[Allowance, ...]


class AskHooks(Tagged, frozen=True, kw_only=True, tag="ask_hooks"):
    """Ask the hooks whether a turn may end with this answer; `again`: they have kept it from ending before."""

    turn: int
    text: str
    again: bool = False


class StartTimer(Tagged, frozen=True, kw_only=True, tag="start_timer"):
    """Post `TimerFired` after `seconds`."""

    timer: str
    seconds: float


class Cancel(Tagged, frozen=True, kw_only=True, tag="cancel"):
    """Stop this work. A model call and a running tool still report; the rest goes silently."""

    work: str


class Notify(Tagged, frozen=True, kw_only=True, tag="notify"):
    """Tell every surface. Whoever takes the effect knows after which event, `seq`, and when, `at`."""

    notification: Notification
    seq: int = 0
    at: int = 0


class Respond(Tagged, frozen=True, kw_only=True, tag="respond"):
    """Give the end of the turn to the output handlers of these sources."""

    sources: tuple[Source, ...]
    outcome: TurnOutcome


class Seal(Tagged, frozen=True, kw_only=True, tag="seal"):
    """Put this event into the log right behind its cause, in the same transaction."""

    data: Sealed


Effect: TypeAlias = (
    Assemble
    | CallModel
    | MakeRoom
    | JudgeCall
    | RunTool
    | TakeCheckpoint
    | RestoreCheckpoint
    | PassAnswer
    | Remember
    | AskHooks
    | StartTimer
    | Cancel
    | Notify
    | Respond
    | Seal
)

Transition: TypeAlias = tuple[State, list[Effect]]
"""What every part of the machine gives: the next state, and what is wanted done because of it."""


def model_work(step: int, attempt: int) -> str:
    """Name the call of a model."""
    return f"model:{step}.{attempt}"


def step_work(step: int) -> str:
    """Name the assembly or compaction of a step."""
    return f"step:{step}"


def call_work(call_id: str) -> str:
    """Name the judging or running of a call."""
    return f"call:{call_id}"


def timer_work(timer: str) -> str:
    """Name a timer."""
    return f"timer:{timer}"


def end_work(turn: int) -> str:
    """Name the question to the hooks whether a turn may end."""
    return f"end:{turn}"


def turn_timer(turn: int) -> str:
    """Name the timer that bounds a turn."""
    return f"turn-{turn}"
