"""Checkpoints: the files at a point in time, and the way back to one, as the log keeps them."""

from enum import StrEnum
from typing import Any

from treadle.protocol.base import Record, Tagged
from treadle.protocol.tools import FileChange

MOST_NAMED = 1_000
"""Files whose own changes one checkpoint names."""


class Parent(Record, frozen=True, kw_only=True):
    """The session that another one came from, and the number of the last event that both have."""

    session_id: str
    seq: int


class Restore(Tagged, frozen=True, kw_only=True, tag="restore"):
    """The user wants the files, the conversation or both to be as they were at a checkpoint.

    With `to` the conversation goes on from after that event; checkpoint 0 is none, where the files stay as they are.
    With `part` only a part of the changes is taken back or made otherwise, which is kept under that number.
    """

    checkpoint: int = 0
    files: bool = True
    conversation: bool = False
    to: int = 0
    part: int = 0


class Moment(StrEnum):
    """When a checkpoint is taken: around a step that may change files, and around the restoring of files.

    `found`: when a session is taken up again whose program ended in a step that may change files, and where a command
    ran in the background. What changed is the session's or somebody else's; nobody knows which.
    """

    BEFORE = "before"
    AFTER = "after"
    RESTORING = "restoring"
    RESTORED = "restored"
    FOUND = "found"

    @property
    def of_step(self) -> bool:
        """Whether the checkpoint is its step's: those around a restore are of none, whichever step was the last."""
        return self not in (Moment.RESTORING, Moment.RESTORED)

    @property
    def ends_work(self) -> bool:
        """Whether the session's own work is what lies between the checkpoint before and this one."""
        return self in (Moment.AFTER, Moment.RESTORED)

    @property
    def may_end_work(self) -> bool:
        """Whether that is, or may be, the session's own work."""
        return self.ends_work or self is Moment.FOUND


class OwnTotal(Record, frozen=True, kw_only=True):
    """How many files have something that is the session's own work, and the lines of that."""

    files: int = 0
    added: int = 0
    removed: int = 0


class CheckpointTaken(Tagged, frozen=True, kw_only=True, tag="checkpoint_taken"):
    """The files of the workspace at this moment are kept as `trees`, one for each root, under this number.

    `files`, `added` and `removed` count what changed since the checkpoint before, with the lines of it. `not_covered`
    names what is not in it, each with the reason; `more` counts those that are not named. `notice` tells the user of
    older checkpoints that were lost, and of what is too much. `ignored`: the trees hold what git ignores, too, but for
    what builds make and what is too much. `unseen` names files that no checkpoint holds and that changed since the one
    before.

    `own` says what the session's own change of each of these files is now, since it began, and `turn` since the turn
    began; without hashes nothing of it is left. `total` is that of all files. None where that is not known.
    """

    n: int
    step: int
    moment: Moment
    trees: tuple[str, ...]
    files: int = 0
    added: int = 0
    removed: int = 0
    not_covered: tuple[str, ...] = ()
    more: int = 0
    notice: str = ""
    ignored: bool = False
    unseen: tuple[str, ...] = ()
    own: tuple[FileChange, ...] | None = None
    turn: tuple[FileChange, ...] | None = None
    total: OwnTotal | None = None

    @property
    def recounted(self) -> tuple[FileChange, ...]:
        """What the session's own change is now of each file that was restored, or that others have changed."""
        return self.own or () if self.moment in (Moment.RESTORED, Moment.BEFORE) else ()


class UnrestoredPath(Record, frozen=True, kw_only=True):
    """A path that was left as it is, and why: others changed it in a way that cannot be put together."""

    path: str
    why: str


class Restored(Tagged, frozen=True, kw_only=True, tag="restored"):
    """What was to be restored is. Paths are absolute; `conflicts` were left alone.

    `error` says why nothing, or not all of it, was restored.
    """

    checkpoint: int
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    conflicts: tuple[UnrestoredPath, ...] = ()
    error: str = ""


class Rewound(Tagged, frozen=True, kw_only=True, tag="rewound"):
    """The conversation goes on from where it was after event `to`; what came since has left it, but not the log.

    `state` is the machine's state then. `files`: the files go back, too.
    """

    to: int
    state: dict[str, Any]
    files: bool = False
