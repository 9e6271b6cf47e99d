"""The bar of the context: its cells are in proportion, none is lost, and what is there is seen."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.present.context_use import ContextUse, bar_cells, filled_words, percent_full

AMOUNTS = st.lists(st.integers(0, 2_000_000), min_size=1, max_size=6)


@given(AMOUNTS, st.integers(6, 200))
def test_all_cells_are_given_and_what_there_is_has_one(amounts: list[int], cells: int) -> None:
    shares = bar_cells(amounts, cells)
    assert sum(shares) == (cells if any(amounts) else 0)
    assert [share > 0 for share in shares] == [amount > 0 for amount in amounts]


@given(AMOUNTS, st.integers(60, 200))
def test_what_is_more_never_has_fewer_cells(amounts: list[int], cells: int) -> None:
    shares = bar_cells(amounts, cells)
    ranked = sorted(zip(amounts, shares, strict=True))
    # The largest gives or takes what rounding left over.
    assert all(one[1] <= other[1] for one, other in pairwise(ranked[:-1]))


def test_cells_are_in_proportion() -> None:
    assert bar_cells((10, 30, 60), 10) == (1, 3, 6)
    assert bar_cells((1, 1, 100_000), 10) == (1, 1, 8)
    assert bar_cells((0, 0), 10) == (0, 0)


def test_what_is_free_is_never_less_than_nothing() -> None:
    assert ContextUse(groups=(10, 20), window=100).free == 70
    assert ContextUse(groups=(10, 200), window=100).free == 0
    assert ContextUse(groups=(10, 20)).free == 0


@pytest.mark.parametrize(
    ("used", "window", "percent", "said"),
    [
        (0, 200_000, 0, "0 of 200k"),
        (1_999, 200_000, 0, "2k of 200k (0%)"),
        (151_999, 200_000, 75, "152k of 200k (75%)"),
        (199_999, 200_000, 99, "200k of 200k (99%)"),
        (300_000, 200_000, 100, "300k of 200k (100%)"),
        (5_000, None, None, "5k"),
        (5_000, 0, None, "5k"),
    ],
)
def test_a_window_counts_as_full_only_once_it_is(used: int, window: int | None, percent: int | None, said: str) -> None:
    assert (percent_full(used, window), filled_words(used, window)) == (percent, said)
