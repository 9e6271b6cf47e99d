"""One small call of a provider, to learn whether its key and address work."""

import asyncio
from contextlib import aclosing
from enum import StrEnum
from typing import assert_never

from treadle.app.models.model_choice import Models
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ErrorKind, ModelError, ModelRequest, StreamFailure

CALL_SECONDS = 30.0
_MAX_TOKENS = 16
"""Some wire APIs take no smaller limit."""


class CheckOutcome(StrEnum):
    """What one call showed."""

    WORKS = "works"
    LIMITED = "limited"
    REFUSED = "refused"
    FORBIDDEN = "forbidden"
    UNREACHABLE = "unreachable"
    UNCLEAR = "unclear"


class CallCheck(Record, frozen=True, kw_only=True):
    """The model that was called, how that went, and what helps where that is known."""

    ref: str
    outcome: CheckOutcome
    text: str
    fix: str = ""


async def check_call(models: Models, ref: str, *, limit: float = CALL_SECONDS) -> CallCheck:
    """Call a model with a few tokens; `limit` is in seconds. A wrong setting is UNCLEAR, as nothing was called."""
    try:
        name = models.spec(ref).name
        stream = models.provider(ref).stream(_request(name))
        async with asyncio.timeout(limit), aclosing(stream):
            event = await anext(stream, None)
    except ConfigError as wrong:
        return CallCheck(ref=ref, outcome=CheckOutcome.UNCLEAR, text=wrong.what, fix=wrong.fix)
    except TimeoutError:
        return CallCheck(ref=ref, outcome=CheckOutcome.UNREACHABLE, text=f"no answer within {limit:g} s.")
    if isinstance(event, StreamFailure):
        error = event.error
        return CallCheck(ref=ref, outcome=_outcome(error.kind), text=_text(error), fix=error.fix)
    return CallCheck(ref=ref, outcome=CheckOutcome.WORKS, text="it answered")


def _request(model: str) -> ModelRequest:
    message = Message(role=Role.USER, content=(Text(text="Answer with: ok"),))
    return ModelRequest(id="check", model=model, system="", messages=(message,), max_tokens=_MAX_TOKENS)


def _text(error: ModelError) -> str:
    status = "" if error.status is None else f" (HTTP {error.status})"
    return f"{error.kind}: {error.message.strip()}{status}"


def _outcome(kind: ErrorKind) -> CheckOutcome:
    match kind:
        case ErrorKind.EMPTY_REPLY:
            return CheckOutcome.WORKS
        case (
            ErrorKind.BALANCE
            | ErrorKind.BUDGET
            | ErrorKind.RATE_LIMIT
            | ErrorKind.OVERLOADED
            | ErrorKind.CONTENT_FILTER
        ):
            return CheckOutcome.LIMITED
        case ErrorKind.AUTHENTICATION:
            return CheckOutcome.REFUSED
        case ErrorKind.PERMISSION:
            return CheckOutcome.FORBIDDEN
        case ErrorKind.NETWORK | ErrorKind.TIMEOUT | ErrorKind.SERVER | ErrorKind.CANCELLED:
            return CheckOutcome.UNREACHABLE
        case ErrorKind.NOT_FOUND | ErrorKind.BAD_REQUEST | ErrorKind.CONTEXT_TOO_LONG | ErrorKind.MALFORMED_STREAM:
            return CheckOutcome.UNCLEAR
        case _:
            assert_never(kind)
