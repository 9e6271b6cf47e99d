"""What the terminal prints and draws: the items of a session, and what only the terminal has."""

from typing import TypeAlias

from msgspec import Struct

from treadle.door.open_session import Ended
from treadle.present.context_use import ContextUse
from treadle.present.items import (
    CallItem,
    ChecklistItem,
    NoteItem,
    ProblemItem,
    ProseItem,
    SaidItem,
    ThoughtItem,
    TurnItem,
    WritingItem,
)


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


class EnteredCommand(Struct, frozen=True):
    """A slash command, as it was entered."""

    text: str


class CallLine(Struct, frozen=True):
    """What is left of a call that has its result. `answer` is what the person said of it, as words.

    `diff` is what it changed, where no question has shown that.
    """

    item: CallItem
    answer: str = ""
    diff: str = ""


class ReadsLine(Struct, frozen=True):
    """Reads that came one after the other."""

    reads: tuple[CallLine, ...]


class DiffItem(Struct, frozen=True):
    """What an edit would change, as a unified diff."""

    text: str


class ContextItem(Struct, frozen=True):
    """How full the context is."""

    use: ContextUse


class OwnDone(Struct, frozen=True):
    """A command of the person's own has ended."""

    ended: Ended


PrintedItem: TypeAlias = (
    Greeting
    | EnteredCommand
    | SaidItem
    | ProseItem
    | ThoughtItem
    | CallLine
    | ReadsLine
    | ChecklistItem
    | DiffItem
    | ContextItem
    | OwnDone
    | NoteItem
    | ProblemItem
    | TurnItem
)
"""What goes to the scrollback, where it does not change any more."""

LivingItem: TypeAlias = PrintedItem | CallItem | WritingItem
"""What is drawn below the scrollback: what still changes, and what waits behind it."""
