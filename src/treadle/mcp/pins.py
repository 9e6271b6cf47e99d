"""What a person said yes to: which servers, and which tools of each, exactly as they were then."""

import stat
from collections.abc import Iterable, Mapping
from hashlib import sha256
from os import fstat, getuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from treadle.mcp.states import DeclaredTool
from treadle.protocol.base import Record
from treadle.protocol.errors import StoreError
from treadle.protocol.servers import McpServer, ServerTransport
from treadle.workspace.private_file import write_private


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


class _Pinned(Record, frozen=True, kw_only=True):
    name: str
    identity: str
    tools: dict[str, str]
    texts: dict[str, str] = {}  # noqa: RUF012


class PinBook:
    """The pins, a file for each server in `directory`, which is the user's alone."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, identity: str) -> Mapping[str, str] | None:
        """Give the digests of a server's tools by their names; None for a server that nobody said yes to."""
        found = self._read(identity)
        return None if found is None else found.tools

    def texts(self, identity: str) -> Mapping[str, str]:
        """Give the declarations of a server's tools as they were approved, by their names."""
        found = self._read(identity)
        return {} if found is None else found.texts

    def _read(self, identity: str) -> _Pinned | None:
        file = self._file(identity)
        try:
            with file.open("rb") as stream:
                facts = fstat(stream.fileno())
                if facts.st_uid != getuid() or stat.S_IMODE(facts.st_mode) & 0o077:
                    return None
                found = msgspec.json.decode(stream.read(), type=_Pinned)
        except (OSError, msgspec.MsgspecError):
            return None
        return found if found.identity == identity else None

    def pin(self, name: str, identity: str, tools: Iterable[DeclaredTool], *, others: bool = True) -> None:
        """Keep the yes to a server and these tools; with `others` those pinned before stay. Raises `StoreError`."""
        before = self._read(identity) if others else None
        digests = {} if before is None else before.tools
        texts = {} if before is None else before.texts
        for tool in tools:
            digests[tool.name], texts[tool.name] = tool.digest, tool.text
        record = _Pinned(name=name, identity=identity, tools=digests, texts=texts)
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
