"""Notifications: what surfaces are told. The ones marked live are not kept; the rest follow from the log."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from msgspec.structs import replace

from treadle.protocol.base import Record, Tagged
from treadle.protocol.checkpoints import OwnTotal, Restored
from treadle.protocol.children import ChildEnded, ChildOutcome, ChildStarted
from treadle.protocol.goals import GoalStatus
from treadle.protocol.messages import Message, UserContent
from treadle.protocol.models import ModelError
from treadle.protocol.permissions import Allowance, AllowScope, Decision, Mode, OptionKind, Question
from treadle.protocol.tools import CallResult, FileChange, Flow, Preview, ToolCall, ToolKind
from treadle.protocol.usage import Usage


class Phase(StrEnum):
    """What the session waits for."""

    WAITING_FOR_EVENT = "WAITING_FOR_EVENT"
    ASSEMBLING_CONTEXT = "ASSEMBLING_CONTEXT"
    AWAITING_LLM_RESPONSE = "AWAITING_LLM_RESPONSE"
    JUDGING = "JUDGING"
    AWAITING_USER_CONFIRMATION = "AWAITING_USER_CONFIRMATION"
    EXECUTING_TOOL = "EXECUTING_TOOL"
    COMPACTING = "COMPACTING"
    WAITING_TO_RETRY = "WAITING_TO_RETRY"
    CANCELLING = "CANCELLING"


class CallStatus(StrEnum):
    """Where a call is in its life."""

    PROPOSED = "proposed"
    JUDGING = "judging"
    ASKING = "asking"
    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"


class TurnStop(StrEnum):
    """Why a turn ended: ACP's stop reasons, then our own."""

    END_TURN = "end_turn"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"
    ERROR = "error"
    MISTAKES = "mistakes"
    LOOP = "loop"
    BUDGET = "budget"
    TIME = "time"


CHILD_OUTCOMES: Mapping[TurnStop, ChildOutcome] = MappingProxyType(
    {
        TurnStop.END_TURN: ChildOutcome.DONE,
        TurnStop.MAX_TURN_REQUESTS: ChildOutcome.LIMIT,
        TurnStop.BUDGET: ChildOutcome.LIMIT,
        TurnStop.TIME: ChildOutcome.LIMIT,
        TurnStop.LOOP: ChildOutcome.FAILED,
        TurnStop.MISTAKES: ChildOutcome.FAILED,
        TurnStop.ERROR: ChildOutcome.FAILED,
        TurnStop.REFUSAL: ChildOutcome.REFUSED,
        TurnStop.CANCELLED: ChildOutcome.INTERRUPTED,
    }
)
"""How a subagent ended, by what ended its turn."""

BY_HOOK = "a hook: "
"""How `why` begins where a hook ended the turn, with its reason behind that."""


class TurnOutcome(Record, frozen=True, kw_only=True):
    """The end of a turn. Of the calls that were `refused`, `denied` were for want of anybody to ask. `cost`: dollars.

    `changes` are what is left of the turn's own work. They are `exact` where checkpoints tell them; otherwise they are
    what tools reported, and commands may have changed more. `unseen` are files that changed and that no checkpoint
    holds, so nothing brings them back. `why` says which limit or hook ended it.
    """

    stop: TurnStop
    text: str = ""
    completed: bool = False
    error: ModelError | None = None
    steps: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    changes: tuple[FileChange, ...] = ()
    denied: int = 0
    why: str = ""
    exact: bool = False
    unseen: tuple[str, ...] = ()
    refused: int = 0

    @property
    def by_hook(self) -> bool:
        """Whether a hook of the user ended it."""
        return self.stop is TurnStop.CANCELLED and self.why.startswith(BY_HOOK)

    @property
    def ended(self) -> str:
        """What ended it, in a word for lists: its `stop`, or `hook`."""
        return "hook" if self.by_hook else self.stop.value


class PhaseChanged(Tagged, frozen=True, kw_only=True, tag="phase_changed"):
    """The session waits for something else now."""

    phase: Phase


class TurnStarted(Tagged, frozen=True, kw_only=True, tag="turn_started"):
    """A turn begins."""

    turn: int


class TurnResumed(Tagged, frozen=True, kw_only=True, tag="turn_resumed"):
    """A program goes on with a turn that another one began; none worked on it since what was last told."""


