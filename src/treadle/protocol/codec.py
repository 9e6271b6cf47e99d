"""The one JSON codec."""

from collections.abc import Iterator, Mapping
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import msgspec

from treadle.protocol.errors import StoreError
from treadle.protocol.events import SCHEMA_VERSION, EventData, Source
from treadle.protocol.notifications import Notification
from treadle.protocol.patterns import regex

_T = TypeVar("_T")

_HALF = regex("[\ud800-\udfff]")
_HALF_OR_BACKSLASH = regex(rf"{_HALF.pattern}|\\")

_encoder = msgspec.json.Encoder(order="deterministic")


_looking = Lock()


def decoder_of(kind: Any) -> "msgspec.json.Decoder[Any]":
    """Make a decoder of types of the protocol: one thread at a time looks through them.

    Where two do that with the same types for the first time, one reads with what the other has half found, which ends
    the process (SIGSEGV).
    """
    with _looking:
        return msgspec.json.Decoder(kind)


@cache
def _data_decoder() -> "msgspec.json.Decoder[EventData]":
    """Make the decoder when something is read: to look through so many types takes milliseconds."""
    return decoder_of(EventData)


@cache
def _source_decoder() -> "msgspec.json.Decoder[Source]":
    return decoder_of(Source)


def encode(value: object) -> bytes:
    """Encode any record of the protocol; the same value gives the same bytes, and no text in it can stop that."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_escaped(value))


def encodable(value: _T) -> _T:
    """Give a record that reads back as it is: in texts that no encoding takes, halves of characters become escapes.

    Such a half is most often a byte of a file's name that is no UTF-8 (`os.fsdecode`); it becomes `\\xe9`. In these
    texts alone backslashes are doubled, so that a path is still known for what it is.
    """
    try:
        _encoder.encode(value)
    except UnicodeEncodeError:
        return _escaped(value)
    return value


def _escaped(value: _T) -> _T:
    return msgspec.convert(_sound(msgspec.to_builtins(value)), type(value))


def _sound(value: Any) -> Any:
    match value:
        case str():
            return _HALF_OR_BACKSLASH.sub(lambda found: _escape(found[0]), value) if _HALF.search(value) else value
        case dict():
            return {_sound(key): _sound(each) for key, each in value.items()}
        case list() | tuple():
            return [_sound(each) for each in value]
        case _:
            return value


def _escape(character: str) -> str:
    if character == "\\":
        return "\\\\"
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def decode_data(raw: bytes, version: int = SCHEMA_VERSION) -> EventData:
    """Decode the data of one event; raises `StoreError`.

    Of an older one this is what can be known without its log: a `LogReader` knows all of it.
    """
    if version > SCHEMA_VERSION:
        raise StoreError(
            "log-newer",
            f"This session was written with log schema {version}, newer than this Treadle's {SCHEMA_VERSION}.",
            fix="Update Treadle to open it.",
        )
    try:
        return _data_decoder().decode(raw if version == SCHEMA_VERSION else _alone(raw, version))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise damaged("An event of the log cannot be read.", str(error)) from error


def decode_source(raw: bytes) -> Source:
    """Decode where an event came from; raises `StoreError`."""
    try:
        return _source_decoder().decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged("The source of an event of the log cannot be read.", str(error)) from error


def _alone(raw: bytes, version: int) -> bytes:
    from treadle.protocol.upgrades import RESHAPES

    record = msgspec.json.decode(raw)
    for step in range(version, SCHEMA_VERSION):
        record = RESHAPES[step](record)
    return msgspec.json.encode(record)


def damaged(what: str, why: str) -> StoreError:
    """Say that something in the log is not as it was written."""
    return StoreError("log-damaged", what, why=why, fix="Start a new session. Others may still be intact.")


def schemas() -> dict[str, dict[str, Any]]:
    """JSON Schemas of the log and of the notifications."""
    return {"event": msgspec.json.schema(EventData), "notification": msgspec.json.schema(Notification)}


def texts_within(value: Any) -> Iterator[str]:
    """Give every text in a value of JSON, the names of its objects too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_within([*value, *value.values()])
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts_within(inner)
