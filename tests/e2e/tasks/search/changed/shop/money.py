"""Amounts of money."""

from decimal import ROUND_HALF_EVEN, Decimal

CENT = Decimal("0.01")


def rounded(amount: Decimal) -> Decimal:
    """Round to the cent as a merchant does: half a cent to the even one."""
    return amount.quantize(CENT, rounding=ROUND_HALF_EVEN)
