"""What the engine needs from outside, as Protocols; adapters implement them without importing the engine's insides."""

from asyncio import CancelledError
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct, field

from treadle.context.compaction_words import CompactionSettings
from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored, Rewound
from treadle.protocol.errors import ToolError
from treadle.protocol.events import Answer, Event, Op
from treadle.protocol.models import ModelRequest, ModelSpec, Spent, StreamEvent, ToolProtocol
from treadle.protocol.notifications import TurnOutcome
from treadle.protocol.permissions import Allowance, AllowScope, Decision, Question, Situation, Standing
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import Access, CallResult, FileChange, Preview, Rights, ToolCall, ToolSpec

Output = Callable[[str], None]
"""Takes live output of a running call."""


class UnsentError(CancelledError):
    """The cancel of a model call whose request had not left yet, so that nothing of it is billed."""


@contextmanager
def unsent() -> Iterator[None]:
    """Say with a cancel that the request of the call has not left."""
    try:
        yield
    except CancelledError as cancelled:
        raise UnsentError from cancelled


class Provider(Protocol):
    """A model behind one wire API."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the model. Never raises: ends with exactly one `StreamStop` or `StreamFailure`.

        Closing the generator (or cancelling the task that reads it) closes the connection at once. A cancel before
        the request has left comes out as `UnsentError`, where that is known.
        """
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


class Prepared(Struct, frozen=True, kw_only=True):
    """A call made ready: what it will touch (judged), what a person is shown, and the run itself.

    `run` does exactly what was prepared or raises `ToolError`; it checks by itself that files to change are still
    as they were. When its task is cancelled it ends within a second, leaves nothing running, and re-raises
    `CancelledError` after reporting what it has through the output. `confined` gives the same call, with the same
    accesses, to be run under these rights: a call that runs a command runs in no other way. None where it runs none.
    """

    accesses: tuple[Access, ...]
    preview: Preview
    run: Callable[[Output], Awaitable[CallResult]]
    confined: Callable[[Rights], "Prepared"] | None = None


class Tool(Protocol):
    """One tool. It declares and prepares; it never asks for permission."""

    @property
    def spec(self) -> ToolSpec:
        """The declaration that the model and the loop see."""
        ...

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Check the arguments (already valid by the schema) and find out what the call would do; changes nothing.

        Raises `ToolError` with a text that tells the model what to do next.
        """
        ...


class Judge(Protocol):
    """The security layer, bound to a workspace and its rules."""

    def __call__(
        self, spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], standing: Standing
    ) -> Decision:
        """Decide about one call; the decision's digest names exactly what was judged."""
        ...


class RedactedOutput(Protocol):
    """Hides secrets in a text that comes in chunks; holds back what might be the beginning of one."""

    def feed(self, chunk: str) -> str:
        """Give what can be shown."""
        ...

    def finish(self) -> str:
        """Give the rest."""
        ...


class TextRedactor(Protocol):
    """Hides secrets before anything is logged, shown or sent."""

    def redact(self, text: str) -> str:
        """Hide the secrets of a whole text."""
        ...

    def stream(self) -> RedactedOutput:
        """Begin a text that comes in chunks."""
        ...


class EventLog(Protocol):
    """Where the events of one session go."""

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        """Commit the events in one transaction; `durable` also survives a power cut. Raises `StoreError`."""
        ...


class Observer(Protocol):
    """Reads events after they are in the log, such as a ledger or an index; it changes nothing of the session."""

    async def __call__(self, events: Sequence[Event], /) -> None:
        """Take note of these. Raises `TreadleError` where that fails: the user is told, and the session goes on."""
        ...


class BeforeStep(Protocol):
    """Looks for what the user did outside of the session, such as in a file, before a step is assembled."""

    async def __call__(self) -> Op | None:
        """Give what the session should take as the user's word."""
        ...


class Environment(Protocol):
    """Facts about the surroundings that the model is told with each step."""

    async def describe(self, *, first: bool, situation: Situation | None) -> str:
        """Text for the environment block; `first` adds what is told once (file list, roots).

        `situation` is None where it is the one that the model was told of before.
        """
        ...


class SharedSpent(Struct, frozen=True, kw_only=True):
    """What was spent, and is reserved: by all in a `day`, by others of the `tree`, by all of the session's `run`."""

    day: Spent = Spent()
    tree: Spent = Spent()
    run: Spent = Spent()


class SharedBudgets(Protocol):
    """Keeps the budgets that sessions share: of the day, of a session with its subagents, of a run of many tasks."""

    async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
        """Reserve for the next call, of a step or `aside`; gives what else counts."""
        ...


class KeepChanges(Protocol):
    """Applies what a command changed in its throw-away copy."""

    async def __call__(self, digest: str, /) -> CallResult:
        """Apply exactly the changes that this digest names, or nothing: then the result says why.

        After a restart in the middle of it, calling it again finishes it or tells what came of it.
        """
        ...


async def keep_nothing(digest: str, /) -> CallResult:  # noqa: ARG001 - the port's shape
    """Refuse: there are no throw-away copies."""
    raise ToolError("Nothing was applied: the changes are gone. Make the call again.")


class KnownChanges(Struct, frozen=True, kw_only=True):
    """What is known of a session's own work, by checkpoint `n` and what calls reported since.

    `turn` is that of the turn, which began with `first_step`.
    """

    n: int
    session: tuple[FileChange, ...]
    turn: tuple[FileChange, ...]
    first_step: int


