"""The state of the machine: control only. The transcript is the log."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from treadle.context.left_out import Ran
from treadle.protocol.base import Record, Tagged
from treadle.protocol.checkpoints import Restore
from treadle.protocol.children import ChildEnded, ChildStarted
from treadle.protocol.events import Pin, Prompt, Source
from treadle.protocol.goals import GoalJudge, GoalState
from treadle.protocol.limits import Limits, Terms
from treadle.protocol.messages import Enclosure, EnclosureKind, Text
from treadle.protocol.models import ModelChoice, ModelError, ReplyStop, Spent, ToolProtocol
from treadle.protocol.notifications import CallStatus, Phase, TurnStop
from treadle.protocol.permissions import Allowance, Decision, Mode, Question, QuestionKind, Standing
from treadle.protocol.sealed import Passage, PassageKind
from treadle.protocol.tools import Access, CallResult, FileChange, Preview, Rights, ToolCall, ToolEffect, ToolTraits
from treadle.protocol.usage import Usage


class Idle(Tagged, frozen=True, kw_only=True, tag="idle"):
    """No work on the model's side."""


class Assembling(Tagged, frozen=True, kw_only=True, tag="assembling"):
    """The user message of the step is being made."""

    step: int


class AwaitingReply(Tagged, frozen=True, kw_only=True, tag="awaiting_reply"):
    """The model writes. `attempt` numbers the requests of a step; `failures` those that went wrong in a row."""

    step: int
    attempt: int
    failures: int = 0


class Retrying(Tagged, frozen=True, kw_only=True, tag="retrying"):
    """A timer runs before the next attempt; for a limit that resets until then (ms since 1970), `error` says which."""

    step: int
    attempt: int
    failures: int
    timer: str
    until: int = 0
    error: ModelError | None = None


class Compacting(Tagged, frozen=True, kw_only=True, tag="compacting"):
    """Older messages leave the prompt; `attempt` is that of the request which was refused with `error`, 0 if none was.

    `wanted`: the user asked for it, with this `focus` for the summary. `written`: the model wrote `summary`, or could
    not.
    """

    step: int
    attempt: int
    wanted: bool = False
    focus: str = ""
    written: bool = False
    summary: str = ""
    error: ModelError | None = None


class AwaitingBudget(Tagged, frozen=True, kw_only=True, tag="awaiting_budget"):
    """The request waits for the user's yes: to what it can cost; with an `error` to a wait `until` a limit resets."""

    step: int
    attempt: int
    failures: int
    about: str
    until: int = 0
    error: ModelError | None = None


class AwaitingHooks(Tagged, frozen=True, kw_only=True, tag="awaiting_hooks"):
    """Hooks look at the answer with which the turn is to end; `completed`: the model called it that."""

    text: str
    completed: bool = False


Activity: TypeAlias = Idle | Assembling | AwaitingReply | Retrying | Compacting | AwaitingBudget | AwaitingHooks


