"""Ctrl-C while the program loads: nothing has begun, so it ends at once, without a word."""

import os
import signal
from contextlib import suppress

TYPE_CHECKING = False
"""`typing` takes longer to load than `--version` to answer."""
if TYPE_CHECKING:
    from typing import Any

_INTERRUPTED = 128 + signal.SIGINT


class Loading:
    """A block in which SIGINT ends the process: no exception is raised into what is being imported.

    Libraries in C do not stand one there: msgspec crashes where it comes while it looks at a type.
    """

    def __init__(self) -> None:
        self._before: Any = None

    def __enter__(self) -> None:
        with suppress(ValueError):  # not the main thread
            if (before := signal.getsignal(signal.SIGINT)) is signal.default_int_handler:
                signal.signal(signal.SIGINT, _end)
                self._before = before

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


def _end(*_: object) -> None:
    os._exit(_INTERRUPTED)
