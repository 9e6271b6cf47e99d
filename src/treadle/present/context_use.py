"""How full the window of a model is, by what fills it, and the cells of a bar that shows it."""

from collections.abc import Sequence

from treadle.present.words import tokens
from treadle.protocol.base import Record

CONTEXT_GROUPS = ("system prompt", "tools", "rules", "messages", "results")
"""What a request is divided into."""


class ContextUse(Record, frozen=True, kw_only=True):
    """The estimated tokens of each of `CONTEXT_GROUPS`, and the `window` in tokens, None where it is unknown."""

    groups: tuple[int, ...]
    window: int | None = None

    @property
    def used(self) -> int:
        """The tokens of all groups."""
        return sum(self.groups)

    @property
    def free(self) -> int:
        """The tokens for which there is room left; 0 where the window is unknown."""
        return max(0, (self.window or 0) - self.used)


def percent_full(used: int, window: int | None) -> int | None:
    """Give how full a window is, from 0 to 100 and rounded down; None where its size is unknown."""
    return None if not window else min(100, 100 * used // window)


def filled_words(used: int, window: int | None) -> str:
    """Say how many tokens of a window are used: `0 of 200k`, `4.2k of 200k (2%)`, `4.2k` where its size is unknown."""
    if not window:
        return tokens(used)
    return f"{tokens(used)} of {tokens(window)}{f' ({percent_full(used, window)}%)' if used else ''}"


def bar_cells(amounts: Sequence[int], cells: int) -> tuple[int, ...]:
    """Divide so many cells in proportion; what is not nothing has at least one, as long as there are enough."""
    total = sum(amounts)
    if not total:
        return (0,) * len(amounts)
    shares = [0 if not amount else max(1, round(amount * cells / total)) for amount in amounts]
    while (over := sum(shares) - cells) and (over < 0 or max(shares) > 1):
        shares[shares.index(max(shares))] -= 1 if over > 0 else -1
    return tuple(shares)
