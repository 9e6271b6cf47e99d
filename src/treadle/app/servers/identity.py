"""Which server one is, as it is approved, and what is kept of having signed in to it."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from treadle.app.config.places import data_directory
from treadle.app.models.provider_keys import find_key, forget_key, store_key
from treadle.app.servers.configured import ServerOrigin
from treadle.mcp.pins import PinBook, server_identity
from treadle.protocol.base import Record
from treadle.protocol.servers import McpServer


def identity_of(server: McpServer, origin: ServerOrigin, workspace: Path) -> str:
    """Name a server as it is approved: one of a folder in that folder only."""
    return server_identity(server, str(workspace) if origin is ServerOrigin.FOLDER else "")


def pin_book() -> PinBook:
    """Give what was approved of servers."""
    return PinBook(data_directory() / "mcp" / "pins")


class KeptSignIn(Record, frozen=True, kw_only=True):
    """What is kept of a server: tokens, the client's registration and the metadata of who signs in, each as JSON.

    `until` is when the access token ends, in seconds since 1970; 0 where that is not known.
    """

    tokens: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies it
    client: dict[str, Any] = {}  # noqa: RUF012
    metadata: dict[str, Any] = {}  # noqa: RUF012
    until: float = 0.0


def token_name(server: McpServer) -> str:
    """Name what is kept of a server: by its address, so that no other address is sent it."""
    return f"mcp {server.name} {sha256(server.url.encode()).hexdigest()[:16]}"


def kept_sign_in(server: McpServer) -> KeptSignIn:
    """Read what is kept of a server; nothing where the person has not signed in. Raises `ConfigError`."""
    key = find_key(token_name(server), (), {})
    try:
        return KeptSignIn() if key is None else msgspec.json.decode(key.value, type=KeptSignIn)
    except msgspec.MsgspecError:
        return KeptSignIn()


def keep_sign_in(server: McpServer, kept: KeptSignIn) -> None:
    """Keep this of a server, in place of what was kept. Raises `ConfigError`."""
    store_key(token_name(server), msgspec.json.encode(kept).decode())


def sign_in_folder(server: McpServer) -> Path:
    """Name the folder that whoever renews the sign-in of a server has alone."""
    return data_directory() / "mcp" / "renewing" / sha256(token_name(server).encode()).hexdigest()[:16]


def forget_tokens(server: McpServer) -> bool:
    """Forget what was kept; says whether there was something. Raises `ConfigError`."""
    return forget_key(token_name(server))


def kept_secrets(server: McpServer) -> list[tuple[str, str]]:
    """Pair the tokens of a server with a name, to be hidden."""
    kept = kept_sign_in(server)
    said = {**kept.tokens, **kept.client}
    names = ("access_token", "refresh_token", "client_secret")
    return [(said[name], f"{server.name} {name}") for name in names if isinstance(said.get(name), str)]
