"""Failed calls as `ModelError`s: for a person, without secrets, with the time to wait."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC

import msgspec

from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.endpoint import Endpoint, split_url
from treadle.providers.overflow import window_in
from treadle.providers.problems import Problem, kind_of, kind_of_status, problem_in

MAX_MESSAGE = 2_000
MAX_NUMBER = 1e14
"""The largest number read as a time: milliseconds of some thousand years."""

REQUEST_ID_HEADERS = ("request-id", "x-request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
WHAT = {
    ErrorKind.AUTHENTICATION: "did not accept the API key",
    ErrorKind.PERMISSION: "does not permit this",
    ErrorKind.BALANCE: "says that the account has no balance left",
    ErrorKind.RATE_LIMIT: "says that too much was asked in too short a time",
    ErrorKind.OVERLOADED: "is overloaded",
    ErrorKind.SERVER: "failed",
    ErrorKind.CONTEXT_TOO_LONG: "says that the conversation is too long for the model",
    ErrorKind.BAD_REQUEST: "refused the request",
    ErrorKind.NOT_FOUND: "does not know this model or address",
    ErrorKind.CONTENT_FILTER: "blocked the request by its content rules",
    ErrorKind.NETWORK: "could not be reached",
    ErrorKind.TIMEOUT: "took too long",
    ErrorKind.MALFORMED_STREAM: "sent a reply that cannot be read",
    ErrorKind.EMPTY_REPLY: "sent an empty reply",
    ErrorKind.CANCELLED: "was cancelled",
}
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


class CallFailedError(Exception):
    """Ends a stream from within; carries what the reader of the stream is told."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(error.message)
        self.error = error


def failure(endpoint: Endpoint, kind: ErrorKind, why: str, *, status: int | None = None) -> ModelError:
    """Word an error: who, what, why."""
    what = f"{endpoint.name or endpoint.host} {WHAT[kind]}"
    message = clean(f"{what}: {why}" if why else f"{what}.", endpoint.secrets)
    return ModelError(kind=kind, message=message, status=status)


def started_over(endpoint: Endpoint) -> CallFailedError:
    """The stream of a reply began anew in the middle: what came before was never ended, and must not be kept or run."""
    why = "the reply was started over in the middle of the stream"
    return CallFailedError(failure(endpoint, ErrorKind.MALFORMED_STREAM, why))


def clean(text: str, secrets: Iterable[str]) -> str:
    """Take secrets out of a text and bound it."""
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " ..."


def from_problem(endpoint: Endpoint, problem: Problem, *, status: int | None = None) -> ModelError:
    """Word a refusal that came inside a stream, or with a status."""
    error = failure(
        endpoint, kind_of(status, problem), problem.message, status=problem.status if status is None else status
    )
    return ModelError(
        kind=error.kind,
        message=error.message,
        status=error.status,
        request_id=clean(problem.request_id, endpoint.secrets),
        retry_after=_seconds(problem.retry_delay, now=0.0) if error.retryable else None,
        window=_window(error.kind, problem.message),
    )


def _window(kind: ErrorKind, text: str) -> int | None:
    return window_in(text) if kind is ErrorKind.CONTEXT_TOO_LONG else None


def from_response(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> ModelError:
    """Map a response that is no stream. `headers` have lower-case names; `now` is seconds since 1970."""
    request_id = next((headers[name] for name in REQUEST_ID_HEADERS if headers.get(name)), "")
    error = _refusal(endpoint, status, headers, body)
    wait = retry_after(headers, now=now)
    return ModelError(
        kind=error.kind,
        message=error.message,
        status=status,
        request_id=error.request_id or clean(request_id, endpoint.secrets),
        retry_after=(error.retry_after if wait is None else wait) if error.retryable else None,
        window=error.window or _window(error.kind, body[:MAX_MESSAGE].decode("utf-8", "replace")),
    )


def _refusal(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    if 300 <= status < 400:
        target = clean(headers.get("location", "nowhere"), endpoint.secrets)
        why = f"it redirects to {without_query(target)}, which is not followed; set the base URL to where it should go"
        return failure(endpoint, ErrorKind.BAD_REQUEST, why, status=status)
    problem = problem_in(body)
    aws_type = headers.get("x-amzn-errortype", "").partition(":")[0].lower()
    if problem is not None and aws_type:
        problem = msgspec.structs.replace(problem, codes=(aws_type, *problem.codes))
    if problem is not None and (status >= 400 or problem.message):
        return from_problem(endpoint, problem, status=status)
    content_type = headers.get("content-type", "")
    if is_html(content_type, body):
        kind = kind_of_status(status) if status >= 400 and status != 404 else ErrorKind.BAD_REQUEST
        why = f"the server answered HTML, not the API; check the base URL ({without_query(endpoint.base_url)})"
        return failure(endpoint, kind, why, status=status)
    text = body[:500].decode("utf-8", "replace").strip()
    if status >= 400:
        return failure(endpoint, kind_of(status, Problem(message=text)), text or f"HTTP status {status}", status=status)
    why = f"the server answered {content_type or 'nothing'}, not an event stream; check the base URL"
    return failure(endpoint, ErrorKind.BAD_REQUEST, why, status=status)


def is_html(content_type: str, body: bytes) -> bool:
    """Whether a body is a web page: by its type, or by its first bytes where the type says nothing."""
    start = body[:200].lstrip().lower()
    return "html" in content_type or start.startswith((b"<!doctype html", b"<html", b"<head"))


def without_query(url: str) -> str:
    """A URL as far as it may be shown: queries can hold keys, and so can the part before the host."""
    parts = split_url(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else parts.path


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds to wait as the response says, at least 0; None where it says nothing. `now` is seconds since 1970."""
    milliseconds = headers.get("retry-after-ms", "")
    if milliseconds.replace(".", "", 1).isdecimal():
        return float(milliseconds) / 1000
    if "retry-after" in headers:
        return _seconds(headers["retry-after"], now=now)
    waits = [_reset(headers, suffix, now) for suffix in ("", "-requests", "-tokens")]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


def _reset(headers: Mapping[str, str], suffix: str, now: float) -> float | None:
    """When the window of a limit that is used up begins anew."""
    if headers.get(f"x-ratelimit-remaining{suffix}", "0").strip() != "0":
        return None
    return _seconds(headers.get(f"x-ratelimit-reset{suffix}", ""), now=now)


def _seconds(text: str, *, now: float) -> float | None:
    """Read a wait: seconds, unix time (seconds or milliseconds), a duration such as `1m30s`, or an HTTP date."""
    text = text.strip()
    if text.replace(".", "", 1).isdecimal():
        value = min(float(text), MAX_NUMBER)
        if value > 1e11:
            value /= 1000
        return max(0.0, value - now) if value > 1e9 else value
    duration = _DURATION.fullmatch(text)
    if text and duration:
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in duration.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)
