"""The base of every record, and an event as it is stored.

Type checkers want `frozen` and `kw_only` said again by each subclass.
"""

from typing import Protocol

from msgspec import Struct

SHORTEST_SECRET = 8
"""Characters; a shorter known value is hidden nowhere: it could be a part of any word."""


class Record(Struct, frozen=True, omit_defaults=True):
    """A plain value of the protocol."""


class Tagged(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """A member of a closed union; subclasses give their own tag."""


class StoredEvent(Struct, frozen=True, kw_only=True):
    """A row: `source` and `data` are JSON, `version` is the schema of the data."""

    seq: int
    at: int
    source: bytes
    version: int
    data: bytes


class Upgrade(Protocol):
    """Follows the log of one session through the rows of one schema."""

    def take(self, row: StoredEvent) -> list[StoredEvent]:
        """Give a row in the next schema, and behind it what the log did not keep; raises `DriftError`."""
        ...
