"""Rules for URLs that can be checked without the network: scheme, form, and where the host is."""

import ipaddress
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

from treadle.protocol.metadata_hosts import METADATA_ADDRESSES, METADATA_NAMES
from treadle.protocol.patterns import regex


class HostKind(StrEnum):
    """Where a host is, as far as its spelling tells."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    METADATA = "metadata"
    INVALID = "invalid"


class UrlCheck(Struct, frozen=True, kw_only=True):
    """The answer for one URL; `host` is empty when it has none, `problem` says why a URL is refused."""

    kind: HostKind
    host: str = ""
    port: int | None = None
    problem: str = ""


_PRIVATE_ENDINGS = (
    *(".internal", ".local", ".localdomain", ".lan", ".intranet", ".corp", ".home.arpa", ".svc"),
    *("nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "traefik.me"),
)
"""Of private networks, and of services whose names lead to any address."""

_NUMBER = regex(r"0[xX][0-9a-fA-F]*|[0-9]+")
"""A part of an address in another spelling: the C library reads `127.1`, `0x7f.1` and `2130706433`, people do not."""

_EMBEDDED_ADDRESS = regex(r"(\d{1,3}[.-]){3}\d{1,3}")


def check_url(url: str) -> UrlCheck:
    """Judge a URL by rule 24: http or https, no credentials, a parsed host, and no private address in any spelling."""
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url) or "\\" in url:
        return UrlCheck(kind=HostKind.INVALID, problem="the URL has spaces, control characters or backslashes")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        return UrlCheck(kind=HostKind.INVALID, problem=f"the URL cannot be read: {error}")
    if parts.scheme not in ("http", "https"):
        problem = f"{parts.scheme or 'no'} scheme instead of http or https"
        return UrlCheck(kind=HostKind.INVALID, host=host, problem=problem)
    if parts.username is not None or parts.password is not None:
        return UrlCheck(kind=HostKind.INVALID, host=host, port=port, problem="the URL contains a user name or password")
    return UrlCheck(kind=host_kind(host), host=host, port=port)


def host_kind(host: str) -> HostKind:
    """Say where a host is by its spelling; an address that is spelled in another way than usual is none to go to."""
    name = host.strip("[]").rstrip(".").lower()
    if not name or "%" in name or "\0" in name:
        return HostKind.INVALID
    with suppress(ValueError):
        return _address_kind(ipaddress.ip_address(name))
    if all(_NUMBER.fullmatch(part) for part in name.split(".")):
        return HostKind.INVALID
    if name == "localhost" or name.endswith(".localhost"):
        return HostKind.LOOPBACK
    if name in METADATA_NAMES:
        return HostKind.METADATA
    is_private = name.endswith(_PRIVATE_ENDINGS) or "." not in name or _EMBEDDED_ADDRESS.search(name)
    return HostKind.PRIVATE if is_private else HostKind.PUBLIC


def matches_host(host: str, allowed: Iterable[str]) -> bool:
    """Whether a host is one of the allowed ones: exactly, or below an entry that starts with a dot."""
    name = host.rstrip(".").lower()
    return any(name == entry or (entry.startswith(".") and name.endswith(entry)) for entry in allowed)


def _address_kind(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> HostKind:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or _embedded(address)
        if inner is not None:
            return _address_kind(inner)
    if address.is_link_local or address in METADATA_ADDRESSES:
        return HostKind.METADATA
    if address.is_loopback:
        return HostKind.LOOPBACK
    return HostKind.PUBLIC if address.is_global and not address.is_multicast else HostKind.PRIVATE


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Give the address inside an IPv4-compatible or NAT64 one."""
    prefix, inner = divmod(int(address), 1 << 32)
    is_inside = prefix == 0x64FF9B << 64 or (prefix == 0 and inner > 1)
    return ipaddress.IPv4Address(inner) if is_inside else None
