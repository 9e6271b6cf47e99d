"""The one JSON codec, and the upgrade of old records."""

from collections.abc import Callable
from typing import Any

import msgspec

from treadle.protocol.errors import StoreError
from treadle.protocol.events import SCHEMA_VERSION, EventData, Source
from treadle.protocol.notifications import Notification

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

UPGRADES: dict[int, Upgrade] = {}
"""From the version that is the key to the next one: takes and returns the decoded JSON of an event's data."""

_encoder = msgspec.json.Encoder(order="deterministic")
_data_decoder: msgspec.json.Decoder[EventData] = msgspec.json.Decoder(EventData)
_source_decoder = msgspec.json.Decoder(Source)
_notification_decoder: msgspec.json.Decoder[Notification] = msgspec.json.Decoder(Notification)


def encode(value: object) -> bytes:
    """Encode any record of the protocol; the same value gives the same bytes."""
    return _encoder.encode(value)


def decode_data(raw: bytes, version: int = SCHEMA_VERSION) -> EventData:
    """Decode the data of an event that was written with schema `version`; raises `StoreError`."""
    if version > SCHEMA_VERSION:
        raise StoreError(
            "log-newer",
            f"This session was written with log schema {version}, newer than this Treadle's {SCHEMA_VERSION}.",
            fix="Update Treadle to open it.",
        )
    try:
        if version == SCHEMA_VERSION:
            return _data_decoder.decode(raw)
        record = msgspec.json.decode(raw)
        for step in range(version, SCHEMA_VERSION):
            record = UPGRADES[step](record)
        return msgspec.convert(record, EventData)  # type: ignore[no-any-return]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damaged("An event of the log cannot be read.", error) from error


def decode_source(raw: bytes) -> Source:
    """Decode where an event came from; raises `StoreError`."""
    try:
        return _source_decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damaged("The source of an event of the log cannot be read.", error) from error


def _damaged(what: str, error: msgspec.MsgspecError | UnicodeDecodeError) -> StoreError:
    return StoreError("log-damaged", what, why=str(error), fix="Start a new session; other ones may still be whole.")


def decode_notification(raw: bytes) -> Notification:
    """Decode a notification, for surfaces in another process."""
    return _notification_decoder.decode(raw)


def schemas() -> dict[str, dict[str, Any]]:
    """JSON Schemas of the log and of the notifications."""
    return {"event": msgspec.json.schema(EventData), "notification": msgspec.json.schema(Notification)}
