"""What goes to the scrollback, one item after the other, free of any layout."""

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from treadle.protocol.notifications import TurnOutcome
from treadle.protocol.tools import FileChange, Outcome, ToolKind


class Tone(Enum):
    """How a notice is meant."""

    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"


class Said(Struct, frozen=True):
    """What the user said: a prompt that went to the model, or an answer in words."""

    text: str


class Prose(Struct, frozen=True):
    """A piece of the model's answer, whole blocks of Markdown."""

    markdown: str


class Thought(Struct, frozen=True):
    """The model has thought: how it began, and how many characters it was."""

    beginning: str
    size: int


class CallDone(Struct, frozen=True, kw_only=True):
    """A call has its result. `note` is why it went wrong or how much came back; `output` the end of what it printed."""

    title: str
    kind: ToolKind
    outcome: Outcome
    note: str = ""
    output: str = ""
    diff: str = ""


class Diff(Struct, frozen=True):
    """What an edit would change, as a unified diff."""

    text: str


class Notice(Struct, frozen=True):
    """A short word of Treadle itself."""

    text: str
    tone: Tone = Tone.QUIET


class Problem(Struct, frozen=True):
    """An error for a person: what happened, why, and what to do."""

    what: str
    why: str = ""
    fix: str = ""


class TurnDone(Struct, frozen=True):
    """The end of a turn: how long it took, where that is known (seconds), and the changed files as they are shown."""

    outcome: TurnOutcome
    seconds: float | None = None
    files: tuple[FileChange, ...] = ()


Item: TypeAlias = Said | Prose | Thought | CallDone | Diff | Notice | Problem | TurnDone
