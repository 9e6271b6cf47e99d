"""Bookings, one a line: a date, a category and an amount, separated by semicolons."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Booking:
    """One line of the ledger."""

    date: str
    category: str
    amount: Decimal


def parse(text: str) -> list[Booking]:
    """Read bookings; blank lines and lines that begin with # are skipped."""
    bookings = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        date, category, amount = line.split(";")
        bookings.append(Booking(date.strip(), category.strip(), Decimal(amount.strip())))
    return bookings


def totals(bookings: list[Booking]) -> dict[str, Decimal]:
    """Sum the amounts of each category."""
    result: dict[str, Decimal] = {}
    for booking in bookings:
        result[booking.category] = booking.amount
    return result
