"""A line about a hike."""

from units import metres_to_feet


def line(name: str, metres: float) -> str:
    """Say how high it goes, in both units."""
    return f"{name}: {metres:.0f} m ({metres_to_feet(metres):.0f} ft)"
