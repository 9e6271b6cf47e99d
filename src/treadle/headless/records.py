"""The records of JSON output that are not notifications."""

from typing import TYPE_CHECKING, Any

from treadle.door.open_session import LiveSession
from treadle.door.past import LEFT_OFF
from treadle.present.checklist_items import open_items
from treadle.protocol.base import Tagged
from treadle.protocol.goals import GoalStatus
from treadle.protocol.models import ModelError
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.tools import FileChange
from treadle.protocol.usage import Usage

if TYPE_CHECKING:
    from treadle.door.open_session import RemoteSession


class SessionRecord(Tagged, frozen=True, kw_only=True, tag="session"):
    """The first line of a stream: which session this is. `trusted` is whether it uses what acts in its folder.

    `roots` are further folders that belong to the workspace.
    """

    session_id: str
    workspace: str
    roots: tuple[str, ...] = ()
    model: str
    mode: str
    trusted: bool


class ResultRecord(Tagged, frozen=True, kw_only=True, omit_defaults=False, tag="result"):
    """The last line of a stream, and the one object of `json`. `cost` is in US dollars, null where unknown.

    `stop` is `unfinished` where a signal ended the program during the turn, which goes on when it is resumed.

    `changes` are all that is left of the turn's own work where they are `exact`, otherwise what tools reported.

    `why` says which limit or hook ended the turn, or that the answer has not the form that was wanted. `open_items`
    counts what of the checklist is not done. `goal` is the goal that was worked on, and how it stands.
    `structured_output` is the answer as a value where a form of it was wanted.
    """

    session_id: str
    stop: TurnStop | str
    completed: bool
    text: str
    exit_code: int
    steps: int
    usage: Usage
    cost: float | None
    changes: tuple[FileChange, ...]
    exact: bool
    unseen: tuple[str, ...]
    denied: int
    why: str
    open_items: int
    error: ModelError | None
    structured_output: Any
    goal: GoalStatus | None


class CommandRecord(Tagged, frozen=True, kw_only=True, omit_defaults=False, tag="command"):
    """What a slash command gave, in the place of a result; `cost` is that of the models it used, null where unknown."""

    session_id: str
    name: str
    text: str
    exit_code: int
    usage: Usage
    cost: float | None


def session_record(live: "LiveSession | RemoteSession") -> SessionRecord:
    """Describe the session."""
    status = live.status
    return SessionRecord(
        session_id=live.id,
        workspace=str(live.workspace),
        roots=live.roots,
        model=status.model,
        mode=status.mode.value,
        trusted=live.trust.trusted,
    )


def result_record(
    live: "LiveSession | RemoteSession",
    outcome: TurnOutcome,
    code: int,
    *,
    value: Any = None,
    goal: GoalStatus | None = None,
    cut_off: bool = False,
) -> ResultRecord:
    """Describe the end of the turn, or what it has come to by now where it is `cut_off`."""
    return ResultRecord(
        session_id=live.id,
        stop=LEFT_OFF if cut_off else outcome.stop,
        completed=outcome.completed,
        text=outcome.text,
        exit_code=code,
        steps=outcome.steps,
        usage=outcome.usage,
        cost=outcome.cost,
        changes=outcome.changes,
        unseen=outcome.unseen,
        exact=outcome.exact,
        denied=outcome.denied,
        why=outcome.why,
        open_items=open_items(live.status.checklist)[0],
        error=outcome.error,
        structured_output=value,
        goal=goal,
    )
