"""What a person said yes to: which servers, and which tools of each, exactly as they were then."""

import stat
from collections.abc import Mapping
from hashlib import sha256
from os import fstat, getuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from treadle.mcp.states import Declared
from treadle.protocol.base import Record
from treadle.protocol.errors import StoreError
from treadle.protocol.servers import McpServer, ServerTransport
from treadle.workspace.files.private_file import write_private


def server_identity(server: McpServer, folder: str = "") -> str:
    """Name a server by what it is: its exact command, arguments, directory and names of variables, or where it is.

    With `folder` it is that of one folder. SHA-256, in hex.
    """
    if server.transport in (ServerTransport.HTTP, ServerTransport.SSE):
        parts = urlsplit(server.url)
        what: tuple[object, ...] = (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, sorted(server.headers))
    else:
        what = (server.command, server.args, server.cwd, sorted(server.env))
    return sha256(msgspec.json.encode((server.transport, what, folder))).hexdigest()


def declaration_digest(declared: Mapping[str, Any]) -> str:
    """Name exactly this declaration of a tool, as its server gives it: all of it but pictures. SHA-256, in hex."""
    kept = {name: value for name, value in declared.items() if name not in ("icons", "_meta")}
    return sha256(msgspec.json.encode(kept, order="deterministic")).hexdigest()


class Approved(Struct, frozen=True, kw_only=True):
    """What a person said yes to: digests and texts of tools by their names, and what a server says about its use.

    `resources` says whether the server had some then.
    """

    tools: Mapping[str, str] = {}
    texts: Mapping[str, str] = {}
    instructions: str = ""
    resources: bool = False

    def with_those(self, other: "Approved") -> "Approved":
        """Add what was said yes to later."""
        return Approved(
            tools={**self.tools, **other.tools},
            texts={**self.texts, **other.texts},
            instructions=other.instructions or self.instructions,
            resources=other.resources or self.resources,
        )


def approved_by(declared: Declared) -> Approved:
    """Say what a yes to a declaration approves."""
    return Approved(
        tools={one.name: one.digest for one in declared.tools},
        texts={one.name: one.text for one in declared.tools},
        instructions=declared.instructions,
        resources=declared.resources,
    )


class _Pinned(Record, frozen=True, kw_only=True):
    name: str
    identity: str
    tools: dict[str, str]
    texts: dict[str, str] = {}  # noqa: RUF012
    instructions: str = ""
    resources: bool = False


class PinBook:
    """The pins, a file for each server in `directory`, which is the user's alone."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, identity: str) -> Approved:
        """Give what was approved of a server; nothing of one that nobody said yes to."""
        try:
            with self._file(identity).open("rb") as stream:
                facts = fstat(stream.fileno())
                if facts.st_uid != getuid() or stat.S_IMODE(facts.st_mode) & 0o077:
                    return Approved()
                found = msgspec.json.decode(stream.read(), type=_Pinned)
        except (OSError, msgspec.MsgspecError):
            return Approved()
        if found.identity != identity:
            return Approved()
        return Approved(
            tools=found.tools, texts=found.texts, instructions=found.instructions, resources=found.resources
        )

    def pin(self, name: str, identity: str, declared: Declared, *, only: bool = False) -> None:
        """Keep the yes to what a server declares; with `only` nothing else stays approved. Raises `StoreError`."""
        kept = (Approved() if only else self.read(identity)).with_those(approved_by(declared))
        record = _Pinned(
            name=name,
            identity=identity,
            tools=dict(kept.tools),
            texts=dict(kept.texts),
            instructions=kept.instructions,
            resources=kept.resources,
        )
        try:
            write_private(self._file(identity), msgspec.json.encode(record), follow=False)
        except (OSError, UnicodeEncodeError) as error:
            raise StoreError(
                "mcp-pins",
                f"What was approved of the MCP server {name} cannot be saved.",
                why=str(error),
                fix="Check the permissions and the free space of Treadle's data folder.",
            ) from error

    def forget(self, identity: str) -> None:
        """Take the yes back."""
        self._file(identity).unlink(missing_ok=True)

    def _file(self, identity: str) -> Path:
        return self._directory / f"{identity[:32]}.json"
