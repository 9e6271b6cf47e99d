"""What connections raise, as `ModelError`s: a wrong address is named, with what is wrong and what to do."""

import socket
import ssl
from collections.abc import Iterator
from typing import assert_never

from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.endpoint import LOOPBACK, Endpoint, split_url
from treadle.providers.failures import failure, without_query
from treadle.providers.http_connections import ConnectionFailedError, Trouble

FEW_RETRIES = 2
"""How often an address is tried again from which nothing has ever come: it is probably wrong (3 s in all)."""

_PORTS = {"http": 80, "https": 443}
_CERTIFICATES = (
    "If your company uses a proxy or gateway, or the server has its own certificate, name the file with the CA "
    "certificate (PEM): ca_file under [providers.{name}] in your settings, or SSL_CERT_FILE in the environment. "
    "Check the date of this machine, too. Otherwise do not trust this connection."
)
_ADDRESS = "correct it with --base-url URL, or base_url under [providers.{name}] in your settings"


def from_exception(endpoint: Endpoint, error: Exception, *, reached: bool = False) -> ModelError:
    """Map what a connection raised; its text is shown only where it cannot hold a header.

    `reached` says that the endpoint has answered before: then it is away for a while, and its address is right.
    """
    if isinstance(error, TimeoutError):
        why = f"the reply did not begin within {endpoint.limits.first_byte:g} s (first_byte_timeout)"
        return failure(endpoint, ErrorKind.TIMEOUT, why)
    if not isinstance(error, ConnectionFailedError):
        return _from_network(endpoint, error)
    few = None if reached else FEW_RETRIES
    match error.trouble:
        case Trouble.CONNECT_TIMEOUT:
            why = f"no connection to {_place(endpoint)} within {endpoint.limits.connect:g} s (connect_timeout)"
            return failure(endpoint, ErrorKind.TIMEOUT, why, fix=_check(endpoint), retries=few)
        case Trouble.UNREACHED:
            return _unreached(endpoint, error, few)
        case Trouble.STALLED:
            return failure(endpoint, ErrorKind.TIMEOUT, "the connection stalled")
        case Trouble.ADDRESS:
            return failure(
                endpoint, ErrorKind.BAD_REQUEST, f"{without_query(endpoint.base_url)!r} is not a usable base URL"
            )
        case Trouble.HEADER:
            return failure(endpoint, ErrorKind.BAD_REQUEST, "a header of the request cannot be sent")
        case Trouble.COMPRESSION:
            return failure(endpoint, ErrorKind.MALFORMED_STREAM, "its compression is damaged")
        case Trouble.NETWORK:
            return _from_network(endpoint, error)
        case _:
            assert_never(error.trouble)


def _unreached(endpoint: Endpoint, error: Exception, few: int | None) -> ModelError:
    """Say why no connection came about: by the system's own errors, where they are told."""
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return _from_network(endpoint, error)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        why = f"{_place(endpoint)} does not answer in TLS ({_text(causes, ssl.SSLError)})"
        fix = f"If the server has no TLS, write its address with http://. Otherwise check the port: {_way(endpoint)}."
        return failure(endpoint, ErrorKind.BAD_REQUEST, why, fix=fix)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        why = f"the host of {_place(endpoint)} was not found ({_text(causes, socket.gaierror)})"
        fix = f"Check whether this machine is online. If the address is wrong, {_way(endpoint)}."
        return failure(endpoint, ErrorKind.NETWORK, why, fix=fix, retries=few)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        why = f"nothing listens at {_place(endpoint)}"
        return failure(endpoint, ErrorKind.NETWORK, why, fix=_check(endpoint), retries=few)
    why = f"there is no connection to {_place(endpoint)} ({str(causes[-1]) or type(causes[-1]).__name__})"
    return failure(endpoint, ErrorKind.NETWORK, why, fix=_check(endpoint), retries=few)


def _from_network(endpoint: Endpoint, error: Exception) -> ModelError:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = f"the certificate of {endpoint.host} cannot be trusted ({cause.verify_message})"
            return failure(endpoint, ErrorKind.BAD_REQUEST, why, fix=_CERTIFICATES.format(name=endpoint.name))
    return failure(endpoint, ErrorKind.NETWORK, str(error) or type(error).__name__)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and all that led to it; of several addresses that were tried, what each of them said."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                yield from _causes(one)
        error = error.__cause__ or error.__context__


def _text(causes: list[BaseException], kind: type[OSError]) -> str:
    found = next(cause for cause in causes if isinstance(cause, kind))
    reason = getattr(found, "reason", None)
    return str(reason or getattr(found, "strerror", None) or found)


def _place(endpoint: Endpoint) -> str:
    """Name the address, and where it names no port, the port that it means."""
    parts = split_url(endpoint.base_url)
    shown = without_query(endpoint.base_url)
    return shown if parts.port else f"{shown} (port {_PORTS.get(parts.scheme, '')})"


def _check(endpoint: Endpoint) -> str:
    here = endpoint.host in LOOPBACK and not endpoint.proxy
    first = "Start the server" if here else "Check the network, and a proxy if you have one"
    return f"{first}. If the address is wrong, {_way(endpoint)}."


def _way(endpoint: Endpoint) -> str:
    return _ADDRESS.format(name=endpoint.name)
