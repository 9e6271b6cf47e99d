"""What the pieces of a reply need whatever the wire API: whole characters, and ids of calls that are not used yet."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import msgspec

from treadle.protocol.messages import Message, ToolUse
from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallStart,
    StreamEvent,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
)
from treadle.providers.wire import join_surrogates

_Fragment: TypeAlias = StreamText | StreamThinking | StreamCallArguments


class UsedIds:
    """The ids of the calls of a conversation, of which only what is new is read when it goes on."""

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._ids: set[str] = set()

    def of(self, messages: tuple[Message, ...]) -> AbstractSet[str]:
        """Give the ids; messages that were read before are the same objects."""
        known = len(self._messages)
        if messages[:known] != self._messages:
            known, self._ids = 0, set()
        new = (block for message in messages[known:] for block in message.content)
        self._ids.update(block.wire_id for block in new if isinstance(block, ToolUse))
        self._messages = messages
        return self._ids


class StreamPieces:
    """The pieces of one reply to a conversation; `used` are the ids that its calls have."""

    def __init__(self, used: AbstractSet[str]) -> None:
        self._used = used
        self._own: set[str] = set()
        self._half: _Fragment | None = None

    def repair(self, piece: StreamEvent) -> Iterator[StreamEvent]:
        """Give a piece as it can be shown, stored and sent back.

        The first half of a character waits for its second one. An id that another call of the conversation has is
        dropped: ours then stands for it, as a history with one id twice is refused.
        """
        match piece:
            case StreamText() | StreamThinking() | StreamCallArguments():
                yield from self._words(piece)
                return
            case StreamCallStart(wire_id=wire_id) if wire_id and self._is_used(wire_id):
                piece = msgspec.structs.replace(piece, wire_id="")
            case StreamThinkingDone(wire=wire) if wire is not None:
                piece = msgspec.structs.replace(
                    piece, wire=msgspec.structs.replace(wire, data=join_surrogates(wire.data))
                )
            case _:
                pass
        yield from self._rest()
        yield piece

    def _words(self, piece: _Fragment) -> Iterator[StreamEvent]:
        if self._half is None and piece.text.isascii():
            yield piece
            return
        text = piece.text
        if self._half is not None and _goes_on(self._half, piece):
            text, self._half = self._half.text + text, None
        yield from self._rest()
        if "\ud800" <= text[-1:] <= "\udbff":
            self._half = msgspec.structs.replace(piece, text=text[-1])
            text = text[:-1]
        if text:
            yield msgspec.structs.replace(piece, text=join_surrogates(text))

    def _rest(self) -> Iterator[StreamEvent]:
        """Give the half whose other one never came, as a replacement character."""
        half, self._half = self._half, None
        if half is not None:
            yield msgspec.structs.replace(half, text=join_surrogates(half.text))

    def _is_used(self, wire_id: str) -> bool:
        """Whether a call before this one has the id; from now on one has."""
        used = wire_id in self._used or wire_id in self._own
        self._own.add(wire_id)
        return used


def _goes_on(first: _Fragment, second: _Fragment) -> bool:
    """Whether two pieces are of one text."""
    match first, second:
        case StreamCallArguments(index=one), StreamCallArguments(index=other):
            return one == other
        case _:
            return type(first) is type(second)
