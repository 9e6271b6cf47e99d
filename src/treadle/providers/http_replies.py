"""Reading replies over HTTP: the event stream, and what every failure means. Loaded when the first request has left."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, closing, suppress

import msgspec

from treadle.protocol.messages import Document, Image, Message, RedactedThinking, Thinking, ToolResult, ToolUse
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelRequest,
    RefusedPart,
    ReplyStop,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamUsage,
)
from treadle.protocol.usage import Usage
from treadle.providers.endpoint import MEBIBYTE, Endpoint
from treadle.providers.event_stream import DamagedFrameError
from treadle.providers.failures import clean, failure, from_problem, from_response, is_html
from treadle.providers.http_connections import HTTP_ERRORS, Deadline, Response, RunningClock, UnansweredError
from treadle.providers.http_failures import from_exception
from treadle.providers.pace import ReplyProgress
from treadle.providers.pieces import StreamPieces, UsedIds
from treadle.providers.provider_problems import problem_in
from treadle.providers.remedies import Amendments, refused_part
from treadle.providers.sse import EventTooLargeError, SseEvent
from treadle.providers.waits import used_up
from treadle.providers.whole_replies import events_of_whole
from treadle.providers.wire import SSE, CallFailedError, HttpCall, ReplyPausedError, ReportLimits, WireApi, WireReader

DRAIN_SECONDS = 0.05
"""How long to wait after the last event for the end of the body, so that the connection can be used again."""
MOST_PARTS = 6
"""Calls that one reply may take where the provider pauses it; then it ends as it is."""
MOST_REMEDIES = 3
"""Times that a request is sent again otherwise."""
MAX_REFUSAL = 64 * 1024
MAX_SHOWN = 300
"""Bytes of an event that cannot be read which are shown."""

_BROKEN_OFF = frozenset({ErrorKind.NETWORK, ErrorKind.TIMEOUT})
"""Failures of which the server may know nothing: it goes on with the reply, and bills it."""

_REFUSALS = (ErrorKind.BAD_REQUEST, ErrorKind.NOT_FOUND, ErrorKind.PERMISSION)
"""Kinds of failure that a part or a parameter of a request can be to blame for."""

Begun = Response | Exception
"""What became of a request: the response that begins, or what a call is known to raise."""
Begin = Callable[[HttpCall], Awaitable[Begun]]


class HttpReplies:
    """Reads the replies of one endpoint; `begin` sends the further calls that a reply may take."""

    def __init__(
        self,
        endpoint: Endpoint,
        api: WireApi,
        begin: Begin,
        *,
        amendments: Amendments,
        secrets: Callable[[], tuple[str, ...]],
        limits: ReportLimits | None = None,
    ) -> None:
        """`secrets` gives the texts, besides those of the endpoint, that no message may show."""
        self._endpoint = endpoint
        self._api = api
        self._begin = begin
        self._amendments = amendments
        self._secrets = secrets
        self._limits = limits
        self._used_ids = UsedIds()
        self._reached = False

    async def read(
        self, request: ModelRequest, call: HttpCall, begun: Begun | None
    ) -> AsyncGenerator[StreamEvent, None]:
        """Give the reply to a request whose call has begun; a refusal that has a remedy is followed by another call."""
        if self._limits is not None and begun is not None and not isinstance(begun, Exception):
            limits = used_up(begun.headers, now=time.time())
            if limits is not None:
                self._limits(request.model, limits)
        for left in range(MOST_REMEDIES, -1, -1):
            bodies: list[str] = []
            refused: StreamFailure | None = None
            async with aclosing(self._reply(request.messages, call, begun, bodies)) as items:
                begins = True
                async for item in items:
                    if begins and isinstance(item, StreamFailure) and item.error.kind in _REFUSALS:
                        refused = item
                        break
                    begins = False
                    yield item
            if refused is None:
                return
            said = "\n".join((refused.error.message, *bodies))
            if not left or not self._amendments.learn(request.model, said, call):
                yield _with_part(refused, request, said)
                return
            call, begun = self._amendments.changed(request.model, call), None

    async def _reply(
        self, messages: tuple[Message, ...], first: HttpCall, begun: Begun | None, bodies: list[str]
    ) -> AsyncGenerator[StreamEvent, None]:
        """Give the reply to `messages`: of the `first` call, which has begun, and of those that it goes on with.

        The body of a refusal is added to `bodies`; it is not kept here, as other replies are read at the same time.
        """
        reader = self._api.reader()
        pieces = StreamPieces(self._used_ids.of(messages))
        pace = ReplyProgress(self._endpoint.limits, RunningClock())
        try:
            call = first
            for _ in range(MOST_PARTS):
                begun = begun or await self._begin(call)
                try:
                    async with aclosing(self._part(begun, reader, pieces, pace)) as items:
                        async for item in items:
                            yield item
                    return
                except ReplyPausedError as paused:
                    reader, call, begun = paused.reader, paused.go_on(first), None
            yield StreamStop(reason=ReplyStop.END_TURN, usage=reader.usage)
            return
        except CallFailedError as failed:
            error = failed.error
            bodies.append(failed.said)
        except UnansweredError as unanswered:
            error = from_exception(self._endpoint, unanswered.cause, reached=True)
        except HTTP_ERRORS as broken:
            status = None if isinstance(begun, Exception | None) else begun.status
            error = from_exception(self._endpoint, broken, reached=self._reached, status=status)
        if error.kind in _BROKEN_OFF and _may_be_billed(begun):
            yield StreamUsage(usage=reader.usage)
        yield StreamFailure(
            error=msgspec.structs.replace(error, message=clean(error.message, self._secrets())), usage=reader.usage
        )

    async def _part(
        self, begun: Begun, reader: WireReader, pieces: StreamPieces, pace: ReplyProgress
    ) -> AsyncGenerator[StreamEvent, None]:
        """Give what one call brings: the reply up to its `StreamStop`.

        Raises `CallFailedError`, an error of the HTTP client, or `ReplyPausedError` where it goes on with another call.
        """
        told: Usage | None = None
        async with aclosing(self._events(begun, pace)) as events:
            async for event in events:
                for item in self._read(reader, event, pieces):
                    if isinstance(item, StreamStop):
                        await _drain(events)
                        yield item
                        return
                    pace.add(item)
                    yield item
                if (usage := reader.usage) != told:
                    told = usage
                    yield StreamUsage(usage=usage)
        for item in (repaired for piece in reader.end() for repaired in pieces.repair(piece)):
            yield item
            if isinstance(item, StreamStop):
                return
        why = "the reply ended before it was complete"
        raise CallFailedError(failure(self._endpoint, ErrorKind.MALFORMED_STREAM, why))

    def _read(self, reader: WireReader, event: SseEvent, pieces: StreamPieces) -> Iterator[StreamEvent]:
        """Give what an event says; raises `CallFailedError` with the words of one that cannot be understood."""
        try:
            for piece in reader.read(event):
                yield from pieces.repair(piece)
        except msgspec.MsgspecError as broken:
            problem = problem_in(event.data)
            if problem is not None and problem.message:
                raise CallFailedError(from_problem(self._endpoint, problem)) from broken
            why = f"{broken}: {event.data[:MAX_SHOWN].decode('utf-8', 'replace')}"
            raise CallFailedError(failure(self._endpoint, ErrorKind.MALFORMED_STREAM, why)) from broken

    async def _events(self, response: Begun, pace: ReplyProgress) -> AsyncGenerator[SseEvent, None]:
        """Give the events of a response, as long as `pace` is content with it."""
        limits = self._endpoint.limits
        if isinstance(response, Exception):
            raise response
        self._reached = True
        try:
            if response.status != 200 or not self._may_be_events(response):
                raise await self._refusal(response, pace)
            decoder = self._api.framing.decoder(limits.event)
            start = bytearray()
            empty = True
            async with aclosing(self._chunks(response, pace)) as chunks:
                async for chunk in chunks:
                    start += chunk if empty else b""
                    for event in decoder.feed(chunk):
                        empty = False
                        yield event
            for event in decoder.end():
                empty = False
                yield event
            for event in self._whole(response, bytes(start)) if empty else ():
                yield event
        except EventTooLargeError as error:
            raise CallFailedError(self._too_large("an event", limits.event)) from error
        except DamagedFrameError as error:
            raise CallFailedError(failure(self._endpoint, ErrorKind.MALFORMED_STREAM, str(error))) from error
        finally:
            await response.close()

    def _whole(self, response: Response, body: bytes) -> list[SseEvent]:
        """Give the events of a body without any: of a reply that came whole. Raises `CallFailedError` as below."""
        events = events_of_whole(body)
        if not events:
            self._raise_if_reported(response, body[:MAX_REFUSAL])
        return events

    async def _chunks(self, response: Response, pace: ReplyProgress) -> AsyncGenerator[bytes, None]:
        """Give the body as it arrives, within the limits of time and size."""
        limits = self._endpoint.limits
        async with aclosing(response.chunks()) as body:
            with closing(Deadline(pace.clock)) as deadline:
                first = await deadline.wait(anext(body, b""), pace.clock() + limits.first_byte)
                if is_html("", first):
                    raise self._refused(response, first)
                yield first
                total = len(first)
                while chunk := await self._next(body, pace, deadline):
                    total += len(chunk)
                    if total > limits.body:
                        raise CallFailedError(self._too_large("the reply", limits.body))
                    yield chunk

    async def _next(self, body: AsyncIterator[bytes], pace: ReplyProgress, deadline: Deadline) -> bytes:
        """Give the next bytes of a body, none at its end."""
        idle = self._endpoint.limits.idle
        silent = pace.clock() + idle
        try:
            return await deadline.wait(anext(body, b""), min(silent, pace.deadline))
        except TimeoutError as late:
            why = f"nothing arrived for {idle:g} s (idle_timeout)" if silent < pace.deadline else pace.complaint
            raise CallFailedError(failure(self._endpoint, ErrorKind.TIMEOUT, why)) from late

    async def _refusal(self, response: Response, pace: ReplyProgress) -> CallFailedError:
        """Read the body of a response that is no stream, up to `MAX_REFUSAL` bytes."""
        body = bytearray()
        with suppress(*HTTP_ERRORS):
            async with (
                asyncio.timeout(self._endpoint.limits.first_byte),
                aclosing(self._chunks(response, pace)) as chunks,
            ):
                async for chunk in chunks:
                    body += chunk
                    if len(body) > MAX_REFUSAL:
                        break
        return self._refused(response, bytes(body))

    def _raise_if_reported(self, response: Response, start: bytes) -> None:
        """Raise `CallFailedError` where a body without any event says itself what is wrong."""
        start = start.strip()
        problem = problem_in(start)
        if (problem is not None and problem.message) or is_html("", start) or not self._is_named(response):
            raise self._refused(response, start)
        packed = response.headers.get("content-encoding", "identity")
        if packed not in ("identity", "gzip", "deflate"):
            why = f"its body is compressed ({packed}), which was not requested"
            raise CallFailedError(failure(self._endpoint, ErrorKind.MALFORMED_STREAM, why))

    def _may_be_events(self, response: Response) -> bool:
        """Whether the body can hold the events of this API: some servers call them JSON, which they contain."""
        return self._is_named(response) or (self._api.framing is SSE and _type_of(response) == "application/json")

    def _is_named(self, response: Response) -> bool:
        """Whether the content type is one of the events of this API."""
        return _type_of(response) in self._api.framing.types

    def _refused(self, response: Response, body: bytes) -> CallFailedError:
        error = from_response(self._endpoint, response.status, response.headers, body, now=time.time())
        return CallFailedError(error, body.decode("utf-8", "replace"))

    def _too_large(self, what: str, limit: int) -> ModelError:
        return failure(self._endpoint, ErrorKind.MALFORMED_STREAM, f"{what} is larger than {limit / MEBIBYTE:g} MiB")


def _may_be_billed(begun: Begun | None) -> bool:
    """Whether the server took the request, or may have."""
    return isinstance(begun, UnansweredError) or (not isinstance(begun, Exception | None) and begun.status == 200)


def _with_part(failed: StreamFailure, request: ModelRequest, said: str) -> StreamFailure:
    """Name the part of the conversation that is refused; one that was not sent is not to blame."""
    part = refused_part(said)
    if part is None or not _has_part(request, part):
        return failed
    return msgspec.structs.replace(failed, error=msgspec.structs.replace(failed.error, refused=part))


def _has_part(request: ModelRequest, part: RefusedPart) -> bool:
    if part is RefusedPart.TOOLS:
        return bool(request.tools)
    blocks = [block for message in request.messages for block in message.content]
    inner = [one for block in blocks if isinstance(block, ToolResult) for one in block.content]
    if part is RefusedPart.THINKING:
        return any(isinstance(one, Thinking | RedactedThinking | ToolUse) and one.wire is not None for one in blocks)
    kind = Document if part is RefusedPart.DOCUMENT else Image
    return any(isinstance(one, kind) for one in (*blocks, *inner))


def _type_of(response: Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _drain(events: AsyncGenerator[SseEvent, None]) -> None:
    """Read the rest of a body whose reply is whole."""
    with suppress(CallFailedError, *HTTP_ERRORS):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in events:
                pass
