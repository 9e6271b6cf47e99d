"""What goes to the scrollback, one item after the other, free of any layout."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from treadle.protocol.notifications import TurnOutcome
from treadle.protocol.permissions import Question
from treadle.protocol.tools import FileChange, Outcome, ToolKind


class Tone(Enum):
    """How a notice is meant."""

    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Said:
    """What the user said: a prompt that went to the model, or an answer in words."""

    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """A piece of the model's answer, whole blocks of Markdown."""

    markdown: str


@dataclass(frozen=True, slots=True)
class Thought:
    """The model has thought: how it began, and how many characters it was."""

    beginning: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDone:
    """A call has its result. `note` is why it went wrong or how much came back; `output` the end of what it printed."""

    title: str
    kind: ToolKind
    outcome: Outcome
    note: str = ""
    output: str = ""
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A question, long texts cut in the middle; `roots` are the folders of the workspace."""

    question: Question
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FullText:
    """All of what a question is about."""

    question: Question
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One of the blocks of an edit, the `number`th of `count`, to be taken or left out."""

    number: int
    count: int
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A short word of Treadle itself."""

    text: str
    tone: Tone = Tone.QUIET


@dataclass(frozen=True, slots=True)
class Problem:
    """An error for a person: what happened, why, and what to do."""

    what: str
    why: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class TurnDone:
    """The end of a turn: how long it took, where that is known (seconds), and the changed files as they are shown."""

    outcome: TurnOutcome
    seconds: float | None = None
    files: tuple[FileChange, ...] = ()


Item: TypeAlias = Said | Prose | Thought | CallDone | Card | FullText | Block | Notice | Problem | TurnDone
