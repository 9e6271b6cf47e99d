"""Results whose words are not Treadle's own: each names whose they are."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.policy.urls import HostKind, check_url
from treadle.protocol.tools import CallResult, Origin, Outcome, result_text

if TYPE_CHECKING:
    from treadle.workspace.namespaces.listeners import CommandServers

_PORTS = {"http": 80, "https": 443}


def is_own(url: str, servers: "CommandServers | None") -> bool:
    """Whether a server that a command of this session runs answers a URL now."""
    check = check_url(url)
    if servers is None or check.kind is not HostKind.LOOPBACK:
        return False
    return servers.answer(check.host, check.port or _PORTS[url.partition(":")[0].lower()])


def result_of(origin: Origin, outcome: Outcome, text: str) -> CallResult:
    """Build a result of plain text that others wrote."""
    return replace(result_text(outcome, text), origin=origin)


def origin_of_page(url: str) -> Origin:
    """Say whose words a page holds: what this machine serves to itself comes from a program of the user's."""
    return Origin.COMMAND if check_url(url).kind is HostKind.LOOPBACK else Origin.WEB
