"""Which MCP servers are configured: in the user's `mcp.json`, in files of a trusted folder, by the client."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.layers import parse_file
from treadle.app.config.places import config_file, servers_file
from treadle.app.config.server_files import file_order, read_entries, unused_entries
from treadle.app.security.trusting import SessionTrust
from treadle.protocol.errors import ConfigError
from treadle.protocol.servers import McpServer, ServerTransport
from treadle.providers.provider_rows import ROWS
from treadle.store.activation import ActiveFile, ActiveKind
from treadle.store.active_items import read_item
from treadle.workspace.files.folder_lock import alone
from treadle.workspace.files.private_file import write_private
from treadle.workspace.files.text import visible_name

FOLDER_FILE = ".mcp.json"
_LARGEST = 1024 * 1024
_MOST = 200
_LONGEST_TIME = 86_400
_TYPES = {
    "stdio": ServerTransport.STDIO,
    "http": ServerTransport.HTTP,
    "streamable-http": ServerTransport.HTTP,
    "streamablehttp": ServerTransport.HTTP,
    "sse": ServerTransport.SSE,
}
_CLOUD_KEYS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_VARIABLE = re.compile(
    r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-((?:[^{}])*))?\}|\$\{(input|config|command):([^{}]*)\}"
)


class ServerOrigin(StrEnum):
    """Who named a server."""

    CLIENT = "client"
    USER = "user"
    FOLDER = "folder"


class ConfiguredServer(Struct, frozen=True, kw_only=True):
    """A server with its variables filled in.

    `problem` says why it cannot be used; `names` are its variables, `unused` what its entry says that is not used.
    """

    server: McpServer
    origin: ServerOrigin
    problem: str = ""
    names: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


class Configured(Struct, frozen=True, kw_only=True):
    """All servers, of two with one name the first, and what a person should know of files that cannot be used."""

    servers: tuple[ConfiguredServer, ...] = ()
    notices: tuple[str, ...] = ()


def configured_servers(trust: SessionTrust, given: Sequence[McpServer] = (), *, others: bool = True) -> Configured:
    """Read what is configured for a folder: what the client gives, the user's file, and the folder's if trusted.

    Without `others` only what the client gives.
    """
    found = {one.name: _checked(one, ServerOrigin.CLIENT) for one in given}
    notices: list[str] = []
    files: list[tuple[ServerOrigin, str, Callable[[], bytes]]] = [
        (ServerOrigin.USER, str(servers_file()), _read_own),
        *((ServerOrigin.FOLDER, item.path, partial(_read_folders, trust, item)) for item in _folder_items(trust)),
    ]
    for origin, name, read in files if others else ():
        try:
            servers = list(_servers(read(), origin, name, folder=str(trust.workspace)))
        except ValueError as error:
            notices.append(f"The MCP servers of {visible_name(name)} are not used: {error}.")
            continue
        for one in servers:
            shown = f"The MCP server {visible_name(one.server.name)} of {visible_name(name)}"
            before = found.setdefault(one.server.name, one)
            if before is not one and before != one:
                notices.append(f"{shown} is not used: there is another one with this name.")
            elif before is one and one.unused:
                notices.append(f"{shown} is used without its {', '.join(one.unused)}.")
    return Configured(servers=tuple(found.values()), notices=tuple(notices))


def _read_own() -> bytes:
    try:
        with servers_file().open("rb") as stream:
            return stream.read(_LARGEST + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ValueError(error.strerror) from error


def _folder_items(trust: SessionTrust) -> Sequence[ActiveFile]:
    """Give the files with servers of a folder that is trusted, that which goes before the others first."""
    items = [one for one in trust.items if one.kind is ActiveKind.SERVERS] if trust.trusted else []
    return sorted(items, key=lambda one: file_order(one.path))


def _read_folders(trust: SessionTrust, item: ActiveFile) -> bytes:
    """Read a file of the folder exactly as it was trusted."""
    content = read_item(trust.workspace, item)
    if content is None:
        raise ValueError("it changed since you trusted this folder (`treadle trust` shows it)")
    return content


def read_servers(content: bytes, origin: ServerOrigin) -> tuple[ConfiguredServer, ...]:
    """Read a file of servers, `{"mcpServers": {NAME: ...}}`. Raises `ValueError` with the reason."""
    return tuple(_servers(content, origin, FOLDER_FILE))


def _servers(content: bytes, origin: ServerOrigin, path: str, *, folder: str = "") -> Iterator[ConfiguredServer]:
    if len(content) > _LARGEST:
        raise ValueError(f"it is larger than {_LARGEST // 1024:,} KiB")
    listed = read_entries(path if origin is ServerOrigin.FOLDER else FOLDER_FILE, content)
    if len(listed) > _MOST:
        raise ValueError(f"it names more than {_MOST} servers")
    for name, said in listed.items():
        yield _server(name, said, origin, folder)


def _server(name: str, said: Any, origin: ServerOrigin, folder: str) -> ConfiguredServer:
    if not isinstance(said, dict):
        return ConfiguredServer(server=McpServer(name=name), origin=origin, problem="its entry is not a table")
    missing: list[str] = []
    names: list[str] = []
    known = _known_variables(folder)

    def filled(value: Any) -> Any:
        return _filled(value, missing, names, known)

    try:
        server = msgspec.convert(_fields(name, said, filled, own=origin is ServerOrigin.USER), McpServer, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        return _mistaken(name, origin, error)
    checked = _checked(server, origin)
    problem = _missing_words(missing) if missing else checked.problem
    if origin is ServerOrigin.FOLDER:
        if kept := [one for one in names if os.environ.get(one) and one in _provider_keys()]:
            problem = _kept_words(kept[0])
            checked = replace(checked, server=McpServer(name=name))  # nothing of it is filled in
        if _is_treadle(server):
            problem = "it is Treadle itself, named for other programs"
    return replace(checked, problem=problem, names=tuple(dict.fromkeys(names)), unused=unused_entries(said))


def _provider_keys() -> frozenset[str]:
    """Name the variables that hold keys of providers: no server of a folder is given these."""
    said: Any = None
    with suppress(ConfigError):
        said = parse_file(config_file()).get("providers")
    tables = said.values() if isinstance(said, Mapping) else ()
    own = [str(one["api_key_env"]) for one in tables if isinstance(one, Mapping) and one.get("api_key_env")]
    return frozenset((*own, *_CLOUD_KEYS, *(key for row in ROWS for key in row.keys)))


def _kept_words(name: str) -> str:
    return (
        f"it wants ${{{name}}}, the key of a provider, which no server of a folder is given; to give it, add the "
        "server to your own with `treadle mcp add`"
    )


def _is_treadle(server: McpServer) -> bool:
    words = (os.path.basename(server.command), *server.args)  # noqa: PTH119 - a text
    return any(words[at : at + 3] == ("treadle", "mcp", "serve") for at in range(len(words)))


def _known_variables(folder: str) -> Mapping[str, str]:
    """Give the variables that programs fill in themselves, for a folder; those of the environment go before."""
    if not folder:
        return {}
    return {
        **dict.fromkeys(("workspaceFolder", "workspaceRoot", "cwd", "CLAUDE_PROJECT_DIR"), folder),
        "workspaceFolderBasename": os.path.basename(folder),  # noqa: PTH119 - a text
        "userHome": str(Path.home()),
        "pathSeparator": "/",
    }


def _missing_words(missing: Sequence[str]) -> str:
    asked = [name for name in missing if ":" in name]
    if asked:
        return f"it needs ${{{asked[0]}}}, which only an editor can give; write a variable (${{NAME}}) there"
    names = list(dict.fromkeys(missing))
    return f"the variable {names[0]} is not set" if len(names) == 1 else f"the variables {', '.join(names)} are not set"


def _checked(server: McpServer, origin: ServerOrigin) -> ConfiguredServer:
    """Say whether a server can be used as it is named; nobody is given an address that cannot be read."""
    try:
        _ = urlsplit(server.url).port
        if not all(0 < seconds <= _LONGEST_TIME for seconds in (server.call_seconds, server.connect_seconds)):
            raise ValueError(f"a time limit is between 0 and {_LONGEST_TIME:,} s")
    except ValueError as error:
        return _mistaken(server.name, origin, error)
    return ConfiguredServer(server=server, origin=origin, problem=_incomplete(server))


def _mistaken(name: str, origin: ServerOrigin, error: Exception) -> ConfiguredServer:
    return ConfiguredServer(
        server=McpServer(name=name), origin=origin, problem=f"its entry has a mistake: {visible_name(str(error))}"
    )


def _fields(name: str, said: Mapping[str, Any], filled: Any, *, own: bool) -> dict[str, Any]:
    """Give the fields of a server; what lets it do more is taken from the user's own file only."""
    kind = str(said.get("type") or said.get("transport") or "").lower()
    if kind and kind not in _TYPES:
        raise ValueError(f"{visible_name(kind)} is not a transport; there are stdio, http and sse")
    transport = _TYPES[kind] if kind else ServerTransport.STDIO if said.get("command") else ServerTransport.HTTP
    fields: dict[str, Any] = {"name": name, "transport": transport}
    for key in ("command", "args", "env", "cwd", "url", "headers"):
        if said.get(key):
            fields[key] = filled(said[key])
    for key, field in (("timeout", "call_seconds"), ("connectTimeout", "connect_seconds"), ("era", "era")):
        if said.get(key):
            fields[field] = said[key]
    fields["enabled"] = not msgspec.convert(said.get("disabled") or False, bool, strict=False)
    if own:
        fields["allowed"] = msgspec.convert(said.get("alwaysAllow") or said.get("autoApprove") or (), tuple[str, ...])
        for key, field in (("sampling", "sampling"), ("trusted", "trusted"), ("sandbox", "confined")):
            if said.get(key) is not None:
                fields[field] = said[key]
    return fields


