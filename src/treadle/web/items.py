"""What stands on the page of a session, one item after the other, free of any layout."""

from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.notifications import CallChanged, CallStatus, TurnOutcome
from treadle.protocol.tools import FileChange

MOST_PRINTED = 20_000
"""Characters of what a call or command prints that the page shows."""


class SaidItem(Struct, frozen=True):
    """What was said to the model; `by` names who, where it was not the user, `enclosed` what went along."""

    text: str
    enclosed: tuple[str, ...] = ()
    by: str = ""


class ProseItem(Struct, frozen=True):
    """Whole blocks of the model's Markdown; `growing` ones are still being written."""

    markdown: str
    growing: bool = False


class ThoughtItem(Struct, frozen=True):
    """What the model thought, as far as it says."""

    text: str
    growing: bool = False


class Writing(Struct, frozen=True):
    """A call that the model is still writing: the parameter that it writes, and the end of that."""

    tool: str
    parameter: str
    text: str


class CallCard(Struct, frozen=True):
    """A call: where it is in its life, and the end of what it printed, after `above` lines.

    `since` is when it began to run, on the clock of `PageContent.take`, `seconds` how long; None where not known.
    `left`: its session has ended, and nothing goes on with it.
    """

    changed: CallChanged
    output: str = ""
    above: int = 0
    since: float | None = None
    seconds: float | None = None
    left: bool = False

    def moved(self, changed: CallChanged, at: float | None) -> "CallCard":
        """Give the card of the call as it is now."""
        card = self
        if changed.status is CallStatus.STARTING:
            card = CallCard(changed)  # an earlier run's output is not this one's
        elif changed.status is CallStatus.RUNNING:
            card = replace(card, since=at)
        elif changed.status is CallStatus.FINISHED and at is not None and card.since is not None:
            card = replace(card, since=None, seconds=at - card.since)
        return replace(card, changed=changed)


class OwnCommand(Struct, frozen=True):
    """A command of the person's own: the end of what it printed, after `above` lines, and what is `said` at its end.

    `since` is when it began, on the clock of `PageContent.take`, None once it has ended; then `seconds` is how long it
    ran, and `good` whether it ended well.
    """

    number: int
    line: str
    output: str = ""
    above: int = 0
    since: float | None = None
    said: str = ""
    good: bool = True
    seconds: float | None = None


_Printing = TypeVar("_Printing", CallCard, OwnCommand)


def with_output(item: _Printing, text: str) -> _Printing:
    """Give a call or command with more output: the end of it, and how many lines are above that."""
    output, above = item.output + text, item.above
    if len(output) > 2 * MOST_PRINTED:
        above += output.count("\n", 0, len(output) - MOST_PRINTED)
        output = output[-MOST_PRINTED:]
    return replace(item, output=output, above=above)


class Note(Struct, frozen=True):
    """A short word of Treadle itself."""

    text: str
    warns: bool = False


class Problem(Struct, frozen=True):
    """An error for a person: what happened, why, and what to do."""

    what: str
    why: str = ""
    fix: str = ""


class TurnEnd(Struct, frozen=True):
    """The end of a turn; `files` are shown as seen from the workspace, `seconds` is how long it took."""

    outcome: TurnOutcome
    files: tuple[FileChange, ...] = ()
    seconds: float | None = None


PageItem: TypeAlias = SaidItem | ProseItem | ThoughtItem | Writing | CallCard | OwnCommand | Note | Problem | TurnEnd


class PageEntry(Struct):
    """An item and its place. `version` is the page's when it last changed; an item of None is gone.

    `html` is what was made of this version, empty where nobody has asked for it yet.
    """

    position: int
    version: int
    item: PageItem | None
    html: str = ""
