"""Servers as they stand: what one is to be, and how it is doing. Loads nothing of the SDK."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from treadle.mcp.server_program import ProgramStart
from treadle.protocol.base import Record
from treadle.protocol.servers import McpServer
from treadle.workspace.files.text import visible

Exchange = Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]]
"""Takes a message of JSON-RPC to a server that its host has, and gives the answer; None for a notification."""


class ServerPlan(Struct, frozen=True, kw_only=True):
    """One server to connect to. `slug` is its name as tools have it, unique; `origin` says where it is configured.

    `identity` names what was said yes to. `vouched`: who named it vouches for it, so that its tools are taken as they
    first are; `kept` says that they are to be the same the next time. `problem` says why it cannot be connected to.
    `program` gives what to start, and looks at the disk; `exchange` is that of a server inside its host. `log` is the
    file for what it logs.
    """

    server: McpServer
    slug: str
    identity: str
    origin: str
    log: Path
    vouched: bool = False
    kept: bool = True
    problem: str = ""
    program: Callable[[], ProgramStart] | None = None
    exchange: Exchange | None = None


def way_to_sign_in(name: str) -> str:
    """Say how somebody signs in to a server."""
    return f"To sign in: treadle mcp login {visible(name)}"


class ServerState(StrEnum):
    """How a server is doing."""

    WAITING = "waiting"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"
    FAILED = "failed"
    DISABLED = "disabled"
    CLOSED = "closed"


GONE = (ServerState.FAILED, ServerState.CLOSED, ServerState.DISABLED)
"""A server has nothing then."""


class PinState(StrEnum):
    """How a tool stands to what was approved."""

    APPROVED = "approved"
    NEW = "new"
    CHANGED = "changed"


_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""What in a JSON Schema has names of its author for fields."""

_NO_TEXT = frozenset({"type", "format", "required", "$ref", "$schema", "$id"})
_ABOUT = frozenset({"", "description"})


class DeclaredTool(Struct, frozen=True, kw_only=True):
    """A tool as its server declares it: harmless to show, with its hints, None where there is none.

    `hidden` says why nobody can call it. `digest` names the declaration as it came, `text` shows it, or its beginning.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    digest: str
    text: str = ""
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    hidden: str = ""

    @property
    def said(self) -> str:
        """All that it says of itself for the model to read: what it does, and what stands with its arguments."""
        return "\n".join(filter(None, (self.description, *_said_in(self.parameters))))


def _said_in(schema: Any, place: str = "", name: str = "") -> Iterator[str]:
    """Give the texts of a schema, each behind the argument that it is about: `path: Where to look.`"""
    match schema:
        case str() if name not in _NO_TEXT:
            yield f"{place or 'arguments'}{'' if name in _ABOUT else f', {name}'}: {schema}"
        case dict():
            for key, below in schema.items():
                if name in _NAMED:
                    yield from _said_in(below, f"{place}.{key}" if place else key)
                else:
                    yield from _said_in(below, place, key)
        case list():
            for below in schema:
                yield from _said_in(below, place, name)
        case _:
            pass


class DeclaredPrompt(Struct, frozen=True, kw_only=True):
    """A prompt of a server; `arguments` pairs their names with whether they are needed."""

    name: str
    description: str = ""
    arguments: tuple[tuple[str, bool], ...] = ()


class Declared(Struct, frozen=True, kw_only=True):
    """What a server has, as it was last listed; `instructions` is what it says about its use, harmless to show."""

    tools: Sequence[DeclaredTool] = ()
    prompts: Sequence[DeclaredPrompt] = ()
    resources: bool = False
    instructions: str = ""


class ServerHealth(Record, frozen=True, kw_only=True):
    """How a server is doing, for people and programs; `tools` pairs the names of its tools with how they stand.

    `instructions` says how those stand that it gives the model; empty where it gives none. `signs_in`: it refused as
    nobody has signed in, and nothing else was to prove who asks.
    """

    name: str
    origin: str
    transport: str
    target: str
    state: ServerState
    why: str = ""
    protocol: str = ""
    version: str = ""
    tools: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    prompts: tuple[str, ...] = ()
    resources: bool = False
    instructions: str = ""
    restarts: int = 0
    garbage: int = 0
    signs_in: bool = False
