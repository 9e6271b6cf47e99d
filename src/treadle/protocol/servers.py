"""MCP servers as a user or a client names them: how each is reached, and what it may do."""

from enum import StrEnum

from msgspec import field

from treadle.protocol.base import Record


class ServerTransport(StrEnum):
    """How a server is reached: a program of its own, streamable HTTP, the older HTTP with events, or its host itself.

    `inside`: the program that drives Treadle has the server, and passes its messages on.
    """

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"
    INSIDE = "inside"


class ServerEra(StrEnum):
    """Which protocol is spoken: what the server knows, the one with a handshake, or the one without."""

    AUTO = "auto"
    LEGACY = "legacy"
    MODERN = "2026-07-28"


class McpServer(Record, frozen=True, kw_only=True):
    """One MCP server: a `command` with `args`, `env` and `cwd`, or a `url` with `headers`. Times are seconds.

    `sampling`: it may use the model. `trusted`: what its annotations say may lower a risk. `allowed` names its tools
    whose calls run without a question. `confined`: its program runs in the sandbox, where there is one.
    """

    name: str
    transport: ServerTransport = ServerTransport.STDIO
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    era: ServerEra = ServerEra.AUTO
    enabled: bool = True
    connect_seconds: float = 30.0
    call_seconds: float = 60.0
    sampling: bool = False
    trusted: bool = False
    allowed: tuple[str, ...] = ()
    confined: bool = True
