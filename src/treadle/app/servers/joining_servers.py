"""Puts the servers of a session together, where some are configured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from treadle.app.servers.configured import Configured, configured_servers, server_secrets
from treadle.app.servers.identity import kept_secrets
from treadle.app.servers.opening_servers import ServersPlace, ServersSurface, open_hub
from treadle.app.servers.session_servers import SessionServers
from treadle.engine.ports import Tool
from treadle.mcp.states import Exchange
from treadle.protocol.errors import ConfigError
from treadle.protocol.servers import McpServer
from treadle.protocol.tools import ToolSpec

if TYPE_CHECKING:
    from treadle.app.servers.sampling import AskAside
    from treadle.mcp.callbacks import SampleAsked


class ServersWanted(ServersPlace, frozen=True, kw_only=True):
    """What a session's servers are put together from.

    With `others` those that are configured count besides the `given` ones. `native` says whether calls are native ones
    now, `window` gives the model's tokens, `sent` the tools of the last request, `tell` shows the person a sentence,
    `aside` asks the model beside the work, and `tools` are those that the session has anyway.
    """

    given: tuple[McpServer, ...]
    others: bool
    exchanges: Mapping[str, Exchange]
    native: Callable[[], bool]
    window: Callable[[], int | None]
    sent: Callable[[], Sequence[ToolSpec]]
    tell: Callable[[str], object]
    aside: "AskAside"
    tools: Mapping[str, Tool]


def join_servers(wanted: ServersWanted) -> Mapping[str, Any]:
    """Read what is configured, and give what the servers add to the session; nothing is started yet."""
    configured = configured_servers(wanted.trust, wanted.given, others=wanted.others)
    if not configured.servers:
        return {"notices": configured.notices}

    async def sample(asked: "SampleAsked") -> tuple[str, str] | None:
        from treadle.app.servers.sampling import sample_for

        return await sample_for(wanted.aside, asked)

    surface = ServersSurface(tell=wanted.tell, taken=wanted.tools, sample=sample)
    try:
        hub = open_hub(configured, wanted, surface, wanted.exchanges)
    except ConfigError as error:
        return {"notices": (*configured.notices, f"{error.what} {error.fix}")}
    servers = SessionServers(hub, native=wanted.native, window=wanted.window, sent=wanted.sent)
    return {
        "servers": servers,
        "offered": servers.tools(wanted.tools),
        "known": {**wanted.tools, **servers.fixed},
        "left_out": servers.left_out,
        "before_step": (servers.before_step,),
        "prompt_parts": servers.prompt_parts,
        "notices": configured.notices,
        "secrets": (*server_secrets(one.server for one in configured.servers), *_tokens(configured)),
    }


def _tokens(configured: Configured) -> Iterator[tuple[str, str]]:
    for one in configured.servers:
        if one.server.url:
            with suppress(ConfigError):
                yield from kept_secrets(one.server)
