"""Why no connection to an address came about, in words that name the address and what was tried."""

import errno
import os
import socket
import ssl
from collections.abc import Iterator
from enum import Enum, auto
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from msgspec import Struct

from treadle.workspace.network.checked_addresses import is_this_machine

_CONNECT_HERE = 2.5
_CONNECT_ELSEWHERE = 8.0

_PORTS = {"http": 80, "https": 443}
_NO_WAY = {errno.ENETUNREACH: "the network cannot be reached", errno.EHOSTUNREACH: "there is no way to that host"}


class Obstacle(Enum):
    """What kept a connection from coming about, or from being used."""

    REFUSED = auto()
    NO_HOST = auto()
    SILENT = auto()
    NO_TLS = auto()
    CERTIFICATE = auto()
    PROXY = auto()
    OTHER = auto()


class Unreached(Struct, frozen=True):
    """The obstacle, and a clause that says where it was and what was tried."""

    obstacle: Obstacle
    text: str


def connect_seconds(url: str) -> float:
    """Say how long a connection to a URL may take (seconds): to this machine it comes about at once or not at all."""
    return _CONNECT_HERE if is_this_machine(_split(url).hostname or "") else _CONNECT_ELSEWHERE


def place_named(url: str) -> str:
    """Name an address without what may be a secret in it, and where it names no port, with the port that it means."""
    parts = _split(url)
    if not parts.netloc:
        return url.partition("?")[0]
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    try:
        return shown if parts.port else f"{shown} (port {_PORTS.get(parts.scheme, '')})"
    except ValueError:
        return shown


def proxy_of(url: str) -> str:
    """Give the proxy that the environment names for a URL; empty for none, and for this machine."""
    parts = _split(url)
    host = parts.hostname or ""
    if is_this_machine(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return ""
    proxies = getproxies()
    return "" if proxy_bypass(host) else proxies.get(parts.scheme) or proxies.get("all") or ""


def why_unreached(error: BaseException, url: str, *, seconds: float, proxy: str = "") -> Unreached:
    """Say why there is no connection to `url`, which may take so many `seconds`, by the system's own errors.

    With `proxy` the connection goes to that one, so that it is named where it could not be reached.
    """
    causes = list(causes_of(error))
    place = place_named(url)
    there = f"the proxy {place_named(proxy)} for {place}" if proxy else place
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Unreached(
                Obstacle.CERTIFICATE,
                f"the certificate of {_split(url).hostname} cannot be trusted ({cause.verify_message})",
            )
    found = next((one for one in map(_plain_cause, causes) if one is not None), None)
    match found:
        case ssl.SSLError():
            why = found.reason or found.strerror or str(found)
            return Unreached(Obstacle.NO_TLS, f"{place} does not answer in TLS ({why})")
        case socket.gaierror():
            return Unreached(Obstacle.NO_HOST, f"the host of {there} was not found ({found.strerror or found})")
        case ConnectionRefusedError():
            return Unreached(Obstacle.REFUSED, f"nothing listens at {there}")
        case TimeoutError():
            return Unreached(Obstacle.SILENT, f"no connection to {there} within {seconds:g} s")
        case OSError():
            why = _NO_WAY.get(found.errno or 0) or found.strerror or str(found) or type(found).__name__
            return Unreached(Obstacle.OTHER, f"there is no connection to {there} ({why})")
        case _:
            said = (str(cause) for cause in causes if not isinstance(cause, BaseExceptionGroup))
            last = next(filter(None, said), type(error).__name__)
            if proxy:
                text = f"the proxy {place_named(proxy)} gave no connection to {place} ({last})"
                return Unreached(Obstacle.PROXY, text)
            return Unreached(Obstacle.OTHER, f"there is no connection to {place} ({last})")


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and all that led to it; of several addresses that were tried, what each of them said."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                yield from causes_of(one)
        error = error.__cause__ or error.__context__


def _plain_cause(cause: BaseException) -> OSError | None:
    """Give an error of the system; not one that only sums up what several addresses said."""
    if not isinstance(cause, OSError):
        return None
    if cause.errno is None and f"[Errno {errno.ECONNREFUSED}]" in str(cause):  # asyncio sums up so
        return ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    known = isinstance(cause, ssl.SSLError | socket.gaierror | ConnectionRefusedError | TimeoutError)
    return cause if known or cause.errno is not None else None


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url.strip())
    except ValueError:
        return SplitResult("", "", url, "", "")
