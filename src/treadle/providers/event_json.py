"""The JSON of an event as its fields: strictly and fast, and where that fails, as loosely as it can be understood."""

from typing import Any, Generic, TypeVar

import msgspec

_T = TypeVar("_T")
VALUES = frozenset({"input", "args", "arguments"})
"""Below these keys null is a value; elsewhere it says no more than that a field is missing."""


class JsonEvents(Generic[_T]):
    """Decodes events of one kind."""

    def __init__(self, kind: type[_T]) -> None:
        self._kind = kind
        self._strict = msgspec.json.Decoder(kind)

    def decode(self, data: bytes) -> _T:
        """Give the fields of an event; raises `MsgspecError`.

        Servers written in other languages put numbers into strings, write 5 as 5.0, send NaN, or null for what is not
        there, and cut a character above U+FFFF into two halves, of which JSON then has only one.
        """
        try:
            return self._strict.decode(data)
        except msgspec.DecodeError as error:
            import json

            try:
                value = json.loads(data)
            except (ValueError, RecursionError):
                raise error from None
            return msgspec.convert(_without_null(value), self._kind, strict=False)


def _without_null(value: Any) -> Any:
    match value:
        case dict():
            given = {key: item for key, item in value.items() if item is not None}
            return {key: item if key in VALUES else _without_null(item) for key, item in given.items()}
        case list():
            return [_without_null(item) for item in value]
        case _:
            return value
