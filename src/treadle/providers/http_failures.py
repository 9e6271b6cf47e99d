"""What the HTTP client raises, as `ModelError`s."""

import ssl

from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import failure, without_query
from treadle.providers.http_client import (
    AddressError,
    CompressionError,
    ConnectTimeoutError,
    HeaderError,
    IdleTimeoutError,
)


def from_exception(endpoint: Endpoint, error: Exception) -> ModelError:
    """Map what the HTTP client raised; its text is shown only where it cannot hold a header."""
    match error:
        case TimeoutError():
            why = f"the reply did not begin within {endpoint.limits.first_byte:g} s"
            return failure(endpoint, ErrorKind.TIMEOUT, why)
        case ConnectTimeoutError():
            return failure(endpoint, ErrorKind.TIMEOUT, f"no connection to {endpoint.host} within its time limit")
        case IdleTimeoutError():
            return failure(endpoint, ErrorKind.TIMEOUT, "the connection stood still")
        case AddressError():
            return failure(
                endpoint, ErrorKind.BAD_REQUEST, f"{without_query(endpoint.base_url)!r} is no usable base URL"
            )
        case HeaderError():
            return failure(endpoint, ErrorKind.BAD_REQUEST, "a header of the request cannot be sent")
        case CompressionError():
            return failure(endpoint, ErrorKind.MALFORMED_STREAM, "its compression is damaged")
        case _:
            return _from_network(endpoint, error)


def _from_network(endpoint: Endpoint, error: Exception) -> ModelError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = f"the certificate of {endpoint.host} cannot be trusted ({cause.verify_message})"
            return failure(endpoint, ErrorKind.BAD_REQUEST, why)
        cause = cause.__cause__ or cause.__context__
    return failure(endpoint, ErrorKind.NETWORK, str(error) or type(error).__name__)
