"""What a host asks of the program itself: to begin, to interrupt, to change mode or model, to say how it is."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from treadle import __version__
from treadle.door.commands import SLASH_TABLE, Surfaces
from treadle.door.hosts import claude_names
from treadle.door.open_session import LiveSession
from treadle.door.opening import session_log
from treadle.door.past import Points
from treadle.door.reports import find_job, kill_job
from treadle.headless.channel import Frame
from treadle.headless.frames import MODE_NAMES
from treadle.headless.host_questions import HOST_MODES, NOBODY
from treadle.headless.host_servers import server_status
from treadle.headless.host_start import said_at_the_start
from treadle.protocol.attach import ListedAgent
from treadle.protocol.errors import SessionError, ToolError, TreadleError
from treadle.protocol.permissions import Mode

if TYPE_CHECKING:
    from treadle.headless.hosting import HostedSession

SPOKEN = "2.1.0"
"""The version of Claude Code whose frames these are: hosts look at it to know what they may use."""


_UNUSED = MappingProxyType({"toolAliases": "tools have one name", "skills": "all skills are offered"})
"""Parts of `initialize` that change nothing here, each with the reason."""


class UnsupportedError(Exception):
    """The host asks for what there is not; the text says so."""


async def control(host: "HostedSession", frame: Frame) -> None:
    """Do what a request of the host says, and answer it. Raises `TreadleError` where the session cannot be opened."""
    request_id, request = str(frame.get("request_id")), frame.get("request")
    request = request if isinstance(request, dict) else {}
    subtype = request.get("subtype")
    handler = _HANDLERS.get(str(subtype))
    if handler is None:
        host.channel.answer(request_id, error=f"Treadle has no control request {subtype!r}.")
        return
    if handler is _initialize:
        host.speaks = True
        if host.live is None:
            host.began = said_at_the_start(request)
    waits = handler is _interrupt or (handler is _initialize and host.waits_for_trust)
    live = host.live if waits else await host.session()
    try:
        host.channel.answer(request_id, await handler(host, live, request))
    except UnsupportedError as error:
        host.channel.answer(request_id, error=str(error))
    except TreadleError as error:
        host.channel.answer(request_id, error=" ".join(filter(None, (error.what, error.why, error.fix))))


def init_fields(host: "HostedSession", live: LiveSession) -> Frame:
    """Give what the frame at the beginning of a turn says."""
    status = live.status
    return {
        "cwd": str(live.workspace),
        "tools": list(claude_names(live.tools)),
        "mcp_servers": [{"name": one["name"], "status": one["status"]} for one in server_status(live)],
        "model": status.model,
        "permissionMode": mode_of(host, live),
        "slash_commands": [command["name"] for command in _commands()],
        "apiKeySource": "none",
        "claude_code_version": SPOKEN,
        "treadle_version": __version__,
        "output_style": "default",
        "agents": list(_agents(live)),
        "skills": [],
        "plugins": [],
        "capabilities": [],
    }


def mode_of(host: "HostedSession", live: LiveSession) -> str:
    """Name the mode as hosts do."""
    mode = MODE_NAMES[live.status.mode]
    return NOBODY if mode == MODE_NAMES[Mode.ASK] and not host.present and host.hosting.task is None else mode


async def _initialize(host: "HostedSession", live: LiveSession | None, request: Frame) -> Frame:
    if host.began != said_at_the_start(request):
        raise UnsupportedError("The session has begun already: its hooks, servers and prompt stay as they are.")
    for name in host.began.asked:
        host.warn(f"{name} asks as the mode does: in bypassPermissions it runs without a question.")
    for name, why in _UNUSED.items():
        if request.get(name):
            host.warn(f"The {name} of the host are not used: {why}.")
    said: Frame = {
        "commands": list(_commands()),
        "agents": [],
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": [],
        "account": {},
        "pid": os.getpid(),
        "claude_code_version": SPOKEN,
        "capabilities": [],
        "hooks_applied": True,
        "hook_on_failure_supported": True,
    }
    if live is not None:
        model = live.status.model
        said["models"] = [{"value": model, "displayName": model, "description": ""}]
        agents = _agents(live).items()
        said["agents"] = [{"name": name, "description": agent.description} for name, agent in agents]
    return said


def _agents(live: LiveSession) -> Mapping[str, ListedAgent]:
    """Find the agents that the session can use, by name."""
    from treadle.door.reports import listed_agents

    return listed_agents(live.trust, live.agents)[0]


def _commands() -> list[Frame]:
    return [
        {"name": row.name, "description": row.about, "argumentHint": row.arguments}
        for row in SLASH_TABLE
        if Surfaces.HEADLESS in row.where
    ]


async def _interrupt(host: "HostedSession", live: LiveSession | None, request: Frame) -> Frame:  # noqa: ARG001
    if live is None or not live.status.turn_active:
        host.messages.interrupt()
    if live is None:
        return {"still_queued": []}
    await host.interrupt(live)
    return {"still_queued": [prompt.id for prompt in live.status.queue]}


async def _set_mode(host: "HostedSession", live: LiveSession, request: Frame) -> Frame:
    wanted = str(request.get("mode"))
    if wanted not in HOST_MODES:
        raise UnsupportedError(f"There is no permission mode {wanted!r}.")
    await host.change_mode(live, wanted)
    return {"mode": wanted}


async def _set_model(host: "HostedSession", live: LiveSession, request: Frame) -> Frame:
    wanted = request.get("model")
    if wanted in (None, "default"):
        wanted = host.first_model
    ref = with_provider(str(wanted), live.status.model)
    if ref != live.status.model:
        await live.post(live.choose(ref), host.source)
    return {}


def with_provider(name: str, known: str) -> str:
    """Give a model's name with its provider, that of a known one where a host names none."""
    return name if "/" in name or "/" not in known else f"{known.partition('/')[0]}/{name}"


