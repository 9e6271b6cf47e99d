"""Events: the rows of the log.

An op is an event that a surface asked for. The rest is what happened, and what the machine said and decided because of
it: those events follow at once on their cause, in the same transaction, so that the log alone tells what a model read
and a person saw, whatever words and defaults a later version has.
"""

from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from treadle.protocol.base import Record, Tagged
from treadle.protocol.checkpoints import CheckpointTaken, Parent, Restore, Restored, Rewound
from treadle.protocol.children import ChildEnded, ChildMerges, ChildOf, ChildStarted
from treadle.protocol.goals import GoalChecked, SetGoal
from treadle.protocol.limits import Limits, Terms
from treadle.protocol.messages import Enclosure, Message, ResultContent, Text, UserContent
from treadle.protocol.models import ModelChoice, ModelError, ReplyStop
from treadle.protocol.permissions import AllowScope, CallAsked, Decision, Mode, OptionKind
from treadle.protocol.sealed import (
    ChecklistUpdated,
    ModelReplaced,
    Passage,
    PromptContent,
    PromptPart,
    PromptsDelivered,
    QuestionPut,
    ResultMade,
    RetryPlanned,
    SealedResult,
    SideAnswered,
    SideAsked,
    StateSealed,
    TurnSettled,
)
from treadle.protocol.tools import Access, CallResult, Preview, ToolCall, ToolSpec, ToolTraits
from treadle.protocol.usage import Usage

SCHEMA_VERSION = 2


class Source(Record, frozen=True, kw_only=True):
    """Where an event came from; `id` tells two of one kind apart and names the output handler."""

    kind: str
    id: str = ""

    @property
    def name(self) -> str:
        """Both in one word, `kind:id`."""
        return f"{self.kind}:{self.id}"


ENGINE, IMPORTED, FORKED, HOOK = Source(kind="engine"), Source(kind="import"), Source(kind="fork"), Source(kind="hook")
GOAL = Source(kind="goal")  # a check of the session's goal, which is not met yet
FILES = Source(kind="files")  # what the user wrote into a file that the session keeps


class Delivery(StrEnum):
    """When a prompt that comes while the session works reaches the model: after the turn, or at the next step."""

    QUEUE = "queue"
    STEER = "steer"


class Prompt(Tagged, frozen=True, kw_only=True, tag="prompt"):
    """The user asks for something; `enclosed` goes along with their words."""

    id: str
    content: tuple[UserContent, ...]
    delivery: Delivery = Delivery.QUEUE
    enclosed: tuple[Enclosure, ...] = ()


class EditQueued(Tagged, frozen=True, kw_only=True, tag="edit_queued"):
    """The user changes a prompt that waits or is held; no content drops it.

    What goes along with it is `enclosed` from now on, besides what did where it `keeps` that, but for old mentions.
    """

    prompt_id: str
    content: tuple[UserContent, ...] = ()
    enclosed: tuple[Enclosure, ...] = ()
    keeps: bool = False

    def edited(self, prompt: Prompt) -> Prompt:
        """Give the prompt as it is now."""
        words = "\n".join(block.text for block in prompt.content if isinstance(block, Text)) if self.keeps else ""
        kept = (one for one in prompt.enclosed if self.keeps and not is_mentioned(one.origin, words))
        return replace(prompt, content=self.content, enclosed=(*kept, *self.enclosed))


def is_mentioned(origin: str, words: str) -> bool:
    """Whether it is because of these words that something goes along with them."""
    return f"@{origin}" in words or f'@"{origin}"' in words


class MoveQueued(Tagged, frozen=True, kw_only=True, tag="move_queued"):
    """The user has a prompt that waits or is held sent at this time; `place` among those that wait, from 0, None: last.

    One that waits already keeps its place where none is given.
    """

    prompt_id: str
    delivery: Delivery
    place: int | None = None


class Answer(Tagged, frozen=True, kw_only=True, tag="answer"):
    """The user answers a question; `text` is the answer itself, or a comment on a permission, with what is `enclosed`.

    `arguments` amend a call that is allowed: it runs with these instead of its own. `scope` says for how long
    `allow_always` holds.
    """

    question_id: str
    option: OptionKind
    text: str = ""
    arguments: dict[str, Any] | None = None
    scope: AllowScope = AllowScope.SESSION
    enclosed: tuple[Enclosure, ...] = ()


class RevokeAllowance(Tagged, frozen=True, kw_only=True, tag="revoke_allowance"):
    """The user takes back what was allowed for this session."""

    allowance_id: str


class Interrupt(Tagged, frozen=True, kw_only=True, tag="interrupt"):
    """The user stops what is going on, or a hook that says `why`; with `hold`, what waits is held until it is sent."""

    hold: bool = False
    why: str = ""


