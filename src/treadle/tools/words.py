"""Results whose words are not Treadle's own: each names whose they are."""

from msgspec.structs import replace

from treadle.policy.urls import HostKind, check_url
from treadle.protocol.tools import CallResult, Origin, Outcome, result_text


def result_of(origin: Origin, outcome: Outcome, text: str) -> CallResult:
    """Build a result of plain text that others wrote."""
    return replace(result_text(outcome, text), origin=origin)


def origin_of_page(url: str) -> Origin:
    """Say whose words a page holds: what this machine serves to itself comes from a program of the user's."""
    return Origin.COMMAND if check_url(url).kind is HostKind.LOOPBACK else Origin.WEB