async def _set_thinking(host: "HostedSession", live: LiveSession, request: Frame) -> Frame:
    tokens = request.get("max_thinking_tokens")
    if isinstance(tokens, bool) or not (tokens is None or (isinstance(tokens, int) and tokens >= 0)):
        raise UnsupportedError(f"{tokens!r} is no number of tokens.")
    await live.post(live.choose(live.status.model, tokens), host.source)
    return {}


async def _context(host: "HostedSession", live: LiveSession, request: Frame) -> Frame:  # noqa: ARG001
    status = live.status
    total, window = status.tokens, status.window or 0
    categories = await asyncio.to_thread(_categories, live.id)
    return {
        "categories": [{"name": name, "tokens": tokens} for name, tokens in categories.items()],
        "totalTokens": total,
        "maxTokens": window,
        "rawMaxTokens": window,
        "percentage": round(100 * total / window, 1) if window else 0,
        "model": status.model,
        "memoryFiles": [],
        "mcpTools": [],
    }


def _categories(session_id: str) -> dict[str, int]:
    """Sum up what the last request consisted of, by where it came from; nothing before the first one."""
    from treadle.door.reports import context_report, sent_request

    with session_log(session_id) as (row, store):
        try:
            blocks = context_report(sent_request(tuple(store.read(row.id, whole=False))), None).blocks
        except SessionError:
            return {}
    sums: dict[str, int] = {}
    for block in blocks:
        sums[block.source] = sums.get(block.source, 0) + block.tokens
    return sums


async def _rewind(host: "HostedSession", live: LiveSession, request: Frame) -> Frame:
    """Bring the files back to before a message of the host; the conversation stays."""
    wanted = await asyncio.to_thread(_files_before, live.id, str(request.get("user_message_id")))
    if wanted is None:
        return {"canRewind": False, "error": "No file was changed since this message, or it is not of this session."}
    if request.get("dry_run"):
        return {"canRewind": True}
    if live.status.turn_active:
        raise UnsupportedError("The model is working. Interrupt it first.")
    await live.post(wanted, host.source)
    await host.until_quiet(live)
    return {"canRewind": True}


def _files_before(session_id: str, prompt_id: str) -> Any:
    with session_log(session_id) as (row, store):
        points = Points(store, row.id)
        turn = next((one for one in points.turns() if prompt_id in one.prompts), None)
        wanted = None if turn is None else points.before_turn(turn)
    return replace(wanted, conversation=False, to=0) if wanted is not None and wanted.files else None


async def _mcp_status(host: "HostedSession", live: LiveSession, request: Frame) -> Frame:  # noqa: ARG001
    return {"mcpServers": server_status(live)}


async def _mcp_reconnect(host: "HostedSession", live: LiveSession, request: Frame) -> Frame:
    return await _mcp_toggle(host, live, {**request, "enabled": True})


async def _mcp_toggle(host: "HostedSession", live: LiveSession, request: Frame) -> Frame:  # noqa: ARG001
    """Turn a server on or off; one that is on and not connected is tried once more."""
    name, on = str(request.get("serverName")), request.get("enabled") is True
    if live.servers is None or name not in [one.name for one in live.servers.hub.health()]:
        raise UnsupportedError(f"There is no MCP server {name!r} in this session.")
    try:
        health = await live.servers.hub.turn(name, on=on)
    except ToolError as error:
        raise UnsupportedError(error.text) from error
    if on and health.state != "connected":
        raise UnsupportedError(f"The MCP server {name} is not connected: {health.why}.")
    return {}


async def _stop_task(host: "HostedSession", live: LiveSession, request: Frame) -> Frame:  # noqa: ARG001
    def stop() -> None:
        line, job = find_job(str(request.get("task_id")))
        if line.session == live.id:
            kill_job(job)

    await asyncio.to_thread(stop)
    return {}


_Handler = Callable[["HostedSession", Any, Frame], Awaitable[Frame]]

_HANDLERS: Mapping[str, _Handler] = MappingProxyType(
    {
        "initialize": _initialize,
        "interrupt": _interrupt,
        "set_permission_mode": _set_mode,
        "set_model": _set_model,
        "set_max_thinking_tokens": _set_thinking,
        "get_context_usage": _context,
        "rewind_files": _rewind,
        "stop_task": _stop_task,
        "mcp_status": _mcp_status,
        "mcp_reconnect": _mcp_reconnect,
        "mcp_toggle": _mcp_toggle,
    }
)

BESIDE = frozenset({"get_context_usage", "rewind_files", "stop_task", "mcp_reconnect", "mcp_toggle"})
"""Those that may take a while: nothing that the host says next waits for them."""
