"""Calls of a model that knows no calls: its reply is forced to be JSON, an answer or a call."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from treadle.protocol.models import StreamCallArguments, StreamCallDone, StreamCallStart, StreamEvent, StreamText
from treadle.protocol.tools import ToolSpec

_CALL = re.compile(r'\s*\{\s*"tool"\s*:\s*"([^"\\]+)"\s*,\s*"arguments"\s*:\s*(?=\{)')
_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*"')


def reply_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON Schema of a reply: `{"answer": …}`, or `{"tool": …, "arguments": …}` with that tool's arguments."""
    calls = [_object(tool={"const": tool.name}, arguments=dict(tool.parameters)) for tool in tools]
    return {"anyOf": [*calls, _object(answer={"type": "string"})]}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def tool_text(tools: Sequence[ToolSpec]) -> str:
    """Tell the model of the tools, briefly: the schema forces the form."""
    lines = [
        f"- {tool.name}({', '.join(tool.parameters.get('properties') or {})}): {tool.description.partition('.')[0]}."
        for tool in tools
    ]
    return "\n".join(
        (
            "Reply with one JSON object.",
            'To use a tool: {"tool": "NAME", "arguments": {...}}. To say something: {"answer": "..."}.',
            "Tools:",
            *lines,
        )
    )


class ConstrainedReply:
    """Turns the JSON text of a reply into the neutral stream, piece by piece."""

    def __init__(self) -> None:
        self._text = ""
        self._call: _Object | None = None
        self._answer: _String | None = None
        self.called = False

    def feed(self, text: str) -> Iterator[StreamEvent]:
        """Take the next piece."""
        if self._answer is None and self._call is None:
            self._text += text
            call, answer = _CALL.match(self._text), _ANSWER.match(self._text)
            found = call or answer
            if found is None:
                return
            text, self._text = self._text[found.end() :], ""
            if call is not None:
                self._call = _Object()
                yield StreamCallStart(index=0, name=call[1])
            else:
                self._answer = _String()
        if self._answer is not None:
            said = self._answer.feed(text)
            if said:
                yield StreamText(text=said)
        elif self._call is not None:
            arguments = self._call.feed(text)
            if arguments:
                yield StreamCallArguments(index=0, text=arguments)
            if self._call.whole and not self.called:
                self.called = True
                yield StreamCallDone(index=0)

    def rest(self) -> str:
        """What came and was neither an answer nor a call."""
        return self._text


class _Object:
    """The text of one JSON object, up to its end."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self.whole = False

    def feed(self, text: str) -> str:
        for place, sign in enumerate(text):
            if self.whole:
                return text[:place]
            if self._escaped:
                self._escaped = False
            elif self._quoted:
                self._escaped = sign == "\\"
                self._quoted = sign != '"'
            else:
                self._quoted = sign == '"'
                self._depth += (sign in "{[") - (sign in "}]")
                self.whole = self._depth == 0
        return text


class _String:
    """The value of one JSON string, decoded as it comes; halves of an escape or of a character wait for the rest."""

    def __init__(self) -> None:
        self._held = ""
        self._whole = False

    def feed(self, text: str) -> str:
        if self._whole:
            return ""
        self._held += text
        ready, place = "", 0
        while place < len(self._held):
            if self._held[place] == '"':
                self._whole = True
                break
            end = self._end(place)
            if end is None:
                break
            ready += json.loads(f'"{self._held[place:end]}"', strict=False)
            place = end
        self._held = self._held[place:]
        return ready

    def _end(self, place: int) -> int | None:
        """Where the character that begins at a place ends; None as long as that is not known."""
        if self._held[place] != "\\":
            return place + 1
        size = 6 if self._held[place + 1 : place + 2] == "u" else 2
        piece = self._held[place : place + size]
        if len(piece) < size:
            return None
        if size == 6 and piece[2:].lower() >= "d800" and piece[2:].lower() < "dc00":
            return place + 12 if len(self._held) >= place + 12 else None
        return place + size