class SetMode(Tagged, frozen=True, kw_only=True, tag="set_mode"):
    """The user changes the mode, and with it the model where the mode has one of its own."""

    mode: Mode
    choice: ModelChoice | None = None


class SetModel(Tagged, frozen=True, kw_only=True, tag="set_model"):
    """The user changes the model; it takes effect with the next model call."""

    choice: ModelChoice


class SetFallback(Tagged, frozen=True, kw_only=True, tag="set_fallback"):
    """The user names the model that takes over for the rest of a turn when the chosen one keeps failing; None: none."""

    choice: ModelChoice | None = None


class EditChecklist(Tagged, frozen=True, kw_only=True, tag="edit_checklist"):
    """The user changed the task's checklist, which now is this Markdown."""

    text: str


class Noted(Tagged, frozen=True, kw_only=True, tag="noted"):
    """Something outside has a word for the model, such as a changed file; it is read with the next message."""

    notes: tuple[Passage, ...]


class CompactNow(Tagged, frozen=True, kw_only=True, tag="compact_now"):
    """The user wants room to be made: older messages leave the prompt. A summary keeps `focus` above all."""

    focus: str = ""


class Pin(Tagged, frozen=True, kw_only=True, tag="pin"):
    """The user wants a text to stay in the prompt, word for word, whatever leaves it; without a text, no longer."""

    id: str
    text: str = ""


class SetLimits(Tagged, frozen=True, kw_only=True, tag="set_limits"):
    """The user changes the bounds of the session."""

    limits: Limits


class SetPresence(Tagged, frozen=True, kw_only=True, tag="set_presence"):
    """Whether anybody can answer; without a user, what would be asked is denied."""

    user_present: bool


Op: TypeAlias = (
    Prompt
    | EditQueued
    | MoveQueued
    | Answer
    | RevokeAllowance
    | Interrupt
    | SetMode
    | SetModel
    | SetFallback
    | SetLimits
    | SetPresence
    | EditChecklist
    | Noted
    | CompactNow
    | Pin
    | Restore
    | SetGoal
)


class SessionStarted(Tagged, frozen=True, kw_only=True, omit_defaults=False, tag="session_started"):
    """The first event of every log, written whole. `workspace` is an absolute path.

    `roots` are further folders that belong to the workspace. A subagent is a `child_of` another session, which older
    logs do not say; one that begins with the conversation of that session `inherits` its messages.
    """

    session_id: str
    workspace: str
    choice: ModelChoice
    mode: Mode
    limits: Limits = Limits()
    roots: tuple[str, ...] = ()
    fallback: ModelChoice | None = None
    parent: Parent | None = None
    child_of: ChildOf | UnsetType = UNSET
    inherits: tuple[Message, ...] | UnsetType = UNSET


class Resumed(Tagged, frozen=True, kw_only=True, tag="resumed"):
    """Another process took the session up; with `keeps`, not in older logs, files are kept around a decided call."""

    user_present: bool
    keeps: bool | UnsetType = UNSET


class ContextReady(Tagged, frozen=True, kw_only=True, tag="context_ready"):
    """The user message of a step is sealed: the results of these calls, then these passages and prompts.

    `tokens` is what the conversation takes with it. `terms` are given where a budget is set.
    """

    step: int
    results: tuple[SealedResult, ...] = ()
    content: tuple[Passage | PromptContent, ...] = ()
    tokens: int = 0
    terms: Terms | None = None


class OfferChanged(Tagged, frozen=True, kw_only=True, tag="offer_changed"):
    """From this step on the model is sent this system prompt, part by part, and these tools in native calls.

    As long as they stay the same, so does the beginning of each request, which providers keep in a cache.
    """

    step: int
    system: tuple[PromptPart, ...]
    tools: tuple[ToolSpec, ...] = ()


class ContextExceeded(Tagged, frozen=True, kw_only=True, tag="context_exceeded"):
    """The conversation, with the room kept for the reply, is larger than the model's window (tokens)."""

    step: int
    tokens: int
    window: int


class Shortened(Record, frozen=True, kw_only=True):
    """What the model reads of a call's result from now on; the log keeps the whole."""

    call_id: str
    content: tuple[ResultContent, ...]


class SummaryWritten(Tagged, frozen=True, kw_only=True, tag="summary_written"):
    """The model summed up what is to leave the prompt; `error` says why it could not.

    `cost` is in US dollars, None where the price is unknown.
    """

    step: int
    text: str = ""
    error: str = ""
    usage: Usage = Usage()
    cost: float | None = 0.0