NOT_THE_USER = frozenset({"mcp", "timer", "monitor", "hook", "goal", "subagent", "parent"})
"""Kinds of sources whose prompts are not the user's own words."""


class PromptDelivered(Tagged, frozen=True, kw_only=True, tag="prompt_delivered"):
    """A prompt goes to the model with the next step; `enclosed` names what goes along with it.

    `by` is the source, `kind:id`, of one that the user did not write.
    """

    prompt_id: str
    content: tuple[UserContent, ...]
    enclosed: tuple[str, ...] = ()
    by: str = ""


class QueuedPrompt(Record, frozen=True, kw_only=True):
    """A prompt that waits; `enclosed` names what goes along with it, `steer` says that it goes at the next step."""

    id: str
    content: tuple[UserContent, ...]
    enclosed: tuple[str, ...] = ()
    steer: bool = False


class QueueChanged(Tagged, frozen=True, kw_only=True, tag="queue_changed"):
    """These prompts wait now, and these are `held` until the user sends or drops them."""

    prompts: tuple[QueuedPrompt, ...]
    held: tuple[QueuedPrompt, ...] = ()


class TextDelta(Tagged, frozen=True, kw_only=True, tag="text_delta"):
    """Live: the next piece of the answer."""

    text: str


class ThinkingDelta(Tagged, frozen=True, kw_only=True, tag="thinking_delta"):
    """Live: the next piece of reasoning."""

    text: str


class CallDelta(Tagged, frozen=True, kw_only=True, tag="call_delta"):
    """Live: a call is being written; `parameter` is empty when it just began."""

    index: int
    name: str
    parameter: str = ""
    text: str = ""


class ReplyDropped(Tagged, frozen=True, kw_only=True, tag="reply_dropped"):
    """What was streamed of this reply does not count; `usage` and `cost` (US dollars, None if unknown) do.

    `kept` is the text that stays: of a reply that the user cut, or that was `left` by a program that ended.
    """

    kept: Message | None = None
    left: bool = False
    usage: Usage = Usage()
    cost: float | None = 0.0


class MessageDone(Tagged, frozen=True, kw_only=True, tag="message_done"):
    """The model's message is whole."""

    step: int
    message: Message
    usage: Usage
    cost: float | None = None


class CallChanged(Tagged, frozen=True, kw_only=True, tag="call_changed"):
    """A call moved on in its life. What a call says that does not just run (`flow`) is told by other notifications."""

    call: ToolCall
    kind: ToolKind
    flow: Flow = Flow.RUN
    status: CallStatus
    decision: Decision | None = None
    preview: Preview | None = None
    result: CallResult | None = None


class CallOutput(Tagged, frozen=True, kw_only=True, tag="call_output"):
    """Live: output of a running call."""

    call_id: str
    text: str


class ChildChanged(Tagged, frozen=True, kw_only=True, tag="child_changed"):
    """Where a subagent of a call is: it began, does something now (live), or ended with this `outcome`.

    `cost` is in US dollars, None if unknown. `files` were changed, as far as all are known; `kept`: as of its end.
    """

    session_id: str
    agent: str
    task: str
    call_id: str = ""
    background: bool = False
    doing: str = ""
    outcome: ChildOutcome | None = None
    why: str = ""
    steps: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    files: int = 0
    kept: str = ""


def child_changed(started: ChildStarted, ended: ChildEnded | None = None) -> ChildChanged:
    """Tell where a subagent is that began so and, where it is over, ended so."""
    changed = ChildChanged(
        session_id=started.session_id,
        agent=started.agent,
        task=started.task,
        call_id=started.call_id,
        background=started.background,
    )
    if ended is None:
        return changed
    return replace(
        changed,
        outcome=ended.outcome,
        why=ended.why,
        steps=ended.steps,
        usage=ended.usage,
        cost=ended.cost,
        files=len(ended.changes) if ended.exact else 0,
        kept=ended.kept,
    )


class ChildSaid(Tagged, frozen=True, kw_only=True, tag="child_said"):
    """Live: a subagent of a call wrote a message, or a call of its own came to its end."""

    session_id: str
    call_id: str
    said: "MessageDone | CallChanged"


class QuestionAsked(Tagged, frozen=True, kw_only=True, tag="question_asked"):
    """The session waits for a person."""

    question: Question


