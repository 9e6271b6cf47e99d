"""What a provider says when it refuses: its message and codes, found in the error shapes of many vendors."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from treadle.protocol.models import ErrorKind
from treadle.providers.wire import decode_json


class ProviderProblem(Struct, frozen=True, kw_only=True):
    """A refusal as the provider put it. `status` is the HTTP status that the body itself names."""

    message: str = ""
    codes: tuple[str, ...] = ()
    status: int | None = None
    request_id: str = ""
    retry_delay: str = ""


BY_CODE = {
    "authentication_error": ErrorKind.AUTHENTICATION,
    "invalid_api_key": ErrorKind.AUTHENTICATION,
    "invalid_authentication_error": ErrorKind.AUTHENTICATION,
    "unauthenticated": ErrorKind.AUTHENTICATION,
    "permission_error": ErrorKind.PERMISSION,
    "permission_denied": ErrorKind.PERMISSION,
    "insufficient_quota": ErrorKind.BALANCE,
    "exceeded_current_quota_error": ErrorKind.BALANCE,
    "billing_error": ErrorKind.BALANCE,
    "insufficient_balance": ErrorKind.BALANCE,
    "insufficient_balance_error": ErrorKind.BALANCE,
    "1113": ErrorKind.BALANCE,
    "rate_limit_error": ErrorKind.RATE_LIMIT,
    "rate_limit_exceeded": ErrorKind.RATE_LIMIT,
    "rate_limit_reached_error": ErrorKind.RATE_LIMIT,
    "too_many_requests": ErrorKind.RATE_LIMIT,
    "resource_exhausted": ErrorKind.RATE_LIMIT,
    "throttlingexception": ErrorKind.RATE_LIMIT,
    "servicequotaexceededexception": ErrorKind.RATE_LIMIT,
    "unrecognizedclientexception": ErrorKind.AUTHENTICATION,
    "invalidsignatureexception": ErrorKind.AUTHENTICATION,
    "expiredtokenexception": ErrorKind.AUTHENTICATION,
    "missingauthenticationtokenexception": ErrorKind.AUTHENTICATION,
    "incompletesignatureexception": ErrorKind.AUTHENTICATION,
    "accessdeniedexception": ErrorKind.PERMISSION,
    "resourcenotfoundexception": ErrorKind.NOT_FOUND,
    "validationexception": ErrorKind.BAD_REQUEST,
    "modeltimeoutexception": ErrorKind.TIMEOUT,
    "modelnotreadyexception": ErrorKind.OVERLOADED,
    "serviceunavailableexception": ErrorKind.OVERLOADED,
    "internalserverexception": ErrorKind.SERVER,
    "modelerrorexception": ErrorKind.SERVER,
    "modelstreamerrorexception": ErrorKind.SERVER,
    "overloaded_error": ErrorKind.OVERLOADED,
    "engine_overloaded_error": ErrorKind.OVERLOADED,
    "server_is_overloaded": ErrorKind.OVERLOADED,
    "slow_down": ErrorKind.OVERLOADED,
    "unavailable": ErrorKind.OVERLOADED,
    "api_error": ErrorKind.SERVER,
    "server_error": ErrorKind.SERVER,
    "internal_error": ErrorKind.SERVER,
    "internal_server_error": ErrorKind.SERVER,
    "internal": ErrorKind.SERVER,
    "timeout_error": ErrorKind.TIMEOUT,
    "deadline_exceeded": ErrorKind.TIMEOUT,
    "context_length_exceeded": ErrorKind.CONTEXT_TOO_LONG,
    "exceed_context_size_error": ErrorKind.CONTEXT_TOO_LONG,
    "request_too_large": ErrorKind.CONTEXT_TOO_LONG,
    "model_not_found": ErrorKind.NOT_FOUND,
    "not_found_error": ErrorKind.NOT_FOUND,
    "not_found": ErrorKind.NOT_FOUND,
    "content_filter": ErrorKind.CONTENT_FILTER,
    "content_policy_violation": ErrorKind.CONTENT_FILTER,
    "data_inspection_failed": ErrorKind.CONTENT_FILTER,
    "cyber_policy": ErrorKind.CONTENT_FILTER,
}

BY_STATUS = {
    401: ErrorKind.AUTHENTICATION,
    402: ErrorKind.BALANCE,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.NOT_FOUND,
    408: ErrorKind.TIMEOUT,
    413: ErrorKind.CONTEXT_TOO_LONG,
    424: ErrorKind.SERVER,
    429: ErrorKind.RATE_LIMIT,
    503: ErrorKind.OVERLOADED,
    504: ErrorKind.TIMEOUT,
    529: ErrorKind.OVERLOADED,
}

CONTEXT_TEXT = (
    r"prompt is too long|maximum context length|context[ _]length|context[ _]window|context size"
    r"|input token count.{0,60}exceeds|too many (?:input )?tokens|input is too long|maximum prompt length"
    r"|exceeds? the (?:maximum|max|limit of).{0,40}tokens|tokens? (?:count )?exceeds?|reduce the length of the messages"
    r"|request (?:body )?(?:is )?too large|range of input length|input length and `?max_tokens`? exceed"
    r"|longer than the (?:model's )?context|model_max_prompt_tokens|prompt exceeds max length"
    r"|exceeded model token limit|token length too long|tokens \+ `?max_new_tokens`? must be <="
    r"|exceeds the limit of \d+|prompt token count of \d+ exceeds"
)
BALANCE_TEXT = (
    r"credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds)|requires more credits"
    r"|out of credits|no (?:remaining )?credits|quota has been exhausted|billing hard limit|account is in arrears"
)
KEY_TEXT = (
    r"api[ _-]?key (?:is )?(?:not valid|invalid|expired)|(?:incorrect|invalid) api[ _-]?key"
    r"|make sure your api key is valid"
)


def _says(problem: ProviderProblem, wording: str) -> bool:
    return re.search(wording, problem.message, re.IGNORECASE) is not None


def error_kind(status: int | None, problem: ProviderProblem) -> ErrorKind:
    """Sort a refusal: by its codes, by texts that every vendor words for itself, then by the HTTP status."""
    found = [BY_CODE[code] for code in problem.codes if code in BY_CODE]
    if ErrorKind.BALANCE in found or _says(problem, BALANCE_TEXT):
        return ErrorKind.BALANCE
    limited = ErrorKind.RATE_LIMIT in found or status == 429
    if ErrorKind.CONTEXT_TOO_LONG in found or (not limited and _says(problem, CONTEXT_TEXT)):
        return ErrorKind.CONTEXT_TOO_LONG
    if _says(problem, KEY_TEXT):
        return ErrorKind.AUTHENTICATION
    if found and (found[0] is not ErrorKind.SERVER or status is None):
        return found[0]
    return kind_of_status(problem.status if status in (None, 200) else status)


def kind_of_status(status: int | None) -> ErrorKind:
    """Sort an HTTP status alone; without one the server is to blame."""
    if status is None:
        return ErrorKind.SERVER
    if status in BY_STATUS:
        return BY_STATUS[status]
    return ErrorKind.SERVER if status >= 500 else ErrorKind.BAD_REQUEST


def problem_in(body: bytes) -> ProviderProblem | None:
    """Read the JSON body of a refusal; None where it is no JSON object."""
    try:
        value = decode_json(body)
    except msgspec.DecodeError:
        return None
    if isinstance(value, list) and value:
        value = value[0]
    return problem_of(value) if isinstance(value, dict) else None


def problem_of(value: dict[str, Any]) -> ProviderProblem:
    """Read the decoded object of a refusal, or of an error event inside a stream."""
    inner = value.get("error")
    error: dict[str, Any] = inner if isinstance(inner, dict) else {}
    message = (
        inner
        if isinstance(inner, str)
        else _text(error, "message", "detail") or _text(value, "message", "detail", "Message")
    )
    metadata = error.get("metadata")
    raw = _text(metadata, "raw") if isinstance(metadata, dict) else ""
    if raw and raw not in message:
        message = f"{message}: {raw}" if message else raw
    codes = tuple(
        str(part[key]).lower() for part in (error, value) for key in ("code", "type", "status") if part.get(key)
    )
    numbers = [int(code) for code in codes if re.fullmatch(r"[45][0-9]{2}", code)]
    return ProviderProblem(
        message=message,
        codes=codes,
        status=numbers[0] if numbers else None,
        request_id=_text(value, "request_id", "requestId"),
        retry_delay=_retry_delay(error.get("details")) or _reset_of(error, value) or _said_delay(message),
    )


def _text(value: dict[str, Any], *keys: str) -> str:
    """The first of the keys that holds text; a list of complaints is joined."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, list):
            found = "; ".join(str(item.get("msg", item)) if isinstance(item, dict) else str(item) for item in found)
        if isinstance(found, dict):
            found = _text(found, "message", "error", "msg", "detail")
        if isinstance(found, str) and found:
            return found
    return ""