def _incomplete(server: McpServer) -> str:
    if server.transport is ServerTransport.STDIO:
        return "" if server.command else "it names no command"
    if server.transport is ServerTransport.INSIDE:
        return ""
    return (
        "" if server.url.startswith(("http://", "https://")) else "it has no url that begins with https:// or http://"
    )


def _filled(value: Any, missing: list[str], names: list[str], known: Mapping[str, str]) -> Any:
    """Put variables in the place of `${NAME}`, `${NAME:-default}` and `${env:NAME}`, wherever they are."""
    match value:
        case str():
            return _VARIABLE.sub(lambda found: _of_variable(found, missing, names, known), value)
        case list():
            return [_filled(one, missing, names, known) for one in value]
        case dict():
            return {key: _filled(one, missing, names, known) for key, one in value.items()}
        case _:
            return value


def _of_variable(found: "re.Match[str]", missing: list[str], names: list[str], known: Mapping[str, str]) -> str:
    if found[1] is None:
        missing.append(f"{found[4]}:{found[5]}")
        return ""
    if found[1] in known and not os.environ.get(found[1]):
        return known[found[1]]
    names.append(found[1])
    value = os.environ.get(found[1])
    if value:
        return value
    if found[2] is None:
        missing.append(found[1])
    return found[3] or ""


