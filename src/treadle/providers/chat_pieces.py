"""The pieces of a chat reply in the dialects of many servers: texts, reasoning, calls."""

from collections.abc import Iterator
from typing import Any

import msgspec

from treadle.protocol.messages import WireData
from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamThinking,
    StreamThinkingDone,
)
from treadle.providers.wire import dump

FIELD = "field"
"""In the wire data of reasoning: the field of the message in which its text goes back."""

DETAILS = "reasoning_details"


class CallFunction(msgspec.Struct):
    """What a piece says of a call."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallPiece(msgspec.Struct):
    """The next piece of a call; servers leave out what they like."""

    index: int | None = None
    id: str | int | None = None
    function: CallFunction | None = None


class TextPiece(msgspec.Struct):
    """A part of content that comes as a list: text, or thinking with texts inside."""

    type: str = ""
    text: str | None = None
    thinking: "str | list[TextPiece] | None" = None


class Delta(msgspec.Struct):
    """The next piece of a reply, with the fields of all dialects."""

    content: str | list[TextPiece] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: list[CallPiece] | None = None


def texts_of(delta: Delta) -> Iterator[tuple[str, bool]]:
    """The non-empty texts of a delta, each with whether it is thinking."""
    content = delta.content or delta.refusal or ()
    for piece in [TextPiece(text=content)] if isinstance(content, str) else content:
        if piece.text:
            yield piece.text, False
        inner = piece.thinking or ()
        for part in [TextPiece(text=inner)] if isinstance(inner, str) else inner:
            if part.text:
                yield part.text, True


class ReasoningReader:
    """Reasoning text and the details that go with it, until the answer begins."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._field = ""
        self._details: list[dict[str, Any]] = []
        self._open = False

    def read(self, delta: Delta) -> Iterator[StreamEvent]:
        """Take what a delta has of reasoning."""
        if delta.reasoning_details:
            self._open = True
            self._details = _merge(self._details, delta.reasoning_details)
        if delta.reasoning_content:
            yield from self.add(delta.reasoning_content, "reasoning_content")
        elif delta.reasoning:
            yield from self.add(delta.reasoning, "reasoning")

    def add(self, text: str, field: str) -> Iterator[StreamEvent]:
        """Take the next piece, and remember in which field it came (empty: it cannot go back)."""
        self._open = True
        self._field = field
        yield StreamThinking(text=text)

    def finish(self) -> Iterator[StreamEvent]:
        """Close the block of reasoning that is open, if one is."""
        if not self._open:
            return
        data: dict[str, Any] = {FIELD: self._field} if self._field else {}
        if self._details:
            data = {DETAILS: self._details}
        yield StreamThinkingDone(wire=WireData(api=self._source, data=data) if data else None)
        self._field, self._details, self._open = "", [], False


def _merge(known: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the pieces of one detail: same type and index; texts grow, other fields are taken over once known."""
    merged = list(known)
    for piece in new:
        last = merged[-1] if merged else {}
        if (last.get("type"), last.get("index")) != (piece.get("type"), piece.get("index")) or _is_whole(last, piece):
            merged.append(piece)
            continue
        joined = {**last, **{key: value for key, value in piece.items() if value is not None}}
        for key in ("text", "summary"):
            if isinstance(last.get(key), str) and isinstance(piece.get(key), str):
                joined[key] = last[key] + piece[key]
        merged[-1] = joined
    return merged


def _is_whole(last: dict[str, Any], piece: dict[str, Any]) -> bool:
    """Whether a piece is a detail of its own: encrypted ones come whole, and an id is never given twice."""
    return "data" in piece or (piece.get("id") is not None and piece.get("id") != last.get("id"))


class CallReader:
    """Calls by their index, whatever a server leaves out: indices, ids, or the pieces."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._current = -1

    @property
    def seen(self) -> bool:
        """Whether there was a call."""
        return bool(self._names)

    def read(self, call: CallPiece, position: int) -> Iterator[StreamEvent]:
        """Take one piece of a call; `position` is its place in the list it came in."""
        function = call.function or CallFunction()
        call_id = "" if call.id is None else str(call.id)
        index = self._index(call, call_id, function.name or "", position)
        if index not in self._names:
            self._names[index] = function.name or ""
            self._ids[index] = call_id
            yield StreamCallStart(index=index, name=function.name or "", wire_id=call_id)
        self._current = index
        arguments = function.arguments
        text = dump(arguments).decode() if isinstance(arguments, dict) else arguments
        if text:
            yield StreamCallArguments(index=index, text=text)

    def _index(self, call: CallPiece, call_id: str, name: str, position: int) -> int:
        """Find the call that a piece belongs to; a new id with a name under a used index begins another call."""
        index = call.index
        if index is None:
            known = [key for key, value in self._ids.items() if call_id and value == call_id]
            if known:
                return known[0]
            starts = bool(name) or self._current < 0
            return len(self._names) if starts else max(self._current, min(position, len(self._names) - 1))
        if call_id and name and self._ids.get(index, call_id) not in ("", call_id):
            return next((key for key, value in self._ids.items() if value == call_id), len(self._names))
        return index

    def finish(self) -> Iterator[StreamEvent]:
        """Close every call."""
        for index in sorted(self._names):
            yield StreamCallDone(index=index)