class Compacted(Tagged, frozen=True, kw_only=True, tag="compacted"):
    """What events up to number `through` said left the prompt, but for the task; the log keeps it.

    `dropped` counts its messages, and `summary` stands in their place. `shortened` are results that were cut, or that
    a later one supersedes. `largest` names the largest parts of what always stays. The conversation took `before`
    tokens and takes `after`; its words from there on are new to the provider's cache.
    """

    step: int
    through: int = 0
    dropped: int = 0
    largest: str = ""
    summary: str = ""
    shortened: tuple[Shortened, ...] = ()
    before: int = 0
    after: int = 0


class CallProposed(Tagged, frozen=True, kw_only=True, tag="call_proposed"):
    """A whole call was read from the reply, which may still go on. `progress` is the checklist that came with it.

    `outside`: the provider searched the web for this reply before it. `readings` are the codes of what was read for
    the model because it has one possible meaning, in the order in which it was found (`parsing/readings.py`).
    """

    step: int
    attempt: int
    call: ToolCall
    traits: ToolTraits
    progress: str = ""
    outside: bool = False
    readings: tuple[str, ...] = ()


class ReplyPart(Tagged, frozen=True, kw_only=True, tag="reply_part"):
    """More of the text of a reply that is still coming, kept so that a kill does not lose it; the model reads none."""

    step: int
    attempt: int
    text: str


class ReplyFinished(Tagged, frozen=True, kw_only=True, tag="reply_finished"):
    """The model's reply is whole. `cost` is in US dollars, None where the price, or what was used, is unknown.

    `hint` tells the model how to write a call that it wrote in another notation. `doubted`: the provider's count of
    tokens cannot be right, and is not used for the window.
    """

    step: int
    attempt: int
    message: Message
    stop: ReplyStop
    usage: Usage
    cost: float | None = None
    hint: str = ""
    doubted: bool = False


class ReplyFailed(Tagged, frozen=True, kw_only=True, tag="reply_failed"):
    """The model call failed, or was `left` by a program that ended. `jitter` is in [0, 1).

    `partial` is the text that was kept: of a reply that a person cut it is part of the conversation, of one that was
    `left` it is only shown, since the request is sent again.
    """

    step: int
    attempt: int
    error: ModelError
    partial: Message | None = None
    usage: Usage = Usage()
    cost: float | None = None
    jitter: float = 0.0
    left: bool = False


class CallJudged(Tagged, frozen=True, kw_only=True, tag="call_judged"):
    """The security layer's answer for one call; `accesses` is what was judged, with the hashes of files to change.

    Where a hook changed the call, it was judged and runs with these `arguments`.
    """

    call_id: str
    decision: Decision
    preview: Preview
    accesses: tuple[Access, ...] = ()
    arguments: dict[str, Any] | None = None


class CallStarted(Tagged, frozen=True, kw_only=True, tag="call_started"):
    """The intent: the call runs from here on."""

    call_id: str


class CallFinished(Tagged, frozen=True, kw_only=True, tag="call_finished"):
    """The outcome of a call that ran, or could not be prepared. `decision`: what hooks say to what is in its copy."""

    call_id: str
    result: CallResult
    decision: Decision | None = None


class TimerFired(Tagged, frozen=True, kw_only=True, tag="timer_fired"):
    """A timer that the machine started has run out."""

    timer: str


class TurnMayEnd(Tagged, frozen=True, kw_only=True, tag="turn_may_end"):
    """Hooks let a turn end, else a prompt of theirs follows; a `stop` ends the work on the goal, too, and says why."""

    stop: str = ""


EventData: TypeAlias = (
    Prompt
    | EditQueued
    | MoveQueued
    | Answer
    | RevokeAllowance
    | Interrupt
    | SetMode
    | SetModel
    | SetFallback
    | SetLimits
    | SetPresence
    | EditChecklist
    | Noted
    | CompactNow
    | Pin
    | Restore
    | SetGoal
    | GoalChecked
    | CheckpointTaken
    | Restored
    | Rewound
    | SideAsked
    | SideAnswered
    | SessionStarted
    | Resumed
    | OfferChanged
    | ContextReady
    | ContextExceeded
    | SummaryWritten
    | Compacted
    | CallProposed
    | ReplyPart
    | ReplyFinished
    | ReplyFailed
    | CallJudged
    | CallStarted
    | CallAsked
    | ChildStarted
    | ChildMerges
    | ChildEnded
    | CallFinished
    | TimerFired
    | TurnMayEnd
    | PromptsDelivered
    | ResultMade
    | QuestionPut
    | RetryPlanned
    | ModelReplaced
    | ChecklistUpdated
    | TurnSettled
    | StateSealed
)


class Event(Record, frozen=True, kw_only=True):
    """One row of the log: the queue stamps its number, its time (milliseconds since 1970, UTC) and its source."""

    seq: int
    at: int
    source: Source
    data: EventData
