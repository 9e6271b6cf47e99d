"""What somebody has to pay."""

from decimal import Decimal

from shop.basket import Line, total
from shop.money import rounded

TAX = Decimal("0.077")


def invoice(lines: list[Line]) -> str:
    """Write the last line of the invoice."""
    return f"To pay: {rounded(total(lines) * (1 + TAX))}"
