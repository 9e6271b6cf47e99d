"""What is shown of a model to whoever chooses one in a session, and how much it may think."""

from treadle.protocol.base import Record

EFFORT_BUDGETS = {"off": 0, "low": 4_096, "medium": 16_384, "high": 32_768}
"""Budgets for thinking, in tokens, by the names that providers know which take no number."""


class OfferedModel(Record, frozen=True, kw_only=True):
    """A model, `provider/name`. `title` is its provider's name, `window` in tokens, prices in $ for a million tokens.

    `usable` says that it can be called with what is set, `key` where its key comes from. None is unknown.
    """

    ref: str
    title: str = ""
    window: int | None = None
    price_in: float | None = None
    price_out: float | None = None
    usable: bool = False
    key: str = ""
    thinks: bool = False


class NextRequest(Record, frozen=True, kw_only=True):
    """What a model, `provider/name`, gets next: `cached` tokens are in its provider's cache, `new` ones are not."""

    model: str
    cached: int
    new: int
