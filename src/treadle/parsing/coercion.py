"""Values that a model wrote in another form than the schema asks for, where only one reading of them is possible."""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from treadle.parsing.aliases import surely_milliseconds
from treadle.parsing.call_arguments import LARGEST_INTEGER, fits_schema, types_of
from treadle.parsing.readings import Reading
from treadle.protocol.patterns import regex

VERBATIM = frozenset({"content", "diff", "patch", "old_string", "new_string"})
"""Parameters that hold the text of files: only a text is taken for them."""

_INTEGER = regex(r"([+-]?[0-9]{1,4000})(?:\.0{0,100})?")
_FEW = 16
_NUMBER = regex(r"[+-]?(?:[0-9]{1,4000}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_BOOLEANS = {"true": True, "false": False}
_NULLS = frozenset({"null", "none"})
_MORE_THAN_ONE = regex(r"\A\s*[\[{]|[,;\n]")
_BLANK = regex(r"\s")
_SHELLS = frozenset({"bash", "/bin/bash", "/usr/bin/bash", "sh", "/bin/sh"})
_RUN_LINE = frozenset({"-c", "-lc"})
_OF_TEXTS = ([Reading.TEXT_VALUE], [Reading.JSON_TEXT])
"""What is no reading where a notation has texts only."""

_Read: TypeAlias = tuple[Any, Sequence[Reading]]
"""A value, and what had to be read to come to it."""


def coerced(
    schema: Mapping[str, Any],
    arguments: Mapping[str, Any],
    readings: list[Reading] | None = None,
    *,
    texts: bool = False,
) -> dict[str, Any]:
    """Give the arguments with the types that the schema asks for, wherever a value has one possible reading.

    A value that fits stays (an integral float becomes the integer it is equal to); a value that can be read in more
    than one way, or in none, stays too, for `validate_arguments` to report. Optional parameters that are null are
    left out, and so are those that are empty and should be no text. What had to be read is added to `readings`;
    `texts`: the notation has no other values, so that a number in a text is as it should be.
    """
    found, read = _members(schema, arguments, texts=texts)
    if readings is not None:
        readings += read
    return found


def _members(
    schema: Mapping[str, Any], value: Mapping[str, Any], *, texts: bool = False
) -> tuple[dict[str, Any], list[Reading]]:
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    others = schema.get("additionalProperties", True)
    found: dict[str, Any] = {}
    readings: list[Reading] = []
    for name, item in value.items():
        if name not in required and name in properties and _is_not_given(properties[name], item):
            readings.append(Reading.NOT_GIVEN)
            continue
        found[name], read = _coerced(properties.get(name, others), item, name)
        of_text = texts and isinstance(item, str) and list(read[:1]) in _OF_TEXTS
        readings += read[1:] if of_text else read
    return found, readings


def _is_not_given(schema: Any, value: Any) -> bool:
    """Whether the value of an optional parameter says that it has none."""
    if value is None or not isinstance(value, str):
        return value is None and not fits_schema(schema, value)
    types, text = types_of(schema), value.strip().lower()
    return bool(types) and "string" not in types and (not text or (text in _NULLS and "null" not in types))


def _coerced(schema: Any, value: Any, name: str = "") -> _Read:
    read: Sequence[Reading] = ()
    if not isinstance(schema, Mapping):
        return value, read
    if isinstance(value, dict) and "properties" in schema:
        value, read = _members(schema, value)
    elif isinstance(value, list) and "items" in schema:
        items = [_coerced(schema["items"], item) for item in value]
        value, read = [item for item, _ in items], [one for _, of_item in items for one in of_item]
    elif isinstance(value, float) and "integer" in types_of(schema):
        number = _integral(value)
        return number, (() if isinstance(number, float) else (Reading.WHOLE_NUMBER,))
    if fits_schema(schema, value):
        return value, read
    found = [one for one in _readings(schema, value, name) if fits_schema(schema, one[0])]
    if not found and isinstance(value, str) and types_of(schema) == ["integer"]:
        # It is an integer, if one out of bounds: that is what is to be reported.
        written = _INTEGER.fullmatch(value.strip()) if len(value) < _FEW else None
        return (int(written[1]), (Reading.TEXT_VALUE,)) if written else (value, read)
    if not found or any(one != found[0][0] for one, _ in found):
        return value, read
    return found[0][0], (*read, *found[0][1])


def _readings(schema: Mapping[str, Any], value: Any, name: str) -> Iterator[_Read]:
    """The values of other types that `value` may stand for; those that do not fit are no readings."""
    types = types_of(schema)
    if name == "timeout" and "second" in str(schema.get("description", "")).lower():
        yield from ((seconds, (Reading.MILLISECONDS,)) for seconds in _seconds(value))
    for alternative in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield _coerced(alternative, value, name)
    if isinstance(value, str):
        yield from _readings_of_text(schema, types, value)
    if "string" in types and name not in VERBATIM:
        if isinstance(value, int) and not isinstance(value, bool):
            yield str(value), (Reading.NUMBER_FOR_TEXT,)
        elif name in _TEXT_FORMS:
            reading, form = _TEXT_FORMS[name]
            yield from ((text, (reading,)) for text in form(value))
    if "array" in types and "items" in schema and not isinstance(value, list | str):
        yield _one_item(schema, value)


def _one_item(schema: Mapping[str, Any], value: Any) -> _Read:
    item, read = _coerced(schema["items"], value)
    return [item], (Reading.ONE_ITEM, *read)


def _seconds(value: Any) -> Iterator[int]:
    """Read a number of milliseconds that cannot be one of seconds."""
    number = int(value) if isinstance(value, str) and value.strip().isdecimal() and len(value) < 12 else value
    if isinstance(number, int) and not isinstance(number, bool) and surely_milliseconds(number):
        yield number // 1000


def _readings_of_text(schema: Mapping[str, Any], types: Sequence[str], value: str) -> Iterator[_Read]:
    text = value.strip()
    lower = text.lower()
    if "enum" in schema:
        words = (item for item in schema["enum"] if isinstance(item, str) and item.lower() == lower)
        yield from ((word, (Reading.WORD_CASE,)) for word in words)
    if "null" in types and lower in _NULLS:
        yield None, (Reading.TEXT_VALUE,)
    if "boolean" in types and lower in _BOOLEANS:
        yield _BOOLEANS[lower], (Reading.TEXT_VALUE,)
    if ("integer" in types or "number" in types) and (found := _INTEGER.fullmatch(text)):
        yield int(found[1]), (Reading.TEXT_VALUE,)
    elif "number" in types and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        yield float(text), (Reading.TEXT_VALUE,)
    if ("array" in types or "object" in types) and text[:1] in ("[", "{"):
        yield from _readings_of_json(schema, text)
    elif "array" in types and "items" in schema and text and not _MORE_THAN_ONE.search(text):
        yield _one_item(schema, text)


def _readings_of_json(schema: Mapping[str, Any], text: str) -> Iterator[_Read]:
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return
    if isinstance(decoded, list | dict):
        value, read = _coerced(schema, decoded)
        yield value, (Reading.JSON_TEXT, *read)


def _integral(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) <= LARGEST_INTEGER else value


def point(value: object) -> Iterator[str]:
    """Read a place on a screen, given as a list or an object of two whole numbers, as `x,y`."""
    if isinstance(value, dict) and value.keys() == {"x", "y"}:
        value = [value["x"], value["y"]]
    if isinstance(value, list) and len(value) == 2:
        numbers = [_integral(item) if isinstance(item, float) else item for item in value]
        if all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
            yield f"{numbers[0]},{numbers[1]}"


def shell_line(value: object) -> Iterator[str]:
    """Read a program with its arguments as the shell line that runs it; of `bash -lc LINE` the line."""
    if not isinstance(value, list) or not value:
        return
    words = [word for word in value if isinstance(word, str)]
    if len(words) < len(value):
        return
    if len(words) == 1 or (len(words) == 3 and words[0] in _SHELLS and words[1] in _RUN_LINE):
        yield words[-1]
    elif words[0] and not _BLANK.search(words[0]):
        yield shlex.join(words)


_TEXT_FORMS: Mapping[str, tuple[Reading, Callable[[object], Iterator[str]]]] = {
    "coordinate": (Reading.COORDINATE, point),
    "command": (Reading.COMMAND_WORDS, shell_line),
}
"""Parameters that are texts here and have a structure elsewhere."""
