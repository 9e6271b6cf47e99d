"""Arguments against a tool's JSON schema: typed from XML text, and checked with messages for the model."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,4000}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_NOT_READ = object()

_IS_TYPE: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def typed_arguments(schema: Mapping[str, Any], arguments: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Give the string values of an XML call the types that the schema asks for.

    Strings stay as they are; numbers and booleans may have blanks around them; arrays and objects are JSON.
    A value that cannot be read stays a string and adds a problem, worded for the model.
    """
    typed: dict[str, Any] = {}
    problems: list[str] = []
    properties = schema.get("properties", {})
    for name, text in arguments.items():
        types = _types(properties.get(name, {}))
        value = text if not types or "string" in types else _read(text.strip(), types)
        if value is _NOT_READ:
            problems.append(f"<{name}> must be {_or(types)}, not {_shown(text)}.")
            value = text
        typed[name] = value
    return typed, problems


def validate_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """List what is wrong with `arguments`, worded for the model; an empty list if nothing is.

    Checks types, `required`, `enum`, `const`, `additionalProperties`, `items`, `anyOf` and `oneOf` (as
    `anyOf`), at any depth. Other keywords are not checked here.
    """
    return list(_problems(schema, dict(arguments), ""))


def _types(schema: Any) -> list[str]:
    """The JSON types that a schema names, its alternatives included; none if it names none."""
    if not isinstance(schema, Mapping):
        return []
    named = schema.get("type", [])
    types = [named] if isinstance(named, str) else list(named)
    for alternative in [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        types += _types(alternative)
    return types


def _read(text: str, types: Sequence[str]) -> Any:
    """The first reading of `text` that fits one of `types`, or `_NOT_READ`."""
    if "null" in types and text.lower() == "null":
        return None
    if "boolean" in types and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if ("integer" in types or "number" in types) and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in types and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    if "array" in types or "object" in types:
        return _read_json(text, types)
    return _NOT_READ


def _read_json(text: str, types: Sequence[str]) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _NOT_READ
    fits = ("array" in types and isinstance(value, list)) or ("object" in types and isinstance(value, dict))
    return value if fits else _NOT_READ


def _problems(schema: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        if schema is False:
            yield f"{_named(path)} must not be given."
        return
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    named = schema.get("type", [])
    types = [named] if isinstance(named, str) else list(named)
    if types and not any(_IS_TYPE[name](value) for name in types if name in _IS_TYPE):
        yield f"{_named(path)} must be {_or(types)}, not {_shown(value)}."
    elif alternatives and not any(_fits(alternative, value, path) for alternative in alternatives):
        yield f"{_named(path)} must be {_or(_types(schema))}, in one of the forms that the schema allows."
    elif "enum" in schema and not any(_same(value, item) for item in schema["enum"]):
        yield f"{_named(path)} must be one of {_listed(schema['enum'])}, not {_shown(value)}."
    elif "const" in schema and not _same(value, schema["const"]):
        yield f"{_named(path)} must be {_shown(schema['const'])}, not {_shown(value)}."
    elif isinstance(value, dict):
        yield from _object_problems(schema, value, path)
    elif isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from _problems(schema["items"], item, f"{path}[{number}]")


def _object_problems(schema: Mapping[str, Any], value: dict[str, Any], path: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{_named(_join(path, name))} is missing. Send the call again with it."
    for name, item in value.items():
        if name in properties:
            yield from _problems(properties[name], item, _join(path, name))
        elif others is False:
            known = ", ".join(f'"{known}"' for known in properties) or "none"
            yield f"{_named(_join(path, name))} is not known. Use only: {known}."
        else:
            yield from _problems(others, item, _join(path, name))


def _fits(schema: Any, value: Any, path: str) -> bool:
    return next(_problems(schema, value, path), None) is None


def _same(left: Any, right: Any) -> bool:
    """Equality as JSON sees it: `true` is not `1`."""
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _named(path: str) -> str:
    return f'Parameter "{path}"' if path else "The arguments"


def _or(types: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(types)) or "another type"


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(_shown, values))


def _shown(value: Any) -> str:
    """The value as JSON, cut to what a message can carry."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, UnicodeEncodeError, RecursionError):
        text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
