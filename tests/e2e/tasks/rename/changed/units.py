"""Lengths."""

FEET_PER_METRE = 3.28084


def metres_to_feet(metres: float) -> float:
    """Give a length in feet."""
    return metres * FEET_PER_METRE