_SECRET_NAME = re.compile(r"(?i).*(KEY|TOKEN|SECRET|PASS|PASSWORD|PASSWD|AUTH|CREDENTIALS?|PAT|COOKIE|DSN)S?")
_PLAIN_HEADERS = frozenset({"accept", "content-type", "user-agent", "accept-language"})


def server_secrets(servers: Iterable[McpServer]) -> Iterator[tuple[str, str]]:
    """Pair what servers are given that must not be shown with its name: headers, variables, parts of an address."""
    for server in servers:
        for name, value in server.headers.items():
            if name.lower() not in _PLAIN_HEADERS:
                yield value, name
                yield value.partition(" ")[2], name
        for name, value in server.env.items():
            if _SECRET_NAME.fullmatch(name):
                yield value, name
        address = urlsplit(server.url)
        for name, value in parse_qsl(address.query):
            yield value, name
        if address.password:
            yield from ((said, "password") for said in (address.password, unquote(address.password)))


def write_server(file: Path, name: str, entry: Mapping[str, Any] | None) -> bool:
    """Write a server into a file of servers, or with None take it out; says whether there was one of this name.

    The rest of the file stays. Raises `ConfigError` when it cannot be read or written.
    """
    try:
        with alone(file.parent):
            there = _changed_entry(file, name, entry)
    except (OSError, msgspec.DecodeError, RecursionError, AttributeError, TypeError) as error:
        raise ConfigError(
            "mcp-file",
            f"The MCP servers in {visible_name(str(file))} cannot be changed.",
            why=str(error),
            fix='Correct the file: it holds {"mcpServers": {...}} in JSON.',
        ) from error
    return there


def _changed_entry(file: Path, name: str, entry: Mapping[str, Any] | None) -> bool:
    text = file.read_bytes() if file.exists() else b""
    table = msgspec.json.decode(text) if text.strip() else {}
    listed = table.setdefault("mcpServers", {})
    there = name in listed
    if entry is not None:
        listed[name] = dict(entry)
    elif there:
        del listed[name]
    if entry is not None or there:
        shown = msgspec.json.format(msgspec.json.encode(table), indent=2)
        write_private(file, shown + b"\n", mode=0o600 if file == servers_file() else 0o644)
    return there


def entry_of(file: Path, name: str) -> dict[str, Any] | None:
    """Read the entry of a server as it is written; None where the file has none of this name, or cannot be read."""
    try:
        listed = msgspec.json.decode(file.read_bytes()).get("mcpServers", {})
        entry = listed.get(name)
    except (OSError, msgspec.DecodeError, AttributeError):
        return None
    return dict(entry) if isinstance(entry, dict) else None
