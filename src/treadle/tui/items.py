"""What goes to the scrollback, one item after the other, free of any layout."""

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from treadle.app.session.own_shell import Ended
from treadle.present.words import CallName
from treadle.protocol.notifications import TurnOutcome
from treadle.protocol.tools import FileChange, Outcome, ToolKind


class Tone(Enum):
    """How a notice is meant."""

    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"


class Greeting(Struct, frozen=True):
    """The beginning: the version, the model, the mode, the folders of the workspace and the branch.

    `last` is the session of the folder before this one, and when that was.
    """

    version: str
    model: str
    mode: str
    folder: str
    branch: str = ""
    last: str = ""


class Said(Struct, frozen=True):
    """What the user said: a prompt that went to the model, or an answer in words; `quiet` for a slash command.

    `enclosed` names what went along.
    """

    text: str
    quiet: bool = False
    enclosed: tuple[str, ...] = ()


class Prose(Struct, frozen=True):
    """A piece of the model's answer, whole blocks of Markdown."""

    markdown: str


class Thought(Struct, frozen=True):
    """The model has thought, for so many seconds where that is known."""

    seconds: float | None = None


class CallDone(Struct, frozen=True, kw_only=True):
    """A call has its result. `note` is why it went wrong or how much came back, `said` what the person said of it.

    `output` is the end of what it printed, `above` the number of lines before that. `seconds` is how long it ran.
    `lines` is what a read brought, so that reads in a row can be one line.
    """

    name: CallName
    kind: ToolKind
    outcome: Outcome
    note: str = ""
    said: str = ""
    output: str = ""
    above: int = 0
    diff: str = ""
    seconds: float | None = None
    lines: int = 0


class Reads(Struct, frozen=True):
    """Reads that came one after the other."""

    done: tuple[CallDone, ...]


class Todos(Struct, frozen=True):
    """The task's checklist, all of it done."""

    markdown: str


class DiffItem(Struct, frozen=True):
    """What an edit would change, as a unified diff."""

    text: str


class OwnDone(Struct, frozen=True):
    """A command of the person's own has ended."""

    ended: Ended


class NoticeItem(Struct, frozen=True):
    """A short word of Treadle itself."""

    text: str
    tone: Tone = Tone.QUIET


class ProblemItem(Struct, frozen=True):
    """An error for a person: what happened, why, and what to do."""

    what: str
    why: str = ""
    fix: str = ""


class TurnDone(Struct, frozen=True):
    """The end of a turn: how long it worked and waited for the person, where that is known (seconds), and the files."""

    outcome: TurnOutcome
    seconds: float | None = None
    waited: float = 0.0
    files: tuple[FileChange, ...] = ()


ScreenItem: TypeAlias = (
    Greeting
    | Said
    | Prose
    | Thought
    | CallDone
    | Reads
    | Todos
    | DiffItem
    | OwnDone
    | NoticeItem
    | ProblemItem
    | TurnDone
)
