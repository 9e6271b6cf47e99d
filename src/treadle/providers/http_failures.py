"""What connections raise, as `ModelError`s."""

import ssl
from typing import assert_never

from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.connections import ConnectionFailedError, Trouble
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import failure, without_query

_CERTIFICATES = (
    "If your company uses a proxy or gateway, or the server has its own certificate, name the file with the CA "
    "certificate (PEM): ca_file under [providers.{name}] in your settings, or SSL_CERT_FILE in the environment. "
    "Check the date of this machine, too. Otherwise do not trust this connection."
)


def from_exception(endpoint: Endpoint, error: Exception) -> ModelError:
    """Map what a connection raised; its text is shown only where it cannot hold a header."""
    if isinstance(error, TimeoutError):
        why = f"the reply did not begin within {endpoint.limits.first_byte:g} s (first_byte_timeout)"
        return failure(endpoint, ErrorKind.TIMEOUT, why)
    if not isinstance(error, ConnectionFailedError):
        return _from_network(endpoint, error)
    match error.trouble:
        case Trouble.CONNECT_TIMEOUT:
            return failure(endpoint, ErrorKind.TIMEOUT, f"no connection to {endpoint.host} within its time limit")
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


def _from_network(endpoint: Endpoint, error: Exception) -> ModelError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = f"the certificate of {endpoint.host} cannot be trusted ({cause.verify_message})"
            return failure(endpoint, ErrorKind.BAD_REQUEST, why, fix=_CERTIFICATES.format(name=endpoint.name))
        cause = cause.__cause__ or cause.__context__
    return failure(endpoint, ErrorKind.NETWORK, str(error) or type(error).__name__)
