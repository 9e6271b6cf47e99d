"""What a person sees of a session, one item after the other, free of any layout."""

from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.models import ModelError
from treadle.protocol.notifications import CallChanged, CallStatus, ContextCompacted, TurnOutcome
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, QuestionKind
from treadle.protocol.tools import FileChange

MOST_PRINTED = 20_000
"""Characters of what a call or command prints that are kept while it runs."""


class SaidItem(Struct, frozen=True):
    """What was said to the model; `by` names the source where it was not the user, `enclosed` what went along.

    `commands` are the user's own that went along, each with its output. An answer to a question has no `prompt_id`. It
    reached the model `at` (s since 1970), where that is known.
    """

    text: str
    enclosed: tuple[str, ...] = ()
    by: str = ""
    prompt_id: str = ""
    commands: tuple[str, ...] = ()
    at: float | None = None


class ProseItem(Struct, frozen=True):
    """Whole blocks of the model's Markdown; `growing` ones are still being written.

    A block that grew too long is `cut`, and the next one continues it. The first `opened` and the last `closed`
    characters of a part of a code block are not the model's.
    """

    markdown: str
    growing: bool = False
    opened: int = 0
    closed: int = 0
    cut: bool = False

    @property
    def ends(self) -> bool:
        """Whether the next block can follow as it is: this one ends with an empty line, or does not end."""
        last = self.written.removesuffix("\n").rpartition("\n")[2]
        return self.cut or (self.written.endswith("\n") and not last.strip())

    @property
    def written(self) -> str:
        """What the model wrote of it."""
        return self.markdown[self.opened : len(self.markdown) - self.closed]


class ThoughtItem(Struct, frozen=True):
    """What the model thought, as far as it says; of a `growing` thought the end. `seconds`: where that is known."""

    text: str
    growing: bool = False
    seconds: float | None = None


class WritingItem(Struct, frozen=True):
    """A call that the model is still writing: its first parameter, as it begins, and the end of the present one.

    `size` is how many characters of it came.
    """

    index: int
    tool: str
    first: str = ""
    argument: str = ""
    parameter: str = ""
    text: str = ""
    size: int = 0


class Answered(Struct, frozen=True):
    """How a question about a call was answered, where (the event's source, as `kind:id`), and what was said with it."""

    option: OptionKind
    scope: AllowScope = AllowScope.SESSION
    by: str = ""
    text: str = ""
    amended: bool = False


class CallItem(Struct, frozen=True):
    """A call: where it is in its life, how it was asked about, and the end of what it printed, after `above` lines.

    `since` is when it began to run (seconds since 1970), `seconds` how long it ran; None where that is not known.
    """

    changed: CallChanged
    asked: bool = False
    answers: tuple[Answered, ...] = ()
    output: str = ""
    above: int = 0
    since: float | None = None
    seconds: float | None = None

    def moved(self, changed: CallChanged, at: float | None) -> "CallItem":
        """Give the call as it is now."""
        item = replace(self, changed=changed, asked=self.asked or changed.status is CallStatus.ASKING)
        match changed.status:
            case CallStatus.STARTING:
                return replace(item, output="", above=0, since=None)  # an earlier run's output is not this one's
            case CallStatus.RUNNING:
                return replace(item, since=at)
            case CallStatus.FINISHED:
                took = None if at is None or self.since is None else max(0.0, at - self.since)
                # From here on the result says what it printed, now and whenever the session is told again.
                return replace(item, since=None, seconds=took, output="", above=0)
            case _:
                return item


class OwnCommandItem(Struct, frozen=True):
    """A command of the person's own: the end of what it printed, after `above` lines, and what is `said` at its end.

    `since` is when it began (seconds on the surface's clock), None once it has ended; then `seconds` is how long it
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


_Printing = TypeVar("_Printing", CallItem, OwnCommandItem)


def with_output(item: _Printing, text: str) -> _Printing:
    """Give a call or command with more output: the end of it, and how many lines are above that."""
    output, above = item.output + text, item.above
    if len(output) > 2 * MOST_PRINTED:
        above += output.count("\n", 0, len(output) - MOST_PRINTED)
        output = output[-MOST_PRINTED:]
    return replace(item, output=output, above=above)


class AnswerItem(Struct, frozen=True):
    """A question about no call, and how it was answered.

    Of a permission, which a subagent asked for, `asked` is what for in a line, and `said` the answer in a few words.
    """

    kind: QuestionKind
    asked: str
    answer: Answered
    said: str = ""


class ChecklistItem(Struct, frozen=True):
    """The task's checklist, as it was at the end of a turn that changed it."""

    markdown: str


class ModeItem(Struct, frozen=True):
    """From here on the session is in another mode."""

    mode: Mode


class ModelItem(Struct, frozen=True):
    """From here on another model works; `why` is said where the user did not ask for it."""

    model: str
    why: str = ""


class CompactedItem(Struct, frozen=True):
    """Something left the conversation to make room."""

    made: ContextCompacted


class RetryItem(Struct, frozen=True):
    """A request failed and went out again after `seconds`, the `attempt`th time of `most` (0: not known).

    `until` is when the provider's limit resets (milliseconds since 1970), where that is waited for.
    """

    error: ModelError
    attempt: int
    seconds: float
    most: int = 0
    until: int = 0


class NoteItem(Struct, frozen=True):
    """A short word of Treadle itself."""

    text: str
    warns: bool = False


class ProblemItem(Struct, frozen=True):
    """An error for a person: what happened, why, and what to do; `failed` is that of a call of a `model`."""

    what: str
    why: str = ""
    fix: str = ""
    failed: ModelError | None = None
    model: str = ""


class TurnItem(Struct, frozen=True):
    """The end of a turn; `files` are named as seen from the workspace.

    `seconds` is how long it worked, `waited` how long it waited for the person in that time; None where not known.
    `left_open` says what of the checklist is not done, although the model said that the task is. `turn` is its number,
    0 where it is not known. `restored` counts the files of which nothing is left, as they were restored since; they are
    neither among `files` nor in the outcome. Of those that were restored `in_part` these have what is left.
    """

    outcome: TurnOutcome
    files: tuple[FileChange, ...] = ()
    seconds: float | None = None
    waited: float = 0.0
    left_open: str = ""
    turn: int = 0
    restored: int = 0
    in_part: int = 0


Item: TypeAlias = (
    SaidItem
    | ProseItem
    | ThoughtItem
    | WritingItem
    | CallItem
    | OwnCommandItem
    | AnswerItem
    | ChecklistItem
    | ModeItem
    | ModelItem
    | CompactedItem
    | RetryItem
    | NoteItem
    | ProblemItem
    | TurnItem
)


class Placed(Struct, frozen=True):
    """An item at its place. `version` is the view's when it last changed; an item of None is gone.

    `seq` is the event of the log with which it came, or the one that was to come next.
    """

    position: int
    version: int
    seq: int
    item: Item | None
