"""Failed calls as `ModelError`s: for a person, without secrets, with the time to wait."""

import re
import time
from collections.abc import Iterable, Mapping

import msgspec

from treadle.protocol.base import SHORTEST_SECRET
from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.endpoint import Endpoint, split_url
from treadle.providers.provider_problems import ProviderProblem, error_kind, kind_of_status, problem_in
from treadle.providers.waits import retry_after, seconds
from treadle.providers.wire import CallFailedError

MAX_MESSAGE = 2_000
SHOWN_END = 4
SHORTEST_SHOWN = 12
"""Characters of a key that are shown, and how long a key must be for that."""

_NO_API = (404, 405, 410, 501)
"""With these a web page says that the address is not that of the API, and trying again does not help."""

REQUEST_ID_HEADERS = ("request-id", "x-request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
WHAT = {
    ErrorKind.AUTHENTICATION: "did not accept the API key",
    ErrorKind.PERMISSION: "does not permit this",
    ErrorKind.BALANCE: "says that the account has no balance left",
    ErrorKind.RATE_LIMIT: "limits the number of requests",
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
    ErrorKind.BUDGET: "was not called, as the budget is used up",
}


def failure(
    endpoint: Endpoint,
    kind: ErrorKind,
    why: str,
    *,
    status: int | None = None,
    fix: str = "",
    retries: int | None = None,
) -> ModelError:
    """Word an error in sentences: who, what, why; with a refused key also whose it is, and what to do about it."""
    what = f"{endpoint.name or endpoint.host} {WHAT[kind]}"
    message = sentence(clean(f"{what}: {why.strip()}" if why.strip() else what, endpoint.secrets))
    if kind in (ErrorKind.AUTHENTICATION, ErrorKind.PERMISSION) and endpoint.key_origin:
        message = f"{message} {_whose_key(endpoint)}"
        fix = fix or _other_key(endpoint, kind)
    return ModelError(kind=kind, message=message, status=status, fix=fix, retries=retries)


def sentence(text: str) -> str:
    """End a text with a full stop unless it ends a sentence already."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


_WHOSE = re.compile(r"The (?:key|proof of who asks) comes from .+?\.(?= |$)")


def whose_key(message: str) -> str:
    """Find the sentence of a failure that says whose key was refused; empty where it says nothing of that."""
    return next(reversed(_WHOSE.findall(message)), "")


def _whose_key(endpoint: Endpoint) -> str:
    key = endpoint.api_key.strip()
    end = f" and ends in …{key[-SHOWN_END:]}" if len(key) >= SHORTEST_SHOWN else ""
    return f"The {'key' if key else 'proof of who asks'} comes from {endpoint.key_origin}{end}."


def _other_key(endpoint: Endpoint, kind: ErrorKind) -> str:
    if not endpoint.api_key:
        return f"Check {endpoint.key_origin}, or store a key: `{login_command(endpoint.name)}`."
    first = f" {endpoint.key_variable} overrides a stored key. Change or unset it." if endpoint.key_variable else ""
    other = f"`{login_command(endpoint.name)}`.{first}"
    if kind is ErrorKind.PERMISSION:
        return f"Choose another model with --model, ask the provider for access, or store another key: {other}"
    return f"Store another key: {other}"


def login_command(provider: str) -> str:
    """Give the command that stores a key of a provider, or of its profile: `anthropic`, `anthropic@work`."""
    name, _, profile = provider.partition("@")
    return f"treadle login {name} --as {profile}" if profile else f"treadle login {name}"


def started_over(endpoint: Endpoint) -> CallFailedError:
    """The stream of a reply began anew in the middle: what came before was never ended, and must not be kept or run."""
    why = "the reply was started over in the middle of the stream"
    return CallFailedError(failure(endpoint, ErrorKind.MALFORMED_STREAM, why))


def clean(text: str, secrets: Iterable[str]) -> str:
    """Take secrets out of a text and bound it; a short one stays, for it could be a part of any word."""
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "[secret]")
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " ..."


def from_problem(
    endpoint: Endpoint, problem: ProviderProblem, *, status: int | None = None, now: float | None = None
) -> ModelError:
    """Word a refusal that came inside a stream, or with a status; `now` is seconds since 1970."""
    error = failure(
        endpoint, error_kind(status, problem), problem.message, status=problem.status if status is None else status
    )
    return ModelError(
        kind=error.kind,
        message=error.message,
        status=error.status,
        request_id=clean(problem.request_id, endpoint.secrets),
        retry_after=seconds(problem.retry_delay, now=time.time() if now is None else now) if error.retryable else None,
        window=_window(error.kind, problem.message),
        fix=error.fix,
    )


def _window(kind: ErrorKind, text: str) -> int | None:
    return window_in(text) if kind is ErrorKind.CONTEXT_TOO_LONG else None


def from_response(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> ModelError:
    """Map a response that is no stream. `headers` have lower-case names; `now` is seconds since 1970."""
    request_id = next((headers[name] for name in REQUEST_ID_HEADERS if headers.get(name)), "")
    error = _refusal(endpoint, status, headers, body, now=now)
    wait = retry_after(headers, now=now)
    return ModelError(
        kind=error.kind,
        message=error.message,
        status=status,
        request_id=error.request_id or clean(request_id, endpoint.secrets),
        retry_after=(error.retry_after if wait is None else wait) if error.retryable else None,
        window=error.window or _window(error.kind, body[:MAX_MESSAGE].decode("utf-8", "replace")),
        fix=error.fix,
    )


def _refusal(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes, *, now: float) -> ModelError:
    if 300 <= status < 400:
        target = clean(headers.get("location", "nowhere"), endpoint.secrets)
        why = (
            f"it redirects to {without_query(target)}, which Treadle does not follow; set the base URL to the final "
            "address"
        )
        return failure(endpoint, ErrorKind.BAD_REQUEST, why, status=status)
    problem = problem_in(body)
    aws_type = headers.get("x-amzn-errortype", "").partition(":")[0].lower()
    if problem is not None and aws_type:
        problem = msgspec.structs.replace(problem, codes=(aws_type, *problem.codes))
    if problem is not None and (status >= 400 or problem.message):
        return from_problem(endpoint, problem, status=status, now=now)
    content_type = headers.get("content-type", "")
    if is_html(content_type, body):
        kind = kind_of_status(status) if status >= 400 and status not in _NO_API else ErrorKind.BAD_REQUEST
        why = f"the server answered HTML, not the API; check the base URL ({without_query(endpoint.base_url)})"
        return failure(endpoint, kind, why, status=status)
    text = body[:500].decode("utf-8", "replace").strip()
    if status >= 400:
        return failure(
            endpoint, error_kind(status, ProviderProblem(message=text)), text or f"HTTP status {status}", status=status
        )
    if not text:
        why = f"HTTP status {status} came with an empty body"
        return failure(endpoint, ErrorKind.MALFORMED_STREAM, why, status=status)
    what = (content_type or "nothing") if status == 200 else f"HTTP status {status}"
    why = f"the server answered {what}, not an event stream; check the base URL"
    return failure(endpoint, ErrorKind.BAD_REQUEST, why, status=status)


def is_html(content_type: str, body: bytes) -> bool:
    """Whether a body is a web page: by its type, or by its first bytes where the type says nothing."""
    start = body[:200].lstrip().lower()
    return "html" in content_type or start.startswith((b"<!doctype html", b"<html", b"<head"))


def without_query(url: str) -> str:
    """A URL as far as it may be shown: queries can hold keys, and so can the part before the host."""
    parts = split_url(url)
    if not parts.netloc:
        return url.strip().partition("?")[0].rpartition("@")[2]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


_SMALLEST_WINDOW, _LARGEST_WINDOW = 1_000, 100_000_000
"""What can be a window (tokens); other numbers are something else."""

_NUMBER = r"(\d[\d,_]{0,14})(?!\d)"
_WORDINGS = tuple(
    text.replace("#", _NUMBER)
    for text in (
        r"(?:maximum|max) (?:context|prompt|input) (?:length|window)(?: of this model)?(?: is|:| of) (?:only )?#",
        r"prompt is too long: [\d,]+ tokens > # maximum",
        r"exceeds the maximum number of tokens allowed \(#\)",
        r"exceed context limit: [\d,]+ \+ [\d,]+ > #",
        r"available context size \(# tokens\)",
        r"too large for model with # maximum context length",
        r"range of input length should be \[\d+, #\]",
        r"context length (?:is|of) only #",
        r"exceeded model token limit: #",
        r"exceeds the (?:limit|maximum|context window|context length|token limit)(?: of| is|:) # ?(?:tokens|$|\.|\))",
        r"inputs?`? tokens \+ `?max_new_tokens`? must be <= #",
        r"maximum (?:allowed )?(?:number of )?(?:input )?tokens (?:allowed )?(?:is|:|of) #",
        r"context window of # tokens",
        r'"n_ctx": ?#',
    )
)


def window_in(text: str) -> int | None:
    """Find the window (tokens) that a refusal of a conversation as too long names; None where it names none."""
    for wording in _WORDINGS:
        found = re.search(wording, text, re.IGNORECASE)
        if found:
            window = int(re.sub(r"\D", "", found[1]))
            return window if _SMALLEST_WINDOW <= window <= _LARGEST_WINDOW else None
    return None
