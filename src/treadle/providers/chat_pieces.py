"""The pieces of a chat reply in the dialects of many servers: texts, reasoning, calls."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from treadle.protocol.messages import WireData
from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamThinking,
    StreamThinkingDone,
)
from treadle.providers.wire import decode_json, dump

FIELD = "field"
"""In the wire data of reasoning: the field of the message in which its text goes back."""

DETAILS = "reasoning_details"


class CallFunction(msgspec.Struct):
    """What a piece says of a call."""

    name: str | None = None
    arguments: str | dict[str, Any] | list[Any] | None = None


class CallPiece(msgspec.Struct):
    """The next piece of a call; servers leave out what they like."""

    index: int | None = None
    id: str | int | None = None
    function: CallFunction | None = None


class TextPiece(msgspec.Struct):
    """A part of content that comes as a list: text, or thinking with texts inside."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    thinking: "str | list[TextPiece] | None" = None


class ChatDelta(msgspec.Struct):
    """The next piece of a reply, with the fields of all dialects."""

    role: str | None = None
    content: str | list[TextPiece] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: list[CallPiece] | None = None
    function_call: CallFunction | None = None
    annotations: list[dict[str, Any]] | None = None

    @property
    def refuses(self) -> bool:
        """Whether it has words of a refusal."""
        parts = self.content if isinstance(self.content, list) else ()
        return bool(self.refusal) or any(part.refusal for part in parts)

    @property
    def calls(self) -> list[CallPiece]:
        """The pieces of calls; an old form has one call at most, without a list."""
        old = [] if self.function_call is None else [CallPiece(function=self.function_call)]
        return self.tool_calls or old


def texts_of(delta: ChatDelta) -> Iterator[tuple[str, bool]]:
    """The non-empty texts of a delta, each with whether it is thinking."""
    content = [TextPiece(text=delta.content)] if isinstance(delta.content, str) else delta.content or []
    for piece in [*content, TextPiece(refusal=delta.refusal)]:
        if said := piece.text or piece.refusal:
            yield said, False
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

    def read(self, delta: ChatDelta) -> Iterator[StreamEvent]:
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


class _Call(Struct):
    """One call as far as it came; it is told once its arguments begin, as id and name may come in pieces before."""

    index: int
    wire_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    begun: bool = False


class CallReader:
    """Calls whatever a server leaves out or repeats: indices, ids, names, or the pieces."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._last: _Call | None = None

    @property
    def seen(self) -> bool:
        """Whether there was a call."""
        return bool(self._calls)

    def read(self, piece: CallPiece, position: int) -> Iterator[StreamEvent]:
        """Take one piece of a call; `position` is its place in the list it came in."""
        function = piece.function or CallFunction()
        call_id, name = "" if piece.id is None else str(piece.id), function.name or ""
        goes_on = bool(function.arguments) and not (call_id or name)
        call = self._last = self._find(piece.index, call_id, name, position, goes_on=goes_on)
        if not call.begun:
            call.wire_id = call.wire_id or call_id
            call.name = call.name or name
        arguments = function.arguments
        text = arguments if isinstance(arguments, str) else dump(arguments).decode() if arguments is not None else ""
        if text:
            call.arguments.append(text)
        if call.begun and text:
            yield StreamCallArguments(index=call.index, text=text)
        elif call.name and call.arguments:
            yield from self._begin_calls(call.index + 1)

    def _find(self, index: int | None, call_id: str, name: str, position: int, *, goes_on: bool) -> _Call:
        """Find the call that a piece belongs to, or begin one; a piece `goes_on` that has arguments alone."""
        known = next((call for call in self._calls if call_id and call.wire_id == call_id), None)
        if index is None:
            if known is not None:
                return known
            if name or self._last is None:
                return self._begin()
            return self._calls[max(self._last.index, min(position, len(self._calls) - 1))]
        call = self._by_index.get(index)
        if call is None and goes_on and self._last is not None and not _is_another(self._last, ""):
            # Some servers count on within a call: what has no name and no id goes on with the one that is not whole.
            return self._last
        if call is None or (name and _is_another(call, call_id)):
            call = (known if call is not None else None) or self._begin()
            self._by_index[index] = call
        return call

    def _begin(self) -> _Call:
        self._calls.append(_Call(len(self._calls)))
        return self._calls[-1]

    def _begin_calls(self, end: int) -> Iterator[StreamEvent]:
        """Tell the calls before `end` that were not, with what they have of arguments."""
        for call in self._calls[:end]:
            if not call.begun:
                call.begun = True
                yield StreamCallStart(index=call.index, name=call.name, wire_id=call.wire_id)
                if call.arguments:
                    yield StreamCallArguments(index=call.index, text="".join(call.arguments))

    def finish(self, *, cut: bool = False) -> Iterator[StreamEvent]:
        """Close every call, of a reply that was `cut` all but the last one."""
        yield from self._begin_calls(len(self._calls))
        for call in self._calls[: len(self._calls) - cut]:
            yield StreamCallDone(index=call.index)


def _is_another(call: _Call, call_id: str) -> bool:
    """Whether a piece with a name under the index of a call begins another one: by its id, or as this one is whole."""
    if call_id and call.wire_id:
        return call_id != call.wire_id
    try:
        decode_json("".join(call.arguments))
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return True
