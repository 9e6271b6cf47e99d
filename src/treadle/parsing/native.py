"""Native function calls: the incremental reader of their argument JSON."""

import io
from typing import Any

import msgspec

from treadle.parsing.json_scan import ObjectScan
from treadle.parsing.reply_blocks import CallComplete, CallOpened, Malformation, ParameterDelta, ParserEvent


class _OpenCall:
    __slots__ = ("call_id", "name", "scan", "source")

    def __init__(self, name: str, call_id: str | None) -> None:
        self.name = name
        self.call_id = call_id
        self.scan = ObjectScan()
        self.source = io.StringIO()


class NativeReader:
    """Reads the argument JSON of the calls of one reply; calls may interleave.

    A call completes only if its JSON is one whole object with every name once; anything else is a
    `Malformation`, and nothing is repaired. No arguments at all mean `{}` where the call was ended; where only the
    reply ended it was cut. The arguments are decoded once, at the end; a light scanner cuts the previews. No input
    raises. Time and memory are linear.
    """

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: dict[int, _OpenCall] = {}

    def start(self, index: int, call_id: str | None, name: str) -> list[ParserEvent]:
        """Open call `index`. A call that is open already takes the name or id that it lacks."""
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _OpenCall("", None)
        unnamed = not call.name
        call.name = call.name or name
        call.call_id = call.call_id or call_id
        return [CallOpened(index, call.name, call.call_id)] if unnamed and call.name else []

    def feed(self, index: int, json_fragment: str) -> list[ParserEvent]:
        """Read the next piece of the arguments of call `index`."""
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _OpenCall("", None)
        call.source.write(json_fragment)
        pieces = call.scan.feed(json_fragment)
        return [ParameterDelta(index, name, text) for name, text in pieces] if pieces else []

    def end(self, index: int) -> list[ParserEvent]:
        """Close call `index`; nothing if it is not open."""
        call = self._calls.pop(index, None)
        return [] if call is None else [_close(index, call)]

    def finish(self) -> list[ParserEvent]:
        """Close every open call, in the order in which they were opened."""
        return [
            _close(index, call) if call.source.tell() else _cut(index, call)
            for index, call in ((index, self._calls.pop(index)) for index in list(self._calls))
        ]


def _close(index: int, call: _OpenCall) -> CallComplete | Malformation:
    source = call.source.getvalue()
    if not call.name:
        return _malformed(index, call, "missing_name", "it has no tool name. Send it again with a name.")
    if call.scan.repeated:
        names = ", ".join(f'"{name}"' for name in call.scan.repeated)
        return _malformed(index, call, "duplicate_parameter", f"{names} came twice. Give each parameter once.")
    try:
        arguments: Any = msgspec.json.decode(source) if source.strip() else {}
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        if not call.scan.ended:
            return _cut(index, call)
        return _malformed(index, call, "invalid_json", f"its arguments are not valid JSON ({error}). Send valid JSON.")
    if not isinstance(arguments, dict):
        return _malformed(index, call, "not_an_object", "its arguments must be one JSON object of parameters.")
    return CallComplete(index, call.name, arguments, call.call_id, source)


def _cut(index: int, call: _OpenCall) -> Malformation:
    what = "its argument JSON is cut off. Send the whole call again; if it is long, split it into several calls."
    return _malformed(index, call, "cut_json", what)


def _malformed(index: int, call: _OpenCall, code: str, what: str) -> Malformation:
    return Malformation(code, f"The call was not run: {what}", index, call.name, call.source.getvalue())
