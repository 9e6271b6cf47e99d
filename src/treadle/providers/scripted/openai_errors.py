"""Errors in the form of OpenAI, which two of its APIs share."""

from treadle.protocol.models import ErrorKind
from treadle.providers.scripted.script import Refuse
from treadle.providers.wire import dump

_BY_STATUS = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    402: "insufficient_quota",
    404: "model_not_found",
    413: "context_length_exceeded",
    429: "rate_limit_exceeded",
}
_BY_KIND = {
    ErrorKind.AUTHENTICATION: "invalid_api_key",
    ErrorKind.PERMISSION: "permission_denied",
    ErrorKind.BALANCE: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_exceeded",
    ErrorKind.OVERLOADED: "server_is_overloaded",
    ErrorKind.CONTEXT_TOO_LONG: "context_length_exceeded",
    ErrorKind.BAD_REQUEST: "invalid_request_error",
    ErrorKind.NOT_FOUND: "model_not_found",
    ErrorKind.CONTENT_FILTER: "content_filter",
    ErrorKind.TIMEOUT: "timeout_error",
}


def openai_refusal(refusal: Refuse) -> bytes:
    """The body of an HTTP error."""
    code = refusal.code or _BY_STATUS.get(refusal.status, "server_error")
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    return dump({"error": {"message": refusal.message, "type": kind, "param": None, "code": code}})


def openai_code(kind: ErrorKind) -> str:
    """The code of an error inside a stream."""
    return _BY_KIND.get(kind, "server_error")
