"""Tools: what they declare, and one call of one."""

from enum import StrEnum
from typing import Any, TypeAlias

from treadle.protocol.base import Record, Tagged
from treadle.protocol.messages import ResultContent, Text
from treadle.protocol.usage import Usage


class ToolKind(StrEnum):
    """ACP's tool kinds."""

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    SWITCH_MODE = "switch_mode"
    OTHER = "other"


class ToolEffect(StrEnum):
    """What running it a second time would do: nothing, the same again, or something else."""

    PURE = "pure"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class Flow(StrEnum):
    """What a call means for the loop: it runs, it asks the user, or its result ends the turn.

    After `condense` and `new_task` older messages leave the prompt, and the call's `context` is the summary of them.
    """

    RUN = "run"
    ASK = "ask"
    END_TURN = "end_turn"
    CONDENSE = "condense"
    NEW_TASK = "new_task"


class Risk(StrEnum):
    """The risk class of a tool or of one access (SECURITY, rule 22), mildest first."""

    NONE = "none"
    READ = "read"
    READ_OUTSIDE = "read_outside"
    WRITE = "write"
    EXECUTE = "execute"
    REMOTE = "remote"
    CRITICAL = "critical"


class Origin(StrEnum):
    """Whose words a result holds. What comes from the web or a foreign server taints the rest of the turn."""

    TREADLE = "treadle"
    WORKSPACE = "workspace"
    COMMAND = "command"
    WEB = "web"
    SERVER = "server"


OUTSIDE = frozenset({Origin.WEB, Origin.SERVER})
"""Origins whose words nobody on this machine wrote."""


class ToolTraits(Record, frozen=True, kw_only=True):
    """The part of a tool's declaration that the loop acts on.

    What is done `apart` is done by subagents, which change the workspace only where they merge.
    """

    kind: ToolKind = ToolKind.OTHER
    effect: ToolEffect = ToolEffect.ONCE
    flow: Flow = Flow.RUN
    apart: bool = False


class ToolSpec(Record, frozen=True, kw_only=True):
    """A tool as the model sees it; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]
    traits: ToolTraits
    risk: Risk


class ToolCall(Record, frozen=True, kw_only=True):
    """One call that the model made. A call with a `problem` cannot run; the model reads the problem."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str = ""


class ReadPath(Tagged, frozen=True, kw_only=True, tag="read_path"):
    """Reads a file or lists a directory; `path` is absolute."""

    path: str
    listing: bool = False


class WritePath(Tagged, frozen=True, kw_only=True, tag="write_path"):
    """Creates, changes or (`delete`) removes a file; hashes are SHA-256 in hex, empty where there is no file."""

    path: str
    before: str = ""
    after: str = ""
    delete: bool = False


class RunCommand(Tagged, frozen=True, kw_only=True, tag="run_command"):
    """Runs a shell line in `cwd`; in the `background` it goes on while others run.

    `needs` are the rights that the model asks for, for the `reason` that it gives.
    """

    command: str
    cwd: str
    background: bool = False
    needs: tuple[str, ...] = ()
    reason: str = ""


class FetchUrl(Tagged, frozen=True, kw_only=True, tag="fetch_url"):
    """Sends a request to a URL; `own`: to a server that a command of this session runs."""

    url: str
    method: str = "GET"
    own: bool = False


Access: TypeAlias = ReadPath | WritePath | RunCommand | FetchUrl


class Preview(Record, frozen=True, kw_only=True):
    """What a person is shown before approval: a title, and a diff or a text.

    `result` is the result of the task, of a call that ends the turn and wants to run something too: it is shown first.
    """

    title: str
    text: str = ""
    is_diff: bool = False
    result: str = ""


class FileChange(Record, frozen=True, kw_only=True):
    """A file that a call changed; `before` is empty for a new file, `after` for a deleted one (SHA-256, hex)."""

    path: str
    before: str
    after: str
    added: int = 0
    removed: int = 0


class EditReport(Record, frozen=True, kw_only=True):
    """What came of one edit that a model wrote: `code` is `ok` or why it was refused, `tiers` how blocks were found.

    `places` counts what was replaced where every place was meant; 0 elsewhere.
    """

    path: str
    format: str
    code: str = "ok"
    tiers: tuple[str, ...] = ()
    places: int = 0


class Outcome(StrEnum):
    """How a call ended."""

    OK = "ok"
    FAILED = "failed"
    INVALID = "invalid"
    DENIED = "denied"
    REJECTED = "rejected"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"


class Right(StrEnum):
    """What a command lacked in the sandbox: to read or write a path, to reach the network, or to run outside of it."""

    READ = "read"
    WRITE = "write"
    NETWORK = "network"
    UNSANDBOXED = "unsandboxed"


