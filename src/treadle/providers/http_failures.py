"""What the HTTP client raises, as `ModelError`s."""

import ssl

import httpx2

from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import failure, without_query

HTTP_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
"""Everything a call or its body can raise; `TimeoutError` is an `OSError`."""

_CERTIFICATES = (
    "If your company uses a proxy or gateway, or the server has its own certificate, name the file with the CA "
    "certificate (PEM): ca_file under [providers.{name}] in your settings, or SSL_CERT_FILE in the environment. "
    "Check the date of this machine, too. Otherwise do not trust this connection."
)


def from_exception(endpoint: Endpoint, error: Exception) -> ModelError:
    """Map what the HTTP client raised; its text is shown only where it cannot hold a header."""
    match error:
        case TimeoutError():
            why = f"the reply did not begin within {endpoint.limits.first_byte:g} s (first_byte_timeout)"
            return failure(endpoint, ErrorKind.TIMEOUT, why)
        case httpx2.ConnectTimeout():
            return failure(endpoint, ErrorKind.TIMEOUT, f"no connection to {endpoint.host} within its time limit")
        case httpx2.TimeoutException():
            return failure(endpoint, ErrorKind.TIMEOUT, "the connection stalled")
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return failure(
                endpoint, ErrorKind.BAD_REQUEST, f"{without_query(endpoint.base_url)!r} is not a usable base URL"
            )
        case httpx2.LocalProtocolError():
            return failure(endpoint, ErrorKind.BAD_REQUEST, "a header of the request cannot be sent")
        case httpx2.DecodingError():
            return failure(endpoint, ErrorKind.MALFORMED_STREAM, "its compression is damaged")
        case _:
            return _from_network(endpoint, error)


def _from_network(endpoint: Endpoint, error: Exception) -> ModelError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = f"the certificate of {endpoint.host} cannot be trusted ({cause.verify_message})"
            return failure(endpoint, ErrorKind.BAD_REQUEST, why, fix=_CERTIFICATES.format(name=endpoint.name))
        cause = cause.__cause__ or cause.__context__
    return failure(endpoint, ErrorKind.NETWORK, str(error) or type(error).__name__)