class CallState(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One call of the present step and where it is in its life.

    `result` of a call that is not finished is that of its first run: the sandbox stopped it, or it changed something in
    a throw-away copy. `rights` are what the user chose for a second run; with `keep` the copy's changes are applied.
    """

    call: ToolCall
    traits: ToolTraits
    status: CallStatus = CallStatus.PROPOSED
    decision: Decision | None = None
    preview: Preview | None = None
    accesses: tuple[Access, ...] = ()
    result: CallResult | None = None
    rerun: bool = False
    amended: bool = False
    rights: Rights | None = None
    keep: str = ""

    @property
    def pure(self) -> bool:
        """Whether it only reads."""
        return self.traits.effect is ToolEffect.PURE

    @property
    def begins_again(self) -> bool:
        """Whether it ran when the program ended, and does not run again yet."""
        return self.rerun and self.status is CallStatus.STARTING

    @property
    def finished(self) -> bool:
        """Whether its result is known."""
        return self.status is CallStatus.FINISHED


class TurnState(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What is counted from a user's request to its end. `tainted`: it read text from outside; `fetched`: these URLs.

    `worked`: it changed a file or ran a command. `reminders` were given before its end, the last one after the answer
    `held_back`. `more` steps were granted beyond the limit. `presented` is the result that the user has seen already.
    """

    number: int
    sources: tuple[Source, ...]
    steps: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    changes: tuple[FileChange, ...] = ()
    denied: int = 0
    text: str = ""
    tainted: bool = False
    fetched: tuple[str, ...] = ()
    worked: bool = False
    reminders: int = 0
    held_back: str = ""
    more: int = 0
    presented: str = ""


class Waiting(Record, frozen=True, kw_only=True):
    """A prompt that waits, and who sent it."""

    prompt: Prompt
    source: Source


class Calling(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The model that is called, its `fallback` while `replaced` names it, and the `window` that its provider named."""

    choice: ModelChoice = ModelChoice(model="", tool_protocol=ToolProtocol.NATIVE)
    fallback: ModelChoice | None = None
    replaced: ModelChoice | None = None
    window: int | None = None


class Money(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the session has `spent`, the `terms` of the next call, and the bound of its reply in tokens.

    `agreed` names what the user has said yes to.
    """

    spent: Spent = Spent()
    terms: Terms | None = None
    reply_tokens: int | None = None
    agreed: frozenset[str] = frozenset()


class Guard(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What tells that a turn does not get on.

    `mistakes`: replies in a row that could not be used; `auto_approved`: calls in a row that ran without asking.
    `recent`: fingerprints of the last replies with their results; `polls`: looks in a row that showed nothing new.
    """

    mistakes: int = 0
    recent: tuple[str, ...] = ()
    polls: int = 0
    looping: bool = False
    auto_approved: int = 0


class ChecklistState(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The task's checklist, as the model last `read` it, and the model calls since it last wrote it."""

    text: str = ""
    read: str = ""
    age: int = 0


class Space(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How often room was made for this step, which would have taken `exceeded` tokens, and what fills the window.

    `wanted`: the focus of a compaction that waits; `given`: its summary, which a person has `reviewed` or is asked
    about. `summary`: the last one of the model's that was used, until there is another. `pins` never leave the prompt.
    """

    compactions: int = 0
    exceeded: int = 0
    largest: str = ""
    wanted: str | None = None
    given: str = ""
    reviewed: bool = False
    summary: str = ""
    pins: tuple[Pin, ...] = ()


class ChildState(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A subagent that goes on, or that `ended` while its call goes on; `left`: its call is not in the conversation."""

    started: ChildStarted
    ended: ChildEnded | None = None
    left: bool = False


class FilesState(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How many checkpoints were `taken`, and the `trees` of the last one.

    `covered` is the last step before which one is wanted (negative: a first one was begun early); `changing` the step
    in which something may have changed files since the last one; 0 for none. `restoring` is what the user wants.
    """

    taken: int = 0
    trees: tuple[str, ...] = ()
    covered: int = 0
    changing: int = 0
    restoring: Restore | None = None


class Goal(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the session works on until it is met, and how it `stands`, for which `reason`, `by` what judged it.

    `due`: a turn has ended, or the user says so, and it is asked whether it is met; nothing is until then. `same`
    counts checks in a row with this `digest`; `steps` since the user last spoke (`since`, ms) count for a limit.
    """

    condition: str
    check: str = ""
    stands: GoalState = GoalState.ACTIVE
    reason: str = ""
    by: GoalJudge | None = None
    due: bool = False
    digest: str = ""
    same: int = 0
    steps: int = 0
    since: int = 0


class State(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything that `advance` knows.

    `calls` are those of this step, in the reply's order; `unread` those of an ended turn whose results the model has
    yet to read. `hint`: how to write what its reply seems to have meant. `changed` are the files that the session
    changed, by the checkpoint `known_at` and calls since; `unseen` changed in this turn, and no checkpoint holds them;
    hooks changed those `hooked` for the next one. `runs`: its last commands. Of its `subagents` so far, `children` go
    on, or their call has yet to tell of them; what those `merging` changed comes in now. `held` prompts wait for the
    user. `stopping`: why the turn is cancelled if not by the user, `stopped_by` what a hook said that did. `cut`: an
    answer as far as the output limit let it. `returns`: hooks sent the answer back since the last call; `refused` calls
    got a no. What was `asked` besides has no answer yet. The time of a bounded turn counts from `since` on (ms since
    1970), and stands since `asked_at`; earlier turns `made` so many steps. The next turn pays for `unbilled` subagents.
    """

    session_id: str = ""
    seq: int = 0
    mode: Mode = Mode.ASK
    model: Calling = Calling()
    limits: Limits = Limits()
    user_present: bool = False
    activity: Activity = Idle()
    step: int = 0
    turns: int = 0
    turn: TurnState | None = None
    reply: ReplyStop | None = None
    hint: str = ""
    calls: tuple[CallState, ...] = ()
    unread: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    queue: tuple[Waiting, ...] = ()
    held: tuple[Waiting, ...] = ()
    delivering: tuple[Prompt, ...] = ()
    notes: tuple[Passage, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    money: Money = Money()
    guard: Guard = Guard()
    checklist: ChecklistState = ChecklistState()
    space: Space = Space()
    files: FilesState = FilesState()
    changed: tuple[FileChange, ...] = ()
    unseen: tuple[str, ...] = ()
    known_at: int = 0
    runs: tuple[Ran, ...] = ()
    children: tuple[ChildState, ...] = ()
    subagents: int = 0
    goal: Goal | None = None
    cancelling: bool = False
    stopping: TurnStop | None = None
    stopped_by: str = ""
    cut: str = ""
    returns: int = 0
    merging: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    since: int = 0
    asked_at: int = 0
    hooked: tuple[FileChange, ...] = ()
    made: int = 0
    refused: int = 0
    unbilled: tuple[ChildEnded, ...] = ()

    @property
    def choice(self) -> ModelChoice:
        """The model that is called now."""
        return self.model.choice


replace = msgspec.structs.replace


def with_note(state: State, note: str) -> State:
    """Tell the model something with its next message."""
    return with_notes(state, (Passage(kind=PassageKind.NOTE, text=note),))


def with_notes(state: State, notes: Iterable[Passage]) -> State:
    """Give the model these passages with its next message."""
    return replace(state, notes=(*state.notes, *notes))


def with_enclosed(state: State, enclosed: Iterable[Enclosure]) -> State:
    """Give the model what goes along with an answer of the user; of pictures there is no more than a name."""
    texts = ((one.origin, block.text) for one in enclosed for block in one.content if isinstance(block, Text))
    return with_notes(state, (Passage(kind=PassageKind.FILES, text=text, origin=origin) for origin, text in texts))


def tainted_by(state: State, enclosed: Iterable[Enclosure]) -> State:
    """Note that text from outside is read in this turn where a page goes along with the user's words."""
    pages = tuple(one.origin for one in enclosed if one.kind is EnclosureKind.PAGE)
    if not pages or state.turn is None:
        return state
    fetched = tuple(dict.fromkeys((*state.turn.fetched, *pages)))
    return replace(state, turn=replace(state.turn, tainted=True, fetched=fetched))


def guarded(state: State, **changes: Any) -> State:
    """Change what the guard knows."""
    return replace(state, guard=replace(state.guard, **changes))


def with_model(state: State, choice: ModelChoice) -> State:
    """Call this model from the next request on."""
    same = choice.model == state.choice.model
    return replace(state, model=replace(state.model, choice=choice, window=state.model.window if same else None))


def standing(state: State) -> Standing:
    """Say what a decision depends on beside the call."""
    plain, turn = Standing(mode=state.mode, allowances=state.allowances), state.turn
    return plain if turn is None else replace(plain, tainted=turn.tainted, fetched=turn.fetched)


def is_beside(question: Question) -> bool:
    """Whether a question does not hold the turn up: a running call asks it, or a subagent."""
    return question.kind is QuestionKind.ELICITATION or bool(question.child)


def phase(state: State) -> Phase:
    """Say what the session waits for."""
    if state.cancelling:
        return Phase.CANCELLING
    match state.activity:
        case Assembling():
            return Phase.ASSEMBLING_CONTEXT
        case AwaitingReply():
            return Phase.AWAITING_LLM_RESPONSE
        case Retrying():
            return Phase.WAITING_TO_RETRY
        case Compacting():
            return Phase.COMPACTING
        case AwaitingBudget():
            return Phase.AWAITING_USER_CONFIRMATION
        case AwaitingHooks():
            return Phase.JUDGING
        case Idle():
            return _phase_of_calls(state)


def _phase_of_calls(state: State) -> Phase:
    statuses = {call.status for call in state.calls}
    if statuses & {CallStatus.STARTING, CallStatus.RUNNING}:
        return Phase.EXECUTING_TOOL
    if statuses & {CallStatus.PROPOSED, CallStatus.JUDGING} and not state.questions:
        return Phase.JUDGING
    return Phase.AWAITING_USER_CONFIRMATION if state.questions else Phase.WAITING_FOR_EVENT