class Checkpoints(Protocol):
    """Keeps the files of the workspace as they were, and brings them back. All raise `TreadleError`."""

    async def take(self, n: int, last: Sequence[str], /) -> CheckpointTaken:
        """Keep the files as number `n`, and say what changed since the `last` trees.

        Its moment is `found` where something else than a call may have changed files for the session since.
        """
        ...

    async def own(self, taken: CheckpointTaken, known: KnownChanges, /) -> CheckpointTaken:
        """Have a checkpoint say what is the session's own work now, where that is not what is known."""
        ...

    async def restore(self, checkpoint: int, how_far: Callable[[int, int], None], /) -> Restored:
        """Bring files back that the session changed since; what others changed since stays.

        `how_far` hears, from any thread, how many files of how many are done.
        """
        ...

    async def rewind(self, wanted: Restore, /) -> Rewound:
        """Find the place in the log at which the conversation was when the checkpoint was taken."""
        ...


class HookDecision(StrEnum):
    """What hooks say of a call, a message or the end of a turn; the last of these that one of them says counts."""

    NONE = "none"
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class HookWord(Struct, frozen=True, kw_only=True):
    """What the hooks of one moment say together. `by` names the hook that decided, with where it is from.

    A call runs with these `arguments` instead of its own; `context` is told to the model, `output` stands in the place
    of what the call brought. With `stop` the turn ends, for that reason.
    """

    decision: HookDecision = HookDecision.NONE
    reason: str = ""
    by: str = ""
    arguments: Mapping[str, Any] | None = None
    context: str = ""
    output: str | None = None
    stop: str | None = None


class Hooks(Protocol):
    """What the user's own programs say at certain moments; none of these raises."""

    async def before_call(self, call: ToolCall, /) -> HookWord:
        """Look at a call before it is prepared and judged."""
        ...

    async def permission(self, call: ToolCall, decision: Decision, /) -> HookWord:
        """Answer in the user's place where a call needs a yes."""
        ...

    async def after_call(self, call: ToolCall, result: CallResult, /) -> HookWord:
        """Look at what came of a call."""
        ...

    async def before_end(self, text: str, /, *, again: bool) -> HookWord:
        """Look at the answer that ends a turn; where that is denied, the reason is what the model goes on with.

        `again`: the turn itself was begun so.
        """
        ...

    async def on_prompt(self, text: str, /) -> HookWord:
        """Look at what the user asks for; where that is denied, it is not sent."""
        ...


class Asked(Struct, frozen=True, kw_only=True):
    """What a running call asks the user for: the values of a flat JSON Schema of an object, to open a URL, or a yes.

    `who` asks, such as an MCP server. `offers` are what a lasting yes allows. `outlives`: it may be asked when the call
    is over, for what the call started and left to run. `relayed` is the question of a subagent, which is put as it is.
    """

    text: str
    form: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""
    who: str = ""
    offers: tuple[Allowance, ...] = ()
    outlives: bool = False
    relayed: Question | None = None


class PersonReply(Struct, frozen=True, kw_only=True):
    """What the user said to what a call asked. Neither accepted nor declined: nobody is there, or it was withdrawn
    since the user interrupts.

    `scope` says for how long a lasting yes holds; None for a yes to this one question. `answer` is what was said to a
    question that was relayed, None where nobody will say anything.
    """

    accepted: bool = False
    declined: bool = False
    withdrawn: bool = False
    scope: AllowScope | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    answer: Answer | None = None


AskPerson = Callable[[Asked], Awaitable[PersonReply]]
"""Asks the user in the middle of a call."""


async def ask_nobody(asked: Asked, /) -> PersonReply:  # noqa: ARG001 - the port's shape
    """Give the answer that stands for nobody being there."""
    return PersonReply()


ask_person: ContextVar[AskPerson] = ContextVar("ask_person", default=ask_nobody)
"""How the call that runs in this context asks the user; another task that asks for it takes it from there."""

running_call: ContextVar[str] = ContextVar("running_call", default="")
"""The id of the call that runs in this context."""


class OutputHandler(Protocol):
    """Brings the end of a turn back to whoever asked for it."""

    def __call__(self, outcome: TurnOutcome, /) -> None:
        """Deliver the outcome; returns at once."""
        ...


class Ports(Struct, frozen=True, kw_only=True):
    """Everything from outside that a session works with.

    `observers` are given every event after it is logged. `trace` keeps what only a developer wants to read of a failure
    inside a tool. `left_out` names the tools that a model is not told of now, each with the reason, which also says
    what to do; without a reason a call of it is judged like any other. `remember` writes allowances to the user's
    rules; raises `StoreError`. `keep` applies what a command changed in a throw-away copy. Without `checkpoints` none
    are taken. With `checklist` any call may carry the task's checklist. `check_tool`
    names the tool that runs the command of a goal; empty: none does. `unbilled` names what is called and is no
    model but a program: it takes no tokens and no money.
    """

    log: EventLog
    environment: Environment
    judge: Judge
    redactor: Callable[[], TextRedactor]
    tools: Mapping[str, Tool]
    left_out: Callable[[str, Situation], Mapping[str, str]]
    provider: Callable[[str], Provider]
    model: Callable[[str], ModelSpec]
    system: Callable[[str, ToolProtocol, Situation], tuple[PromptPart, ...]]
    shared_budgets: SharedBudgets
    remember: Callable[[Sequence[Allowance]], None]
    check_tool: str = ""
    checklist: bool = True
    compaction: CompactionSettings = CompactionSettings()
    keep: KeepChanges = keep_nothing
    checkpoints: Checkpoints | None = None
    unbilled: Collection[str] = ()
    hooks: Hooks | None = None
    clock: Callable[[], int]
    jitter: Callable[[], float]
    observers: Sequence[Observer] = ()
    before_step: Sequence[BeforeStep] = ()
    trace: Callable[[BaseException], None] = lambda _: None
