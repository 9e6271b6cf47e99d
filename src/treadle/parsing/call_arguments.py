"""Arguments against a tool's JSON schema, checked with messages for the model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

LARGEST_INTEGER = 2**53 - 1
"""The largest integer, on either side of 0, that every reader of JSON takes for the same number."""

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


def validate_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """List what is wrong with `arguments`, worded for the model; an empty list if nothing is.

    Checks types, `required`, `enum`, `const`, bounds of numbers, `additionalProperties`, `items`, `anyOf` and `oneOf`
    (as `anyOf`), at any depth. Other keywords are not checked here.
    """
    return list(_problems(schema, dict(arguments), ""))


def types_of(schema: Any) -> list[str]:
    """The JSON types that a schema names, its alternatives included; none if it names none."""
    if not isinstance(schema, Mapping):
        return []
    named = schema.get("type", [])
    types = [named] if isinstance(named, str) else list(named)
    for alternative in [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        types += types_of(alternative)
    return types


def fits_schema(schema: Any, value: Any) -> bool:
    """Whether a value is what a schema asks for, as far as `validate_arguments` checks it."""
    return next(_problems(schema, value, ""), None) is None


def _problems(schema: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        if schema is False:
            yield f"{_named(path)} must not be given."
        return
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    named = schema.get("type", [])
    types = [named] if isinstance(named, str) else list(named)
    if types and not any(_IS_TYPE[name](value) for name in types if name in _IS_TYPE):
        yield f"{_named(path)} must be {_or(types)}, not {_shown(value)}.{_advice(types, value)}"
    elif alternatives and not any(fits_schema(alternative, value) for alternative in alternatives):
        yield f"{_named(path)} must be {_or(types_of(schema))}, in one of the forms that the schema allows."
    elif "enum" in schema and not any(_same(value, item) for item in schema["enum"]):
        yield f"{_named(path)} must be one of {_listed(schema['enum'])}, not {_shown(value)}."
    elif "const" in schema and not _same(value, schema["const"]):
        yield f"{_named(path)} must be {_shown(schema['const'])}, not {_shown(value)}."
    else:
        yield from _problems_inside(schema, value, path)


def _advice(types: Sequence[str], value: Any) -> str:
    return " Give the text itself, as one string." if types == ["string"] and isinstance(value, dict | list) else ""


def _problems_inside(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    """What is wrong with a value of the right type."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_problems(schema, value, path)
    elif isinstance(value, dict):
        yield from _object_problems(schema, value, path)
    elif isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from _problems(schema["items"], item, f"{path}[{number}]")


def _number_problems(schema: Mapping[str, Any], value: float, path: str) -> Iterator[str]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(low, int | float) and value < low:
        yield f"{_named(path)} must be at least {_shown(low)}, not {_shown(value)}."
    elif isinstance(high, int | float) and value > high:
        yield f"{_named(path)} must be at most {_shown(high)}, not {_shown(value)}."
    elif "integer" in types_of(schema) and abs(value) > LARGEST_INTEGER:
        yield f"{_named(path)} is too large a number: {_shown(value)}."


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