class SandboxDenial(Record, frozen=True, kw_only=True):
    """What the sandbox stopped: the right that was missing, on what (a path or a host), and how that shows.

    `also` names further targets of the same right. `unrun`: it was found before the command began, which did nothing.
    `usual`: it opens nothing that the sandbox protects, but the workspace itself, or a file that is no secret to read.
    """

    right: Right
    target: str = ""
    text: str = ""
    also: tuple[str, ...] = ()
    unrun: bool = False
    usual: bool = False

    @property
    def by_output(self) -> bool:
        """Whether nothing but what a program printed says that it needs a run without the sandbox."""
        return self.right is Right.UNSANDBOXED and bool(self.text) and not self.target

    @property
    def dangerous(self) -> bool:
        """Whether it ends the sandbox, or opens what that protects; the network by itself does not."""
        return self.right is not Right.NETWORK and not self.usual


class Confinement(StrEnum):
    """What a command runs in.

    `look`: what it writes goes into a throw-away copy of the workspace (in the background, or where no copy can be
    made, it can write nothing there); `work`: it may change the workspace, but no control files; `git`: also what
    belongs to the repository, but not its hooks and configuration; `open`: as the user. All but the last have no
    network.
    """

    LOOK = "look"
    WORK = "work"
    GIT = "git"
    OPEN = "open"


class Rights(Record, frozen=True, kw_only=True):
    """What a command runs in, and the rights that it has beyond that."""

    confinement: Confinement
    granted: tuple[SandboxDenial, ...] = ()


class ChangeKind(StrEnum):
    """What a command did with a path in its throw-away copy."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


class CopyChange(Record, frozen=True, kw_only=True):
    """One path that a command changed in its copy: absolute, with the lines of it (None: it is no text).

    `held` says why it cannot be applied; empty for what can be. `about` says what else there is to know of it, such as
    the target of a link. `first`: it runs or loads something later, or git has no copy of what is lost. `unshown`: its
    text is too large for the `diff` of the changes.
    """

    path: str
    kind: ChangeKind
    added: int | None = None
    removed: int | None = None
    held: str = ""
    about: str = ""
    first: bool = False
    unshown: bool = False


class OutputFolder(Record, frozen=True, kw_only=True):
    """A place (absolute) of files that git ignores and a command made or made anew, and how many these are."""

    path: str
    files: int


class CopyFate(StrEnum):
    """What became of the changes in a throw-away copy: they go with it where nobody decides to keep them."""

    DISCARDED = ""
    KEPT = "kept"
    NOT_APPLIED = "not_applied"


class CopyChanges(Record, frozen=True, kw_only=True):
    """What a command left in its throw-away copy of the workspace; a yes is bound to `digest`, which names all of it.

    `changes` stand in the order in which they are shown. `outputs` are applied with them, and need no yes of their own.
    `ignored` counts the caches of tools, which are thrown away. `trouble` says why the copy could not hold
    what the command did; empty where it could. `diff` shows the changes, without those that are `unshown`. `rights` are
    what the command needs to do in the workspace itself what cannot be applied. `ended` says how the command ended, and
    `output` is the end of what it printed.
    """

    digest: str = ""
    changes: tuple[CopyChange, ...] = ()
    ignored: int = 0
    trouble: str = ""
    diff: str = ""
    outputs: tuple[OutputFolder, ...] = ()
    rights: Rights | None = None
    ended: str = ""
    output: str = ""
    fate: CopyFate = CopyFate.DISCARDED

    @property
    def whole(self) -> bool:
        """Whether all of it can be applied: otherwise none of it is."""
        return not self.trouble and not any(change.held for change in self.changes)

    @property
    def unshown(self) -> tuple[CopyChange, ...]:
        """What is too large to be shown, and takes a yes of its own."""
        return tuple(change for change in self.changes if change.unshown)


class CallResult(Record, frozen=True, kw_only=True):
    """The outcome of a call: what the model reads, whose words they are, what changed, and what the sandbox stopped.

    `running`: it tells of a command that still runs, so a later look may show more. `full_output` is the file that
    holds the whole of an output that was shortened. `copy` is what a command left in its throw-away copy. `usage` and
    `cost` (US dollars, None if unknown) are those of models that the call itself used.
    """

    outcome: Outcome
    content: tuple[ResultContent, ...] = ()
    changes: tuple[FileChange, ...] = ()
    edits: tuple[EditReport, ...] = ()
    origin: Origin = Origin.TREADLE
    denial: SandboxDenial | None = None
    running: bool = False
    full_output: str = ""
    copy: CopyChanges | None = None
    usage: Usage = Usage()
    cost: float | None = 0.0

    @property
    def is_error(self) -> bool:
        """Whether the model reads it as an error."""
        return self.outcome is not Outcome.OK


def result_text(outcome: Outcome, text: str) -> CallResult:
    """Build a result of plain text."""
    return CallResult(outcome=outcome, content=(Text(text=text),))
