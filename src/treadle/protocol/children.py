"""Subagents: sessions that a session begins for parts of its task, as the logs of both keep them."""

from enum import StrEnum

from treadle.protocol.base import Record, Tagged
from treadle.protocol.tools import FileChange
from treadle.protocol.usage import Usage


class ChildOf(Record, frozen=True, kw_only=True):
    """Whose subagent a session is: its `parent`, the `root` of the tree, the parent's call, and the agent's name."""

    parent: str
    root: str
    call_id: str
    agent: str


class ChildOutcome(StrEnum):
    """How a subagent ended; only `done` is a success."""

    DONE = "done"
    LIMIT = "limit"
    REFUSED = "refused"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


LEFT_WITH_ORIGINAL = "left to the session that this is a copy of"
"""Why a copy of a session has a subagent no more that worked there."""


class ChildStarted(Tagged, frozen=True, kw_only=True, tag="child_started"):
    """A running call begins a subagent: the session `session_id`, with this task.

    `background`: the call does not wait for it.
    """

    call_id: str
    session_id: str
    agent: str
    task: str
    background: bool = False


class ChildMerges(Tagged, frozen=True, kw_only=True, tag="child_merges"):
    """What a subagent changed in its copy comes into the workspace now; `over` says that no more of it does."""

    session_id: str
    over: bool = False


class ChildEnded(Tagged, frozen=True, kw_only=True, tag="child_ended"):
    """A subagent is over; `why` says of any outcome but `done` what ended it.

    `usage` and `cost` (US dollars, None if unknown) are what it used in all, `changes` the files that it changed in its
    copy; `exact` says that these are all, as no command ran where nothing tells what it changes. Of its calls that were
    `refused`, `denied` were for want of anybody to ask. `digest` is the SHA-256 (hex) of the text that it ended with,
    which its own log has. `kept` says in words that its copy was kept with changes that are not in the workspace, and
    why.
    """

    session_id: str
    outcome: ChildOutcome
    why: str = ""
    steps: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    changes: tuple[FileChange, ...] = ()
    exact: bool = True
    denied: int = 0
    refused: int = 0
    digest: str = ""
    kept: str = ""
