"""What surfaces are notified of, numbered: any number of them listen to one session, each at its own speed."""

import asyncio
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from treadle.context.sizes import size_of_block
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import (
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    MessageDone,
    Notification,
    PromptDelivered,
    ReplyDropped,
    TextDelta,
    ThinkingDelta,
)

REPLY_PIECES = (TextDelta, ThinkingDelta, CallDelta)
"""Pieces of a reply, in no log."""

RECENT = 8_000
"""Notifications, and texts that came in pieces, that are kept for surfaces that come back: at most `_RECENT_BYTES`."""

_RECENT_BYTES = 8_000_000

_KEPT_OUTPUT = 8_000
"""Characters of a running call's output that a surface which comes later is shown."""


class Feed:
    """What one surface has not read yet; one that lets more than `most` bytes wait is `behind`, and ends.

    It is iterated over by one reader, and is an async context manager: whoever leaves it, at its end or before, hears
    no more, and nothing is kept for them. Pieces of one text that wait together are put together.
    """

    def __init__(self, most: int | None = None, *, left: Callable[["Feed"], None] = lambda _: None) -> None:
        self._left = left
        self._waiting: deque[Stamped] = deque()
        self._arrived = asyncio.Event()
        self._most = most
        self._bytes = 0
        self.closed = False
        self.behind = False

    def put(self, stamped: Stamped) -> None:
        """Add a notification."""
        if self.closed:
            return
        joined = _joined(self._waiting[-1].notification, stamped.notification) if self._waiting else None
        if joined is not None:
            self._waiting[-1] = replace(stamped, notification=joined)
        else:
            self._waiting.append(stamped)
        self._bytes += weight(stamped.notification)
        if self._most is not None and self._bytes > self._most:
            self._waiting.clear()
            self.behind = True
            self.close()
        self._arrived.set()

    def close(self) -> None:
        """End the feed after what waits in it."""
        self.closed = True
        self._arrived.set()

    def leave(self) -> None:
        """Hear no more, at once; whoever waits for what comes next is told that nothing does."""
        self.close()
        self._waiting.clear()
        self._left(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    @property
    def is_read(self) -> bool:
        """Whether nothing waits in it now."""
        return not self._waiting

    def taken(self) -> tuple[Notification, ...]:
        """Take what waits in it now."""
        waiting = tuple(one.notification for one in self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return waiting

    async def stamped(self) -> AsyncIterator[Stamped]:
        """Give what comes, with its numbers and times, until the feed is closed."""
        while (one := await self._next()) is not None:
            yield one

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Notification:
        one = await self._next()
        if one is None:
            raise StopAsyncIteration
        return one.notification

    async def _next(self) -> Stamped | None:
        while not self._waiting:
            if self.closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        one = self._waiting.popleft()
        self._bytes = self._bytes - weight(one.notification) if self._waiting else 0
        return one


class _Told:
    """A notification that is remembered, or pieces of one text as one: `_ends` is how long it was after each of them.

    A model tells thousands of pieces of a few characters: 233 bytes each by themselves, 13 as one text (CPython 3.11).
    """

    __slots__ = ("_ends", "stamped")

    def __init__(self, stamped: Stamped) -> None:
        self.stamped = stamped
        self._ends: array[int] | None = None

    def joins(self, stamped: Stamped) -> bool:
        """Take another piece of the same text; whether it is one."""
        before = self.stamped.notification
        joined = _joined(before, stamped.notification)
        if joined is None:
            return False
        if self._ends is None:
            self._ends = array("I", (_length(before),))
        self._ends.append(_length(joined))
        self.stamped = replace(stamped, notification=joined)
        return True

    @property
    def first(self) -> int:
        """The number of its first piece."""
        return self.stamped.number - (0 if self._ends is None else len(self._ends) - 1)

    def after(self, number: int) -> Stamped:
        """Give what came of it after a number below its last one."""
        if self._ends is None or number < self.first:
            return self.stamped
        told = self.stamped.notification
        assert isinstance(told, TextDelta | ThinkingDelta | CallDelta | CallOutput)  # noqa: S101 - only pieces of a text are joined
        return replace(self.stamped, notification=replace(told, text=told.text[self._ends[number - self.first] :]))


class Feeds:
    """Numbers what surfaces are notified of, and remembers the newest of it, and what is under way."""

    def __init__(self) -> None:
        self.number = 0
        self._feeds: list[Feed] = []
        self._recent: deque[_Told] = deque()
        self._recent_bytes = 0
        self._calls: dict[str, CallChanged] = {}
        self._reply: list[Notification] = []
        self._output: dict[str, str] = {}

    def publish(self, notification: Notification, *, seq: int = 0, at: int = 0) -> None:
        """Tell every surface what came of an event, or after it where none was logged."""
        self.number += 1
        stamped = Stamped(notification=notification, number=self.number, seq=seq, at=at)
        self._remember(stamped)
        self._follow(notification)
        for feed in self._feeds:
            feed.put(stamped)

    def follow(self, *, most: int | None = None, after: int | None = None) -> Feed:
        """Listen from now on, or from `after` a number on, which `has` must know."""
        feed = Feed(most, left=self._leave)
        if after is not None:
            for told in self._recent:
                if told.stamped.number > after:
                    feed.put(told.after(after))
        self._feeds.append(feed)
        return feed

    def _leave(self, feed: Feed) -> None:
        if feed in self._feeds:
            self._feeds.remove(feed)

    @property
    def listeners(self) -> int:
        """How many have not left yet."""
        return len(self._feeds)

    def has(self, number: int) -> bool:
        """Whether all that came after this number is remembered."""
        oldest = self._recent[0].first if self._recent else self.number + 1
        return oldest - 1 <= number <= self.number

    def calls(self) -> tuple[CallChanged, ...]:
        """Give the calls that surfaces know of and that are not finished."""
        return tuple(self._calls.values())

    def live(self) -> Iterator[Notification]:
        """Give what was streamed of the reply, and the end of what running calls have printed."""
        yield from self._reply
        for call_id, text in self._output.items():
            yield CallOutput(call_id=call_id, text=text)

    def close(self) -> None:
        """End every feed after what waits in it."""
        for feed in self._feeds:
            feed.close()

    def _remember(self, stamped: Stamped) -> None:
        if self._recent and self._recent[-1].joins(stamped):
            self._recent_bytes += _length(stamped.notification)
            return
        self._recent.append(_Told(stamped))
        self._recent_bytes += weight(stamped.notification)
        while len(self._recent) > RECENT or self._recent_bytes > _RECENT_BYTES:
            self._recent_bytes -= weight(self._recent.popleft().stamped.notification)

    def _follow(self, notification: Notification) -> None:
        match notification:
            case TextDelta() | ThinkingDelta() | CallDelta():
                joined = _joined(self._reply[-1], notification) if self._reply else None
                if joined is None:
                    self._reply.append(notification)
                else:
                    self._reply[-1] = joined
            case MessageDone():
                self._reply.clear()
            case ReplyDropped():
                self._reply.clear()
                self._calls.clear()
            case CallChanged(call=call, status=CallStatus.FINISHED):
                self._calls.pop(call.id, None)
                self._output.pop(call.id, None)
            case CallChanged(call=call):
                self._calls[call.id] = notification
            case CallOutput(call_id=call_id, text=text):
                self._output[call_id] = (self._output.get(call_id, "") + text)[-_KEPT_OUTPUT:]
            case _:
                pass


_LEAST_WEIGHT = 200


def weight(notification: Notification) -> int:
    """Say about how many bytes a notification takes."""
    match notification:
        case TextDelta(text=text) | ThinkingDelta(text=text) | CallDelta(text=text) | CallOutput(text=text):
            return _LEAST_WEIGHT + len(text)
        case CallChanged(preview=preview, result=result):
            shown = 0 if preview is None else len(preview.text)
            return 4 * _LEAST_WEIGHT + shown + (0 if result is None else sum(map(size_of_block, result.content)))
        case MessageDone(message=message):
            return _LEAST_WEIGHT + sum(map(size_of_block, message.content))
        case PromptDelivered(content=content):
            return _LEAST_WEIGHT + sum(map(size_of_block, content))
        case _:
            return _LEAST_WEIGHT


def _length(piece: Notification) -> int:
    return len(getattr(piece, "text", ""))


_LONGEST_PIECE = 4_000
"""Characters; joining ever longer texts would take time by the square of a reply's length."""


def _joined(one: Notification, other: Notification) -> Notification | None:
    """Put two pieces of the same text together; None where they are not, or the first one is long already."""
    if _length(one) >= _LONGEST_PIECE:
        return None
    match one, other:
        case TextDelta(text=text), TextDelta(text=more):
            return TextDelta(text=text + more)
        case ThinkingDelta(text=text), ThinkingDelta(text=more):
            return ThinkingDelta(text=text + more)
        case CallDelta(text=text), CallDelta(text=more) if more and other == replace(one, text=more):
            return replace(one, text=text + more)
        case CallOutput(call_id=call_id, text=text), CallOutput(text=more) if other == replace(one, text=more):
            return CallOutput(call_id=call_id, text=text + more)
        case _:
            return None
