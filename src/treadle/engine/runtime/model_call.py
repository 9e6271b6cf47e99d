"""Performing one call of the model: the stream becomes deltas, proposed calls and one closing event."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from treadle.context.log_reader import LEFT
from treadle.engine.ports import Provider
from treadle.engine.runtime.model_requests import CallMeter, RequestSize, priced
from treadle.protocol.events import CallProposed, EventData, ReplyFailed, ReplyFinished, ReplyPart
from treadle.protocol.messages import Message, Text, ToolUse
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelRequest,
    ModelSpec,
    ReplyStop,
    StreamFailure,
    StreamStop,
    StreamUsage,
)
from treadle.protocol.notifications import Notification, TextDelta
from treadle.protocol.usage import Usage

if TYPE_CHECKING:
    from treadle.engine.runtime.reply_reader import ReplyReader


_KEPT_EVERY = 1.0
"""Seconds; at most so much of the text of a reply is lost with a kill."""


class ModelCall(Struct, frozen=True, kw_only=True):
    """One attempt at one step's model call; `reader` gives the one reader of its reply, made when something comes.

    `size` is what the request takes by our own count (None: nothing), and `believes` tells whether a count of tokens
    can be that of it.
    """

    step: int
    attempt: int
    provider: Provider
    request: ModelRequest
    size: RequestSize | None
    reader: "Callable[[], ReplyReader]"
    bill: "CallBill"
    jitter: Callable[[], float]
    redact: Callable[[str], str]
    believes: Callable[[int], bool] = bool


class _KeptText:
    """Posts the text of a reply as it grows, at most once a second, so that a kill leaves it in the log."""

    def __init__(self, call: ModelCall, post: Callable[[EventData], None]) -> None:
        self._call = call
        self._post = post
        self._new: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, text: str) -> None:
        self._new.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_KEPT_EVERY, self._keep)

    def end(self) -> None:
        """Post no more: the end of the reply holds all of it."""
        if self._timer is not None:
            self._timer.cancel()

    def _keep(self) -> None:
        self._timer = None
        text = "".join(self._new)
        self._new.clear()
        self._post(ReplyPart(step=self._call.step, attempt=self._call.attempt, text=text))


class CallBill:
    """What one attempt is billed so far, whatever becomes of it."""

    def __init__(self) -> None:
        self.meter = CallMeter()
        self.spec: ModelSpec | None = None

    def failed(self, step: int, attempt: int, error: ModelError) -> ReplyFailed:
        """Report a reply that is not whole, with what it used; where nothing was billed that is known, too."""
        usage, cost = priced(self.spec, self.meter.used)
        return ReplyFailed(step=step, attempt=attempt, error=error, usage=usage, cost=cost)


async def call_model(
    call: ModelCall, post: Callable[[EventData], None], publish: Callable[[Notification], None]
) -> None:
    """Stream the reply; posts each whole call as it comes, then exactly one `ReplyFinished` or `ReplyFailed`."""
    kept = _KeptText(call, post)

    def pass_on(found: list[Notification | CallProposed]) -> None:
        for item in found:
            if isinstance(item, CallProposed):
                post(item)
                continue
            publish(item)
            if isinstance(item, TextDelta):
                kept.hear(item.text)

    try:
        end = await _stream(call, pass_on)
    except asyncio.CancelledError as cancelled:
        call.bill.meter.cut(cancelled)
        post(cancelled_reply(call.step, call.attempt, call.bill, call.reader().partial()))
        raise
    finally:
        kept.end()
    post(end)


def cancelled_reply(step: int, attempt: int, bill: CallBill, partial: Message | None = None) -> ReplyFailed:
    """Report a reply that the user cut."""
    error = ModelError(kind=ErrorKind.CANCELLED, message="The user interrupted the reply.")
    return msgspec.structs.replace(bill.failed(step, attempt, error), partial=partial)


def broken_reply(step: int, attempt: int, bill: CallBill, trouble: str) -> ReplyFailed:
    """Report a reply that an error of our own cut."""
    error = ModelError(kind=ErrorKind.BAD_REQUEST, message=f"Treadle failed while calling the model: {trouble}")
    return bill.failed(step, attempt, error)


def is_answer(data: EventData) -> bool:
    """Whether an event is a whole reply that makes no call, so that it can end the turn."""
    return isinstance(data, ReplyFinished) and not any(isinstance(block, ToolUse) for block in data.message.content)


def left_reply(failed: ReplyFailed) -> ReplyFailed:
    """Take a reply that was cut for one that is requested again when the session is taken up; its text is shown."""
    return msgspec.structs.replace(failed, left=True, error=LEFT)


async def _stream(
    call: ModelCall, pass_on: Callable[[list[Notification | CallProposed]], None]
) -> ReplyFinished | ReplyFailed:
    meter = call.bill.meter
    meter.send(call.size)
    async with aclosing(call.provider.stream(call.request)) as stream:
        async for item in stream:
            meter.take(item)
            if isinstance(item, StreamStop):
                pass_on([*call.reader().finish()])
                return _finished(call, item)
            if isinstance(item, StreamFailure):
                return _failed(call, item.error)
            if not isinstance(item, StreamUsage):
                pass_on([*call.reader().feed(item)])
    error = ModelError(kind=ErrorKind.MALFORMED_STREAM, message="The stream ended before the reply was complete.")
    return _failed(call, error)


def _finished(call: ModelCall, stop: StreamStop) -> ReplyFinished | ReplyFailed:
    message = call.reader().message()
    if not _says_something(message) and stop.reason is not ReplyStop.REFUSAL:
        error = ModelError(kind=ErrorKind.EMPTY_REPLY, message="The model sent an empty reply.")
        return _failed(call, error, usage=stop.usage)
    believed = stop.usage.context_tokens > 0 and call.believes(stop.usage.context_tokens)
    usage, cost = priced(call.bill.spec, call.bill.meter.used_by_reply(believed=believed))
    return ReplyFinished(
        step=call.step,
        attempt=call.attempt,
        message=message,
        stop=stop.reason,
        usage=usage,
        cost=cost,
        hint=call.reader().hint(),
        doubted=not believed,
    )


def _says_something(message: Message) -> bool:
    """Whether there is a text or a call: thoughts alone are no answer."""
    return any(
        isinstance(block, ToolUse) or (isinstance(block, Text) and block.text.strip()) for block in message.content
    )


def _failed(call: ModelCall, error: ModelError, usage: Usage = Usage()) -> ReplyFailed:  # noqa: B008 - it is frozen
    """Report a failure; `usage` is given where the provider has said all that it billed."""
    error = msgspec.structs.replace(error, message=call.redact(error.message))
    failed = msgspec.structs.replace(call.bill.failed(call.step, call.attempt, error), jitter=call.jitter())
    if not usage.context_tokens:
        return failed
    usage, cost = priced(call.bill.spec, usage)
    return msgspec.structs.replace(failed, usage=usage, cost=cost)
