"""What connections raise, as `ModelError`s: a wrong address is named, with what is wrong and what to do."""

import ssl
from typing import assert_never

from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.endpoint import LOOPBACK, Endpoint, split_url
from treadle.providers.failures import clean, failure, sentence, without_query
from treadle.providers.http_connections import ConnectionFailedError, Trouble
from treadle.providers.local_advice import start_advice
from treadle.workspace.unreached import Obstacle, causes_of, place_named, proxy_of, why_unreached

FEW_RETRIES = 2
"""How often an address is tried again from which nothing has ever come: it is probably wrong (3 s in all)."""

_CERTIFICATES = (
    "If your company uses a proxy or gateway, or the server has its own certificate, name the file with the CA "
    "certificate (PEM): ca_file under [providers.{name}] in your settings, or SSL_CERT_FILE in the environment. "
    "Check the date of this machine, too. Otherwise do not trust this connection."
)
_GO_ON = (
    "Continue the session: the request is sent again. If it happens often, look for a proxy or gateway that ends long "
    "replies."
)
_ADDRESS = "correct it with --base-url URL, or base_url under [providers.{name}] in your settings"


def from_exception(
    endpoint: Endpoint, error: Exception, *, reached: bool = False, status: int | None = None
) -> ModelError:
    """Map what a connection raised; its text is shown only where it cannot hold a header.

    `reached` says that the endpoint has answered before: then it is away for a while, and its address is right.
    `status` is that of the reply which had begun.
    """
    if isinstance(error, TimeoutError):
        place, seconds = place_named(endpoint.base_url), endpoint.limits.first_byte
        why = f"the reply of {place} did not begin within {seconds:g} s (first_byte_timeout)"
        return failure(endpoint, ErrorKind.TIMEOUT, why)
    if not isinstance(error, ConnectionFailedError):
        return _from_network(endpoint, error, status)
    few = None if reached else FEW_RETRIES
    match error.trouble:
        case Trouble.CONNECT_TIMEOUT | Trouble.UNREACHED | Trouble.PROXY:
            return _unreached(endpoint, error, few)
        case Trouble.STALLED:
            return failure(endpoint, ErrorKind.TIMEOUT, f"the connection to {place_named(endpoint.base_url)} stalled")
        case Trouble.ADDRESS:
            return failure(
                endpoint, ErrorKind.BAD_REQUEST, f"{without_query(endpoint.base_url)!r} is not a usable base URL"
            )
        case Trouble.HEADER:
            return failure(endpoint, ErrorKind.BAD_REQUEST, "a header of the request cannot be sent")
        case Trouble.COMPRESSION:
            return failure(endpoint, ErrorKind.MALFORMED_STREAM, "its compression is damaged")
        case Trouble.PROTOCOL if status is None:
            return _no_http(endpoint, error, few)
        case Trouble.PROTOCOL | Trouble.NETWORK:
            return _from_network(endpoint, error, status)
        case _:
            assert_never(error.trouble)


def _unreached(endpoint: Endpoint, error: Exception, few: int | None) -> ModelError:
    """Say why no connection came about, where it went, and what to do about exactly that."""
    proxy = endpoint.proxy or proxy_of(endpoint.base_url)
    found = why_unreached(error, endpoint.base_url, seconds=endpoint.limits.connect, proxy=proxy)
    match found.obstacle:
        case Obstacle.CERTIFICATE:
            fix = _CERTIFICATES.format(name=endpoint.section)
            return failure(endpoint, ErrorKind.BAD_REQUEST, found.text, fix=fix)
        case Obstacle.NO_TLS:
            fix = (
                f"If the server has no TLS, write its address with http://. Otherwise check the port: {_way(endpoint)}."
            )
            return failure(endpoint, ErrorKind.BAD_REQUEST, found.text, fix=fix)
        case Obstacle.SILENT:
            why = f"{found.text} (connect_timeout)"
            none = None if few is None else 0  # the system has asked several times by then
            return failure(endpoint, ErrorKind.TIMEOUT, why, fix=_check(endpoint, proxy), retries=none)
        case Obstacle.NO_HOST if not proxy:
            fix = f"Check whether this machine is online. If the address is wrong, {_way(endpoint)}."
            return failure(endpoint, ErrorKind.NETWORK, found.text, fix=fix, retries=few)
        case _:
            return failure(endpoint, ErrorKind.NETWORK, found.text, fix=_check(endpoint, proxy), retries=few)


def _no_http(endpoint: Endpoint, error: Exception, few: int | None) -> ModelError:
    """Say that a server did not answer as HTTP says, or closed the connection, which a server in TLS does, too."""
    place = place_named(endpoint.base_url)
    why = f"{place} gave no answer of HTTP ({error})"
    fix = ""
    if few is not None and endpoint.scheme == "http":
        fix = f"If the server has TLS, write its address with https://. Otherwise check the port: {_way(endpoint)}."
    return failure(endpoint, ErrorKind.NETWORK, why, fix=fix, retries=few)


def _from_network(endpoint: Endpoint, error: Exception, status: int | None) -> ModelError:
    for cause in causes_of(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _unreached(endpoint, error, None)
    said = str(error) or type(error).__name__
    why = f"the connection to {place_named(endpoint.base_url)} broke off ({said})"
    if status is None:
        return failure(endpoint, ErrorKind.NETWORK, why)
    what = f"{endpoint.name or endpoint.host} ended its reply in the middle"
    message = sentence(clean(f"{what}: {why}", endpoint.secrets))
    return ModelError(kind=ErrorKind.NETWORK, message=message, status=status, fix=_GO_ON)


def _check(endpoint: Endpoint, proxy: str) -> str:
    if proxy:
        return (
            f"Check the proxy: HTTPS_PROXY in the environment, or proxy under [providers.{endpoint.section}] in your "
            "settings. Hosts that need none go into NO_PROXY."
        )
    here = endpoint.host in LOOPBACK
    first = start_advice(endpoint.section, split_url(endpoint.base_url).port) if here else "Check the network."
    return f"{first} If the address is wrong, {_way(endpoint)}."


def _way(endpoint: Endpoint) -> str:
    return _ADDRESS.format(name=endpoint.section)
