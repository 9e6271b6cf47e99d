"""What a host says in `initialize`, before there is a session: its hooks and servers, and texts for the prompt."""

from typing import Any

from msgspec import Struct

from treadle.headless.channel import Frame


class HostStart(Struct, frozen=True, kw_only=True):
    """What of it counts. `servers` names those in the host itself, `seconds` gives limits of their calls."""

    hooks: Frame = {}
    servers: tuple[str, ...] = ()
    seconds: dict[str, float] = {}
    system: str = ""
    append: str = ""


def said_at_the_start(request: Frame) -> HostStart:
    """Read an `initialize` request; what has another form than it should counts as not said."""
    hooks, servers, configs = (request.get(name) for name in ("hooks", "sdkMcpServers", "sdkMcpServerConfigs"))
    return HostStart(
        hooks=hooks if isinstance(hooks, dict) else {},
        servers=tuple(one for one in servers if isinstance(one, str)) if isinstance(servers, list) else (),
        seconds=dict(_seconds(configs)) if isinstance(configs, dict) else {},
        system=_text(request.get("systemPrompt")),
        append=_text(request.get("appendSystemPrompt")),
    )


def _seconds(configs: Frame) -> Any:
    for name, one in configs.items():
        limit = one.get("timeout") if isinstance(one, dict) else None
        if isinstance(limit, int | float) and not isinstance(limit, bool) and limit >= 1000:
            yield name, limit / 1000


def _text(said: Any) -> str:
    """Read a text, or the parts of one."""
    parts = said if isinstance(said, list) else [said]
    return "\n\n".join(one for one in parts if isinstance(one, str))
