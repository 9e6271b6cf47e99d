"""Looks at servers outside of a session: connects to them, says how they are, and takes the person's yes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from treadle.app.config.layers import load_settings
from treadle.app.config.places import data_directory, servers_file
from treadle.app.security.trusting import SessionTrust, session_trust, trust_store
from treadle.app.servers.configured import (
    FOLDER_FILE,
    Configured,
    ConfiguredServer,
    ServerOrigin,
    configured_servers,
    entry_of,
    read_servers,
    server_secrets,
    write_server,
)
from treadle.app.servers.identity import forget_tokens, identity_of, pin_book
from treadle.app.servers.opening_servers import ServersPlace, ServersSurface, log_folder, open_hub
from treadle.mcp.hub import STARTED_AT_ONCE, McpHub
from treadle.mcp.server_tool import ServerTool
from treadle.mcp.states import Declared, PinState, ServerHealth, ServerState, way_to_sign_in
from treadle.present.words import counted
from treadle.protocol.errors import ConfigError
from treadle.protocol.servers import McpServer
from treadle.workspace.files.text import visible

_LONGEST_WAIT = 600.0
_SAID_AFTER = 3.0
"""Seconds after which a person is told which servers are still waited for."""

_LONGEST_SIGN_IN = 600.0
_STARTING = frozenset({ServerState.WAITING, ServerState.CONNECTING})
_SETTLING = 0.3
"""Seconds in which a server may still add tools, once it knows what Treadle can do."""


@asynccontextmanager
async def connected(
    configured: Configured,
    trust: SessionTrust,
    seconds: float = 0.0,
    *,
    sign_in: Any = None,
    tell: Callable[[str], None] | None = None,
) -> AsyncIterator[McpHub]:
    """Connect to servers for a while, and wait for them `seconds` at most (0: as long as each may take).

    `sign_in` stands in for what is kept of having signed in. `tell` hears which servers are slow.
    """
    settings = load_settings({}, workspace=trust.workspace, trusted=trust.trusted)

    @cache
    def redactor() -> Any:
        from treadle.app.session.known_values import session_redactor

        secrets = tuple(server_secrets(one.server for one in configured.servers))
        return session_redactor(str(trust.workspace), settings, also=secrets)

    place = ServersPlace(
        trust=trust, private=data_directory() / "mcp" / "run", redactor=redactor, pass_on=settings.pass_variables
    )
    hub = open_hub(configured, place, ServersSurface(tell=lambda _: None, sign_in=sign_in))
    hub.start()
    try:
        longest = seconds or longest_start([one.server for one in configured.servers])
        if tell is not None:
            await hub.settled(min(_SAID_AFTER, longest))
            slow = [visible(one.name) for one in hub.health() if one.state in _STARTING]
            if slow:
                tell(f"Waiting for {', '.join(slow)}.")
        await hub.settled(longest)
        yield hub
    finally:
        await hub.close()


def longest_start(servers: Sequence[McpServer]) -> float:
    """Give the seconds after which all of them are connected or have failed; only some of them start at a time."""
    used = [one.connect_seconds for one in servers if one.enabled]
    return min(_LONGEST_WAIT, max(used, default=0.0) + sum(used) / STARTED_AT_ONCE + 2.0)


def named_server(configured: Configured, name: str) -> Configured:
    """Keep one server; raises `ConfigError` when there is none of this name."""
    found = [one for one in configured.servers if one.server.name == name]
    if not found:
        known = ", ".join(visible(one.server.name) for one in configured.servers) or "none"
        raise ConfigError(
            "mcp-unknown",
            f"There is no MCP server {visible(name)!r}.",
            why=f"Configured here are: {known}. {' '.join(configured.notices)}".strip(),
            fix="`treadle mcp list` lists them. Add one with: treadle mcp add NAME -- COMMAND",
        )
    return Configured(servers=tuple(found))


async def server_list(
    trust: SessionTrust, *, connect: bool, tell: Callable[[str], None] | None = None
) -> tuple[ServerHealth, ...]:
    """Say how all configured servers are; without `connect` nothing is started. `tell` hears which ones are slow."""
    configured = configured_servers(trust)
    if not configured.servers:
        return ()
    if not connect:
        place = ServersPlace(trust=trust, private=data_directory() / "mcp" / "run", redactor=_never)
        hub = open_hub(configured, place, ServersSurface(tell=lambda _: None))
        found = hub.health()
        await hub.close()
        return found
    async with connected(configured, trust, tell=tell) as hub:
        return hub.health()


def _never() -> Any:
    raise AssertionError("nothing is started")


async def check_server(name: str, trust: SessionTrust) -> ServerHealth:
    """Connect to one server and say how it is. Raises `ConfigError`."""
    async with connected(named_server(configured_servers(trust), name), trust) as hub:
        return hub.health()[0]


async def add_server(name: str, entry: Mapping[str, Any], trust: SessionTrust, *, project: bool) -> ServerHealth:
    """Add a server, to the user's own or with `project` to the folder's: connect, and approve what it has then.

    Nothing is written when it cannot be connected to, but for one that somebody has to sign in to first, of which
    nothing is approved then (`signs_in`). Raises `ConfigError` or `StoreError`.
    """
    origin = ServerOrigin.FOLDER if project else ServerOrigin.USER
    one = _read(name, entry, origin)
    health, declared = await _looked_at(one, trust)
    if health.state is not ServerState.CONNECTED and not health.signs_in:
        raise ConfigError(
            "mcp-connect",
            f"The MCP server {visible(name)} was not added: it cannot be connected to.",
            why=health.why or str(health.state),
            fix="Check its command or URL. `treadle mcp logs NAME` shows what it printed.",
        )
    file = trust.workspace / FOLDER_FILE if project else servers_file()
    keeps_trust = project and (trust.trusted or not trust.matters)
    write_server(file, name, entry)
    if not health.signs_in:
        pin_book().pin(name, identity_of(one.server, origin, trust.workspace), declared, only=True)
    if keeps_trust and not trust.once:
        _trust_again(trust)
    return health


def _read(name: str, entry: Mapping[str, Any], origin: ServerOrigin) -> ConfiguredServer:
    (one,) = read_servers(msgspec.json.encode({"mcpServers": {name: entry}}), origin)
    if one.problem:
        raise ConfigError(
            "mcp-entry",
            f"The MCP server {visible(name)} cannot be used: {one.problem}.",
            fix="`treadle mcp add --help` shows how to name one.",
        )
    return one


async def _looked_at(one: ConfiguredServer, trust: SessionTrust) -> tuple[ServerHealth, Declared]:
    async with connected(Configured(servers=(one,)), trust) as hub:
        await asyncio.sleep(_SETTLING)
        return hub.health()[0], hub.table.declared_by(hub.plans[0])


def _trust_again(trust: SessionTrust) -> None:
    """Let a folder stay trusted in which nothing but its servers changed."""
    now = session_trust(trust.workspace).trust
    before = {item for item in trust.items if item.path != FOLDER_FILE}
    if before == {item for item in now.items if item.path != FOLDER_FILE}:
        trust_store().grant(now)


def remove_server(name: str, trust: SessionTrust, *, project: bool) -> None:
    """Take a server out of the file, and the yes to it back; nobody stays signed in. Raises `ConfigError`."""
    origin = ServerOrigin.FOLDER if project else ServerOrigin.USER
    found = [one for one in configured_servers(trust).servers if one.server.name == name and one.origin is origin]
    keeps_trust = project and trust.trusted and not trust.once
    if not write_server(trust.workspace / FOLDER_FILE if project else servers_file(), name, None):
        raise _not_there(name, FOLDER_FILE if project else str(servers_file()), project=project)
    if keeps_trust:
        _trust_again(trust)
    for one in found:
        pin_book().forget(identity_of(one.server, origin, trust.workspace))
        if one.server.url:
            forget_tokens(one.server)


def switch_server(name: str, trust: SessionTrust, *, enabled: bool, project: bool) -> None:
    """Let a server be used in new sessions, or not. Raises `ConfigError`."""
    file = trust.workspace / FOLDER_FILE if project else servers_file()
    entry = entry_of(file, name)
    if entry is None:
        raise _not_there(name, str(file), project=project)
    keeps_trust = project and trust.trusted and not trust.once
    kept = {key: value for key, value in entry.items() if key != "disabled"}
    write_server(file, name, kept if enabled else {**kept, "disabled": True})
    if keeps_trust:
        _trust_again(trust)


def _not_there(name: str, where: str, *, project: bool) -> ConfigError:
    return ConfigError(
        "mcp-unknown",
        f"There is no MCP server {visible(name)!r} in {visible(where)}.",
        fix=f"`treadle mcp list` lists them. {'' if project else 'One of the folder: add --project.'}".strip(),
    )


async def sign_in_to(
    name: str, trust: SessionTrust, show: Callable[[str], None], pasted: Callable[[], Awaitable[str]]
) -> ServerHealth:
    """Sign in to a server over HTTP; `show` is given the address to open, `pasted` waits for the one it ended at.

    Raises `ConfigError`.
    """
    from treadle.app.servers.signing_in import BrowserSignIn

    (one,) = named_server(configured_servers(trust), name).servers
    if not one.server.url:
        raise ConfigError("mcp-login", f"The MCP server {visible(name)} is a program, which has no sign-in over HTTP.")
    patient = replace(one, server=replace(one.server, connect_seconds=_LONGEST_SIGN_IN))
    with closing(BrowserSignIn(one.server, show, pasted)) as signing_in:
        patience = _LONGEST_SIGN_IN
        only = Configured(servers=(patient,))
        async with connected(only, trust, patience, sign_in=lambda _: signing_in.auth) as hub:
            health = hub.health()[0]
        if health.state is ServerState.CONNECTED:
            await signing_in.keep()
    if health.state is not ServerState.CONNECTED:
        raise ConfigError(
            "mcp-login",
            f"You are not signed in to {visible(name)}.",
            why=health.why.removesuffix(way_to_sign_in(name)).rstrip(),
            fix="Run it again. To a server that registers no new programs give a token: treadle mcp add NAME --url URL "
            "--header 'Authorization: Bearer ...'",
        )
    return health


async def shown_tools(name: str, trust: SessionTrust, *, approve: bool) -> tuple[str, ...]:
    """Describe the tools of a server, with what changed since they were approved; exactly those can be approved.

    Raises `ConfigError` or `StoreError`.
    """
    async with connected(named_server(configured_servers(trust), name), trust) as hub:
        health, tools, plan = hub.health()[0], tuple(hub.tools().values()), hub.plans[0]
        declared = hub.table.declared_by(plan)
    if health.state is not ServerState.CONNECTED:
        raise ConfigError(
            "mcp-connect",
            f"The MCP server {visible(name)} cannot be connected to.",
            why=health.why or str(health.state),
            fix=f"treadle mcp logs {visible(name)}",
        )
    book = pin_book()
    approved = book.read(plan.identity)
    lines = (
        *_tool_lines(tools, approved.texts),
        *_instruction_lines(declared, health, approved.instructions),
    )
    if not approve:
        return lines
    book.pin(name, plan.identity, declared, only=True)
    return (*lines, f"Approved {counted(len(tools), 'tool')} as they are now.")


def _instruction_lines(declared: Declared, health: ServerHealth, approved: str) -> Iterator[str]:
    if declared.instructions:
        yield f"Instructions for the model  [{health.instructions}]"
        yield from (f"  {line}" for line in declared.instructions.splitlines())
    if health.instructions == PinState.CHANGED:
        lines = unified_diff(approved.splitlines(), declared.instructions.splitlines(), "approved", "now", n=1)
        yield from (f"    {line}" for line in lines)


def _tool_lines(tools: Iterable[ServerTool], texts: Mapping[str, str]) -> Iterator[str]:
    for tool in tools:
        one = tool.declared
        hints = {"reads only": one.read_only, "destructive": one.destructive, "reaches out": one.open_world}
        said = ", ".join(word for word, hint in hints.items() if hint)
        state = f"not used: {one.hidden}" if one.hidden else tool.pinned
        yield f"{tool.spec.name}  [{state}{f'; says of itself: {said}' if said else ''}]"
        yield from (f"  {line}" for line in one.said.splitlines())
        if tool.pinned is PinState.CHANGED:
            before = texts.get(one.name, "").splitlines()
            yield from (f"    {line}" for line in unified_diff(before, one.text.splitlines(), "approved", "now", n=1))


def log_text(name: str) -> str:
    """Give the end of what a server logged and printed on standard error."""
    pieces: list[str] = []
    folder = log_folder(name)
    errors = sorted(folder.glob("output-*"), key=_changed_at)[-1:]
    for title, file in (("log", folder / "messages.log"), *(("standard error", one) for one in errors)):
        text = _end_of(file)
        if text:
            pieces.append(f"--- {title} ({file})\n{text}")
    return visible("\n".join(pieces))


_MOST_OF_LOG = 40_000


def _changed_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _end_of(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - _MOST_OF_LOG))
            return stream.read().decode(errors="replace").rstrip()
    except OSError:
        return ""
