"""What somebody buys."""

from decimal import Decimal

from shop.money import rounded

Line = tuple[str, int, Decimal]


def total(lines: list[Line]) -> Decimal:
    """Sum a basket up, to the cent."""
    return rounded(sum((count * price for _, count, price in lines), Decimal(0)))
