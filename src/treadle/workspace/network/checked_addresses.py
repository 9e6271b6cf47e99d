"""Which addresses of the network may be reached: names are resolved once, checked, and the checked address is used."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.metadata_hosts import METADATA_ADDRESSES

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the addresses of a host (a name or an address) and port, best first; raises `OSError`."""

CONNECT_SECONDS = 10.0

_NAT64 = IPv6Network("64:ff9b::/96")
_MOST_ADDRESSES = 3


class HostPort(Struct, frozen=True):
    """Where a request goes: a host in lower case, without brackets, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Ask the system for the addresses of a host."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine itself by its spelling: `localhost`, or an address of its own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is one of the open network; an IPv4 address inside an IPv6 one counts as itself."""
    inner = _inner(address)
    is_open = address.is_global and not address.is_multicast and address not in METADATA_ADDRESSES
    return is_open and (inner is None or is_public(inner))


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


def _is_forbidden(address: IPv4Address | IPv6Address) -> bool:
    """Whether nobody may reach an address through Treadle: link-local ones and those that hand out credentials."""
    own = _inner(address) or address
    return own.is_link_local or address.is_link_local or own in METADATA_ADDRESSES or own.is_multicast


async def checked_addresses(place: HostPort, resolver: Resolver, *, private: bool) -> tuple[str, ...]:
    """Resolve a place and give the addresses to connect to.

    With `private`, this machine and its network are allowed. One address that is not allowed refuses them all, since
    a name that points to both is a trick. Raises `ToolError`.
    """
    try:
        answers = await resolver(place.host, place.port)
        found = [ipaddress.ip_address(answer.partition("%")[0]) for answer in answers]
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ToolError(f"{place.host} cannot be resolved: {why}. Check the name, or use another source.") from error
    if not found:
        raise ToolError(f"{place.host} has no address. Check the name, or use another source.")
    for address in found:
        if _is_forbidden(address):
            raise ToolError(
                f"{place.host} is {address}, a link-local, metadata or multicast address, which is never allowed. Do "
                "not try another way. Tell the user if the task needs it."
            )
        if not private and not is_public(address):
            raise ToolError(
                f"{place.host} is {address}, an address of this machine or a private network, and the URL does not "
                "show that. If the user wants that place, give a URL with localhost or the address itself."
            )
    return tuple(dict.fromkeys(map(str, found)))[:_MOST_ADDRESSES]


async def connect_checked(
    place: HostPort, resolver: Resolver, *, private: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address of a place that answers, checked as above. Raises `ToolError`."""
    for address in await checked_addresses(place, resolver, private=private):
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(address, place.port)
    raise ToolError(f"{place} cannot be connected to. Check that the server runs and the port is right.")
