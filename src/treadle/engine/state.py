"""The state of the machine: control only. The transcript is the log."""

from typing import TypeAlias

import msgspec

from treadle.context.left_out import Ran
from treadle.protocol.base import Record, Tagged
from treadle.protocol.events import Limits, Prompt, Source, Terms
from treadle.protocol.models import ModelChoice, ReplyStop, Spent, ToolProtocol, Usage
from treadle.protocol.notifications import CallStatus, Phase, TurnStop
from treadle.protocol.permissions import Allowance, Decision, Mode, Question, Standing
from treadle.protocol.tools import (
    Access,
    CallResult,
    FileChange,
    Preview,
    Rights,
    ToolCall,
    ToolEffect,
    ToolTraits,
)


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
    """A timer runs before the next attempt."""

    step: int
    attempt: int
    failures: int
    timer: str


class Compacting(Tagged, frozen=True, kw_only=True, tag="compacting"):
    """Older messages leave the prompt; `attempt` is that of the request which was too long, 0 if none was sent."""

    step: int
    attempt: int


class Held(Tagged, frozen=True, kw_only=True, tag="held"):
    """The request waits for the user's yes to what it can cost."""

    step: int
    attempt: int
    failures: int
    about: str


Activity: TypeAlias = Idle | Assembling | AwaitingReply | Retrying | Compacting | Held


class CallState(Record, frozen=True, kw_only=True):
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
    def finished(self) -> bool:
        """Whether its result is known."""
        return self.status is CallStatus.FINISHED


class Turn(Record, frozen=True, kw_only=True):
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


class State(Record, frozen=True, kw_only=True):
    """Everything that `advance` knows. `calls` are those of the present step, in the order of the reply.

    `replaced` is the chosen model while the fallback stands in for it; `unasked` counts the calls that ran in a row
    without anybody being asked; `asked` names what the user has agreed to spend; `reply_tokens` bounds the next reply;
    `stopping` is why the turn is being cancelled if it was not the user.
    `recent` are fingerprints of the last replies with their results, `polls` the looks in a row at a running command
    that showed nothing new. `hint` tells the model how to write what its reply seems to have meant. `compactions`
    counts how often room was made for this step, as it would have taken `exceeded` tokens; `window` is the one that
    the provider named when it refused a request. `changed` are the files that the session changed, `runs` its last
    commands.
    """

    session_id: str = ""
    seq: int = 0
    mode: Mode = Mode.ASK
    model: str = ""
    tool_protocol: ToolProtocol = ToolProtocol.NATIVE
    thinking_budget: int | None = None
    fallback: ModelChoice | None = None
    replaced: ModelChoice | None = None
    limits: Limits = Limits()
    user_present: bool = False
    activity: Activity = Idle()
    step: int = 0
    turns: int = 0
    turn: Turn | None = None
    reply: ReplyStop | None = None
    hint: str = ""
    calls: tuple[CallState, ...] = ()
    questions: tuple[Question, ...] = ()
    queue: tuple[Waiting, ...] = ()
    delivering: tuple[Prompt, ...] = ()
    notes: tuple[str, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    unasked: int = 0
    spent: Spent = Spent()
    terms: Terms | None = None
    reply_tokens: int | None = None
    asked: frozenset[str] = frozenset()
    checklist: str = ""
    checklist_told: str = ""
    checklist_age: int = 0
    mistakes: int = 0
    recent: tuple[str, ...] = ()
    polls: int = 0
    looping: bool = False
    compactions: int = 0
    exceeded: int = 0
    window: int | None = None
    changed: tuple[FileChange, ...] = ()
    runs: tuple[Ran, ...] = ()
    largest: str = ""
    cancelling: bool = False
    stopping: TurnStop | None = None


replace = msgspec.structs.replace


def with_model(state: State, choice: ModelChoice) -> State:
    """Call this model from the next request on."""
    return replace(
        state,
        model=choice.model,
        tool_protocol=choice.tool_protocol,
        thinking_budget=choice.thinking_budget,
        window=state.window if choice.model == state.model else None,
    )


def standing(state: State) -> Standing:
    """Say what a decision depends on beside the call."""
    if state.turn is None:
        return Standing(mode=state.mode, allowances=state.allowances)
    return Standing(
        mode=state.mode, tainted=state.turn.tainted, fetched=state.turn.fetched, allowances=state.allowances
    )


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
        case Held():
            return Phase.AWAITING_USER_CONFIRMATION
        case Idle():
            return _phase_of_calls(state)


def _phase_of_calls(state: State) -> Phase:
    statuses = {call.status for call in state.calls}
    if statuses & {CallStatus.STARTING, CallStatus.RUNNING}:
        return Phase.EXECUTING_TOOL
    if statuses & {CallStatus.PROPOSED, CallStatus.JUDGING} and not state.questions:
        return Phase.JUDGING
    if state.questions:
        return Phase.AWAITING_USER_CONFIRMATION
    return Phase.WAITING_FOR_EVENT
