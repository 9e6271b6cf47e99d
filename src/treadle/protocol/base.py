"""The base of every record. Type checkers want `frozen` and `kw_only` said again by each subclass."""

from msgspec import Struct

SHORTEST_SECRET = 8
"""Characters; a shorter known value is hidden nowhere: it could be a part of any word."""


class Record(Struct, frozen=True, omit_defaults=True):
    """A plain value of the protocol."""


class Tagged(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """A member of a closed union; subclasses give their own tag."""
