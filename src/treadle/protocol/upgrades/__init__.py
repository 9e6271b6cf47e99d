"""Older logs: what turns the rows of one schema into those of the next. Each of them is frozen, its words included."""

from collections.abc import Callable, Mapping
from typing import Any

from treadle.protocol.base import Upgrade
from treadle.protocol.upgrades.schema_1 import UpgradeOf1
from treadle.protocol.upgrades.shapes_1 import reshaped_1

UPGRADES: Mapping[int, Callable[[], Upgrade]] = {1: UpgradeOf1}
"""By the schema that they read."""

RESHAPES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: reshaped_1}
"""By schema: an event alone in the next one, without what only its log tells."""
