"""Older logs: what turns the rows of one schema into those of the next. Each of them is frozen, its words included."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from treadle.protocol.stored import StoredEvent
from treadle.protocol.upgrades.schema_1 import upgraded_from_1

Upgrade = Callable[[Iterable[StoredEvent]], Iterator[StoredEvent]]

UPGRADES: Mapping[int, Upgrade] = {1: upgraded_from_1}
"""By the schema that they read. Rows of a later schema, in which a log may go on, pass as they are."""
