"""Telling whoever waits that something changed."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Signal:
    """Something that changes, and those that wait for it. Changes between two looks are one."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()
        self.heard = asyncio.Event()
        """Whether anybody waits."""

    def set(self) -> None:
        """Tell all who wait."""
        for event in self._waiting:
            event.set()

    @contextmanager
    def notifying(self, event: asyncio.Event) -> Iterator[None]:
        """Set the event at each change, as long as this is entered."""
        self._waiting.add(event)
        self.heard.set()
        try:
            yield
        finally:
            self._waiting.discard(event)
            if not self._waiting:
                self.heard.clear()
