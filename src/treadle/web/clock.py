"""The steady clock by which pages measure, and the time that browsers know."""

import time

_EPOCH = time.time() - time.monotonic()


def milliseconds(at: float) -> int:
    """Give a time of the steady clock in milliseconds since 1970."""
    return round((at + _EPOCH) * 1000)
