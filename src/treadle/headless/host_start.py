"""What a host says in `initialize`, before there is a session: its hooks and servers, and texts for the prompt."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from treadle.door.hosts import claude_part
from treadle.headless.channel import Frame


class HostStart(Struct, frozen=True, kw_only=True):
    """What of it counts. `servers` names those in the host itself, `seconds` gives limits of their calls.

    `denied` and `asked` name tools of theirs, as Claude Code does: those never allowed, and those to be asked about.
    """

    hooks: Frame = {}
    servers: tuple[str, ...] = ()
    seconds: dict[str, float] = {}
    denied: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    system: str = ""
    append: str = ""
    agents: Frame = {}


def said_at_the_start(request: Frame) -> HostStart:
    """Read an `initialize` request; what has another form than it should counts as not said."""
    hooks, servers, configs = (request.get(name) for name in ("hooks", "sdkMcpServers", "sdkMcpServerConfigs"))
    agents = request.get("agents")
    policies = list(_policies(configs)) if isinstance(configs, dict) else []
    return HostStart(
        hooks=hooks if isinstance(hooks, dict) else {},
        servers=tuple(one for one in servers if isinstance(one, str)) if isinstance(servers, list) else (),
        seconds=dict(_seconds(configs)) if isinstance(configs, dict) else {},
        denied=tuple(name for name, said in policies if said & {"always_deny", "blocked"}),
        asked=tuple(name for name, said in policies if said & {"always_ask", "ask"}),
        system=_text(request.get("systemPrompt")),
        append=_text(request.get("appendSystemPrompt")),
        agents=agents if isinstance(agents, dict) else {},
    )


def _seconds(configs: Frame) -> Iterator[tuple[str, float]]:
    for name, one in configs.items():
        limit = one.get("timeout") if isinstance(one, dict) else None
        if isinstance(limit, int | float) and not isinstance(limit, bool) and limit >= 1000:
            yield name, limit / 1000


def _policies(configs: Frame) -> Iterator[tuple[str, set[str]]]:
    for server, one in configs.items():
        tools = one.get("tools") if isinstance(one, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                said = {str(tool.get(key)) for key in ("permission_policy", "org_max_permission")}
                yield f"mcp__{claude_part(server)}__{claude_part(tool['name'])}", said


def _text(said: Any) -> str:
    """Read a text, or the parts of one."""
    parts = said if isinstance(said, list) else [said]
    return "\n\n".join(one for one in parts if isinstance(one, str))
