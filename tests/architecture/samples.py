"""Values of every record of a union, made from its fields: once with the required ones only, once with all."""

import types
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec


def members(union: Any) -> tuple[type[msgspec.Struct], ...]:
    """The records of a closed union."""
    return get_args(union)


def samples(record: type[msgspec.Struct]) -> Iterator[msgspec.Struct]:
    """Two values of a record."""
    yield _struct(record, every=False)
    yield _struct(record, every=True)


def _struct(record: type[msgspec.Struct], *, every: bool) -> msgspec.Struct:
    hints = get_type_hints(record)
    fields = [field for field in msgspec.structs.fields(record) if every or field.required]
    return record(**{field.name: _value(hints[field.name], every=every) for field in fields})


def _value(hint: Any, *, every: bool) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _value(next(one for one in arguments if one is not type(None)), every=every)
    if origin is tuple:
        return (_value(arguments[0], every=every),)
    if origin in (frozenset, list):
        return origin([_value(arguments[0], every=every)])
    if origin in (dict, Mapping):
        return {}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(hint, every=every)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    return {str: "text", bytes: b"data", int: 1, float: 1.0, bool: True}.get(hint, {})
