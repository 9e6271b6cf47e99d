"""Attaching to a live session: where it stands now, what was missed, and the words between two processes about it."""

from typing import TypeAlias

from treadle.protocol.base import Record, Tagged
from treadle.protocol.events import Op, Pin, Source
from treadle.protocol.goals import GoalStatus
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import CallChanged, Notification, Phase, QueuedPrompt
from treadle.protocol.permissions import Allowance, Mode, Question


class FeedCursor(Record, frozen=True, kw_only=True):
    """How far a surface has listened: the number of a notification. `run` names the program that numbered it."""

    run: str
    number: int


class Stamped(Record, frozen=True, kw_only=True):
    """A notification as surfaces are told it: when (milliseconds since 1970, UTC), and after which event of the log.

    Numbers rise by one, except where pieces of one text were put together; 0 is what was told before anybody listened.
    `seq` is 0 where nothing was logged yet, `at` where the time is not known.
    """

    notification: Notification
    number: int = 0
    seq: int = 0
    at: int = 0


class SessionStatus(Record, frozen=True, kw_only=True):
    """What is true of a session now, apart from what it does: what a surface shows all the time.

    `tokens` is what the conversation takes, `window` what the model can hold, None where that is not known. `thinking`
    is how many tokens it may think, None where that is its own affair. `checking`: it is asked if the goal is met.
    `budget` is what the session may spend (US dollars), None where that has no bound.
    """

    phase: Phase
    mode: Mode
    model: str
    tool_protocol: ToolProtocol
    turn_active: bool
    questions: tuple[Question, ...] = ()
    queue: tuple[QueuedPrompt, ...] = ()
    held: tuple[QueuedPrompt, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    pins: tuple[Pin, ...] = ()
    checklist: str = ""
    goal: GoalStatus | None = None
    checking: bool = False
    tokens: int = 0
    window: int | None = None
    thinking: int | None = None
    budget: float | None = None


class Snapshot(Record, frozen=True, kw_only=True):
    """Where a live session is. The log up to event `seq` holds the rest of what surfaces were notified of.

    `calls` are those that are not finished, `live` the pieces of the reply and of the calls' output that are in no log.
    """

    seq: int
    calls: tuple[CallChanged, ...] = ()
    live: tuple[Notification, ...] = ()


class Attach(Tagged, frozen=True, kw_only=True, tag="attach"):
    """To the session: listen from here on, or from after `cursor`. `key` proves that the client is the user's own.

    `kind` is what kind of surface it is, and `name` who uses it: the log names both with what it posts.
    """

    key: str
    version: int
    cursor: FeedCursor | None = None
    kind: str = "tui"
    name: str = ""


class Post(Tagged, frozen=True, kw_only=True, tag="post"):
    """To the session: an op; `number` is the client's own for it. `name` is which browser of a page it comes from."""

    number: int
    op: Op
    name: str = ""


class AskServers(Tagged, frozen=True, kw_only=True, tag="servers"):
    """To the session: do what `/mcp` says with this argument, where its MCP servers are; `ServersSaid` answers.

    With a `prompt` (its server's name, and its own) say what the last word of the argument can be instead. With `ports`
    it is what `/ports` says, about the servers that commands run.
    """

    number: int
    argument: str = ""
    prompt: tuple[str, str] | None = None
    ports: bool = False


class StopSession(Tagged, frozen=True, kw_only=True, tag="stop"):
    """To the session: end what goes on and drop what is queued.

    One that runs in the background closes, which `Closed` says; any other stays open, and says `Taken`.
    """

    number: int


class ListedAgent(Record, frozen=True, kw_only=True):
    """An agent as it is listed; `origin` is where it is written: a file as it is shown, or who gave it."""

    name: str
    description: str
    origin: str
    writes: bool


class Attached(Tagged, frozen=True, kw_only=True, tag="attached"):
    """To the client: it is attached as `source`. Without a `snapshot` all that it missed follows by itself.

    `agents` are those that the session was given when it was opened, by a command line or a host.
    """

    session_id: str
    workspace: str
    roots: tuple[str, ...]
    source: Source
    run: str
    number: int
    status: SessionStatus
    snapshot: Snapshot | None = None
    agents: tuple[ListedAgent, ...] = ()


class Notified(Tagged, frozen=True, kw_only=True, tag="notified"):
    """To the client: a notification. `status` comes with those after which something of it is another."""

    number: int
    notification: Notification
    status: SessionStatus | None = None
    seq: int = 0
    at: int = 0


class Taken(Tagged, frozen=True, kw_only=True, tag="taken"):
    """To the client: its op is in the log, and the session stands so with it; or what it wants stopped is."""

    number: int
    status: SessionStatus | None = None


class ListeningPort(Record, frozen=True, kw_only=True):
    """A port on which a command listens, by which program; `address` is where a person has opened it, or empty.

    `pid` is the process as it is numbered inside; 0, as an empty program, where it is not known.
    """

    port: int
    program: str = ""
    pid: int = 0
    address: str = ""


class ServersAnswer(Record, frozen=True, kw_only=True):
    """What `/mcp` or `/ports` shows; `warning`: the text says what is wrong with the command.

    `values` are what a word can be, `ports` those on which commands of the session listen now.
    """

    text: str = ""
    warning: bool = False
    values: tuple[str, ...] = ()
    ports: tuple[ListeningPort, ...] = ()


class ServersSaid(Tagged, frozen=True, kw_only=True, tag="servers_said"):
    """To the client: what came of its command about the MCP servers."""

    number: int
    answer: ServersAnswer


class Refused(Tagged, frozen=True, kw_only=True, tag="refused"):
    """To the client: its op, or (0) its attaching, is refused, with what happened, why, and what to do."""

    number: int
    kind: str
    code: str
    what: str
    why: str = ""
    fix: str = ""


class Behind(Tagged, frozen=True, kw_only=True, tag="behind"):
    """To the client: it read too slowly, and has to attach anew."""


class Closed(Tagged, frozen=True, kw_only=True, tag="closed"):
    """To the client: the session is closed."""


ToSession: TypeAlias = Attach | Post | AskServers | StopSession
ToClient: TypeAlias = Attached | Notified | Taken | ServersSaid | Refused | Behind | Closed
