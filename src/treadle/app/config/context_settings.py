"""What a user may set of the model's window: when older messages leave it, and what stands for them."""

from typing import Annotated

import msgspec

from treadle.context.compaction import CompactionSettings, CompactionStrategy
from treadle.protocol.base import Record


class ContextSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`compact_at` is a part of the window up to 1, or a number of tokens; without it, well before the window's end.

    `keep` is the part of the messages that stays. With the strategy `summary` the model sums up what leaves, with
    `drop` the log's facts of it have to do, with `auto` it depends on the window. `costly_request` is the price of a
    request in US dollars above which a cheaper configured model is named; 0 is never.
    """

    compact_at: Annotated[float, msgspec.Meta(gt=0)] | None = None
    keep: Annotated[float, msgspec.Meta(ge=0.05, le=0.9)] = 0.5
    strategy: CompactionStrategy = CompactionStrategy.AUTO
    costly_request: Annotated[float, msgspec.Meta(ge=0)] = 0.5

    @property
    def compaction(self) -> CompactionSettings:
        """The same for the engine."""
        return CompactionSettings(compact_at=self.compact_at, keep=self.keep, strategy=self.strategy)