def _retry_delay(details: object) -> str:
    """The delay of Google's RetryInfo beside its quota errors, such as `7s`, or an object with seconds and nanos."""
    for item in details if isinstance(details, list) else ():
        match item:
            case {"retryDelay": str(delay)}:
                return delay
            case {"retryDelay": {"seconds": int() | str() as delay}}:
                return f"{delay}s"
            case _:
                pass
    return ""


def _reset_of(*parts: dict[str, Any]) -> str:
    """The wait that the object of a refusal names: seconds from now, or the moment at which a limit resets."""
    for part in parts:
        for key in ("resets_in_seconds", "retry_after_seconds", "retry_after", "resets_at"):
            match part.get(key):
                case bool():
                    pass
                case int() | float() | str() as wait if str(wait).strip():
                    return str(wait)
                case _:
                    pass
        match part.get("metadata"):
            case {"headers": dict() as headers}:
                named = {str(name).lower(): str(text) for name, text in headers.items()}
                if reset := named.get("retry-after") or named.get("x-ratelimit-reset"):
                    return reset
            case _:
                pass
    return ""


def _said_delay(message: str) -> str:
    """The wait that a refusal says in its words alone: `Please try again in 1m30.5s`, `Please retry in 36s`."""
    found = re.search(r"(?:try again|retry) in ((?:\d+(?:\.\d+)?(?:ms|[hms]))+)(?!\w|\.\d)", message, re.IGNORECASE)
    return found[1] if found else ""
