"""Native function calls: the incremental reader of their argument JSON."""

import io
import json
import math
from typing import Any, NoReturn

import msgspec

from treadle.parsing.json_scan import ObjectScan
from treadle.parsing.readings import Reading
from treadle.parsing.reply_blocks import CallComplete, CallOpened, Malformation, ParameterDelta, ParserEvent
from treadle.protocol.patterns import regex

_NOT_BLANK = regex(r"[^ \t\r\n]")
_CUT = "its argument JSON is cut off. Send the whole call again; if it is long, split it into several calls."


class _OpenCall:
    __slots__ = ("call_id", "name", "scan", "source")

    def __init__(self, name: str, call_id: str | None) -> None:
        self.name = name
        self.call_id = call_id
        self.scan = ObjectScan()
        self.source = io.StringIO()


class NativeReader:
    """Reads the argument JSON of the calls of one reply; calls may interleave.

    A call completes only if its JSON is one whole object with every name once, as `one_object` reads it; anything
    else is a `Malformation`, and nothing is repaired. No arguments at all mean `{}` where the call was ended; where
    only the reply ended it was cut. The arguments are decoded once, at the end; a light scanner cuts the previews. No
    input raises. Time and memory are linear.
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


class _FaultError(Exception):
    """Arguments that are no single object: the code of the malformation, and what to send instead."""

    def __init__(self, code: str, what: str) -> None:
        super().__init__(what)
        self.code, self.what = code, what


def one_object(source: str, readings: list[Reading]) -> dict[str, Any] | None:
    """Decode JSON that can be read as one object only; None for anything else.

    Besides JSON as it should be that is an object behind empty ones (`{}{"path": "a"}`), which some gateways put in
    front, the same object several times, strings with raw line breaks and tabs, and the object written as a string:
    each is added to `readings`.
    """
    try:
        return _sound(source, _object(source, readings))
    except _FaultError:
        return None


def _close(index: int, call: _OpenCall) -> CallComplete | Malformation:
    source = call.source.getvalue()
    if not call.name:
        return _malformed(index, call, "missing_name", "it has no tool name. Send it again with a name.")
    readings: list[Reading] = []
    try:
        _refuse_repeated(call.scan)
        arguments = _object(source, readings) if source.strip() else {}
    except _FaultError as fault:
        return _malformed(index, call, fault.code, fault.what)
    return CallComplete(index, call.name, arguments, call.call_id, source, tuple(readings))


def _object(source: str, readings: list[Reading]) -> dict[str, Any]:
    try:
        found: Any = msgspec.json.decode(source)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return _only_one(source, error, readings)
    if isinstance(found, str) and found.lstrip().startswith("{"):  # some gateways write the JSON as JSON once more
        readings.append(Reading.JSON_TEXT)
        found = one_object(found, readings)
    if not isinstance(found, dict):
        raise _FaultError("not_an_object", "its arguments must be one JSON object of parameters.")
    return found


def _only_one(source: str, error: Exception, readings: list[Reading]) -> dict[str, Any]:
    """Read what is not one document of JSON as it should be; `error` says why it is not."""
    wanted: dict[str, Any] = {}
    same, found = b"", dict[Reading, None]()
    start = at = _behind_blanks(source, 0)
    while at < len(source):
        try:
            value, end = _LENIENT.raw_decode(source, at)
            encoded = msgspec.json.encode(value)
        except (ValueError, UnicodeEncodeError, RecursionError, OverflowError):
            raise _no_json(source[at:], error) from None
        if not isinstance(value, dict) or (wanted and encoded != same):
            raise _FaultError("several_objects", "its arguments are several texts of JSON. Send a call for each.")
        if not is_strict(source[at:end]):
            found[Reading.RAW_CHARACTERS] = None
        if wanted:
            found[Reading.REPEATED_OBJECT] = None
        else:
            wanted, same = _sound(source[at:end], value), encoded
            found.update({} if wanted and at == start else {Reading.EMPTY_OBJECTS: None})
        at = _behind_blanks(source, end)
    readings += found
    return wanted


def is_strict(source: str) -> bool:
    """Whether a text of one value is JSON as it should be."""
    try:
        msgspec.json.decode(source)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _behind_blanks(source: str, at: int) -> int:
    found = _NOT_BLANK.search(source, at)
    return found.start() if found else len(source)


def _sound(source: str, found: dict[str, Any]) -> dict[str, Any]:
    scan = ObjectScan()
    scan.feed(source)
    _refuse_repeated(scan)
    return found


def _refuse_repeated(scan: ObjectScan) -> None:
    if scan.repeated:
        names = ", ".join(f'"{name}"' for name in scan.repeated)
        raise _FaultError("duplicate_parameter", f"{names} came twice. Give each parameter once.")


def _no_json(source: str, error: Exception) -> _FaultError:
    scan = ObjectScan()
    scan.feed(source)
    if not scan.ended:
        return _FaultError("cut_json", _CUT)
    return _FaultError("invalid_json", f"its arguments are not valid JSON ({error}). Send valid JSON.")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(written: str) -> float:
    number = float(written)
    return number if math.isfinite(number) else _no_number(written)


_LENIENT = json.JSONDecoder(strict=False, parse_constant=_no_number, parse_float=_finite)
"""Reads strings with raw control characters too, and nothing else that is not JSON."""


def _cut(index: int, call: _OpenCall) -> Malformation:
    return _malformed(index, call, "cut_json", _CUT)


def _malformed(index: int, call: _OpenCall, code: str, what: str) -> Malformation:
    return Malformation(code, f"The call was not run: {what}", index, call.name, call.source.getvalue())