class QuestionClosed(Tagged, frozen=True, kw_only=True, tag="question_closed"):
    """A question is answered, or no longer matters (`option` None); `scope` says how long `allow_always` holds.

    `by` names the surface on which it was answered: the event's source, as `kind:id`. `text` is what the person said
    with it, and `amended` that they changed the call.
    """

    question_id: str
    option: OptionKind | None = None
    scope: AllowScope = AllowScope.SESSION
    by: str = ""
    text: str = ""
    amended: bool = False


class ResultPresented(Tagged, frozen=True, kw_only=True, tag="result_presented"):
    """The result of the task, before the command that goes with it is asked about or run.

    The text of the turn's end begins with the same words; a surface does not show them twice.
    """

    text: str


class RetryScheduled(Tagged, frozen=True, kw_only=True, tag="retry_scheduled"):
    """The same request goes out again after `seconds`: the `attempt`th time of `most` (0 where that is not known).

    `until` is the moment (milliseconds since 1970) at which the provider's limit resets, where that is waited for.
    """

    attempt: int
    seconds: float
    error: ModelError
    most: int = 0
    until: int = 0


class ContextCompacted(Tagged, frozen=True, kw_only=True, tag="context_compacted"):
    """Older messages left the prompt, or results were cut: it took `before` tokens and takes `after`.

    `summary` stands in the place of the messages.
    """

    dropped: int
    summary: str = ""
    before: int = 0
    after: int = 0


class ModeChanged(Tagged, frozen=True, kw_only=True, tag="mode_changed"):
    """The mode is another one now."""

    mode: Mode


class ModelChanged(Tagged, frozen=True, kw_only=True, tag="model_changed"):
    """The model is another one now; `why` is said where the user did not ask for it."""

    model: str
    why: str = ""


class ChecklistChanged(Tagged, frozen=True, kw_only=True, tag="checklist_changed"):
    """The task's checklist is this Markdown now."""

    text: str


class AllowancesChanged(Tagged, frozen=True, kw_only=True, tag="allowances_changed"):
    """These things are allowed for this session now."""

    allowances: tuple[Allowance, ...]


class GoalChanged(Tagged, frozen=True, kw_only=True, tag="goal_changed"):
    """The goal of the session was set, checked, paused or given up, or (None) there is none any more."""

    goal: GoalStatus | None = None


class OwnWorkChanged(Tagged, frozen=True, kw_only=True, tag="own_work_changed"):
    """How much is left of what the session itself changed since it began; of `restored` files, what of each."""

    total: OwnTotal
    restored: tuple[FileChange, ...] = ()


class FilesRestored(Tagged, frozen=True, kw_only=True, tag="files_restored"):
    """What the user wanted back was brought back; `conversation`: they wanted that back, too."""

    restored: Restored
    conversation: bool = False


class ConversationRewound(Tagged, frozen=True, kw_only=True, tag="conversation_rewound"):
    """The conversation goes on from where it was after event `to`: what came since has left it, or come back into it.

    What had left it by then has left it again.
    """

    to: int


class Notice(Tagged, frozen=True, kw_only=True, tag="notice"):
    """Live: something that the user should know and that nothing waits for.

    `usage` and `cost` (US dollars, None if unknown) are what it tells of that no turn counts. `quiet`: it warns of
    nothing.
    """

    text: str
    quiet: bool = False
    usage: Usage = Usage()
    cost: float | None = 0.0


class TurnEnded(Tagged, frozen=True, kw_only=True, tag="turn_ended"):
    """The turn is over."""

    outcome: TurnOutcome


Notification: TypeAlias = (
    PhaseChanged
    | TurnStarted
    | TurnResumed
    | PromptDelivered
    | QueueChanged
    | TextDelta
    | ThinkingDelta
    | CallDelta
    | ReplyDropped
    | MessageDone
    | CallChanged
    | CallOutput
    | ChildChanged
    | ChildSaid
    | QuestionAsked
    | QuestionClosed
    | ResultPresented
    | RetryScheduled
    | ContextCompacted
    | ModeChanged
    | ModelChanged
    | ChecklistChanged
    | GoalChanged
    | AllowancesChanged
    | OwnWorkChanged
    | FilesRestored
    | ConversationRewound
    | Notice
    | TurnEnded
)
