"""Performing one call of the model: the stream becomes deltas, proposed calls and one closing event."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from treadle.engine.ports import Provider
from treadle.protocol.events import CallProposed, EventData, ReplyFailed, ReplyFinished
from treadle.protocol.messages import Message, Text, ToolUse
from treadle.protocol.models import ErrorKind, ModelError, ModelRequest, ReplyStop, StreamFailure, StreamStop
from treadle.protocol.notifications import Notification
from treadle.protocol.usage import Usage

if TYPE_CHECKING:
    from treadle.engine.runtime.reader import ReplyReader


class ModelCall(Struct, frozen=True, kw_only=True):
    """One attempt at one step's model call; `reader` gives the one reader of its reply, made when something comes.

    `believes` tells whether a count of tokens can be that of the request.
    """

    step: int
    attempt: int
    provider: Provider
    request: ModelRequest
    reader: "Callable[[], ReplyReader]"
    price: Callable[[Usage], float | None]
    jitter: Callable[[], float]
    redact: Callable[[str], str]
    believes: Callable[[int], bool] = bool


async def call_model(
    call: ModelCall, post: Callable[[EventData], None], publish: Callable[[Notification], None]
) -> None:
    """Stream the reply; posts each whole call as it comes, then exactly one `ReplyFinished` or `ReplyFailed`."""
    try:
        end = await _stream(call, post, publish)
    except asyncio.CancelledError:
        post(cancelled_reply(call.step, call.attempt, call.reader().partial()))
        raise
    post(end)


def cancelled_reply(step: int, attempt: int, partial: Message | None = None) -> ReplyFailed:
    """Report a reply that the user cut; what it used is not known."""
    error = ModelError(kind=ErrorKind.CANCELLED, message="The user interrupted the reply.")
    return ReplyFailed(step=step, attempt=attempt, error=error, partial=partial, cost=0.0)


async def _stream(
    call: ModelCall, post: Callable[[EventData], None], publish: Callable[[Notification], None]
) -> ReplyFinished | ReplyFailed:
    def pass_on(found: list[Notification | CallProposed]) -> None:
        for item in found:
            if isinstance(item, CallProposed):
                post(item)
            else:
                publish(item)

    async with aclosing(call.provider.stream(call.request)) as stream:
        async for item in stream:
            if isinstance(item, StreamStop):
                pass_on([*call.reader().finish()])
                return _finished(call, item)
            if isinstance(item, StreamFailure):
                return _failed(call, item.error, item.usage)
            pass_on([*call.reader().feed(item)])
    error = ModelError(kind=ErrorKind.MALFORMED_STREAM, message="The stream ended before the reply was complete.")
    return _failed(call, error, Usage())


def _finished(call: ModelCall, stop: StreamStop) -> ReplyFinished | ReplyFailed:
    message = call.reader().message()
    if not _says_something(message) and stop.reason is not ReplyStop.REFUSAL:
        error = ModelError(kind=ErrorKind.EMPTY_REPLY, message="The model sent an empty reply.")
        return _failed(call, error, stop.usage)
    return ReplyFinished(
        step=call.step,
        attempt=call.attempt,
        message=message,
        stop=stop.reason,
        usage=stop.usage,
        cost=call.price(stop.usage) if stop.usage.context_tokens else None,
        hint=call.reader().hint(),
        doubted=stop.usage.context_tokens > 0 and not call.believes(stop.usage.context_tokens),
    )


def _says_something(message: Message) -> bool:
    """Whether there is a text or a call: thoughts alone are no answer."""
    return any(
        isinstance(block, ToolUse) or (isinstance(block, Text) and block.text.strip()) for block in message.content
    )


def _failed(call: ModelCall, error: ModelError, usage: Usage) -> ReplyFailed:
    return ReplyFailed(
        step=call.step,
        attempt=call.attempt,
        error=msgspec.structs.replace(error, message=call.redact(error.message)),
        usage=usage,
        cost=call.price(usage) if usage.context_tokens else 0.0,
        jitter=call.jitter(),
    )
