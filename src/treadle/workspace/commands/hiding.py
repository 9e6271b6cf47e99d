"""Taking secrets out of what a command prints, before any of it is kept, shown or written to a file."""

from collections.abc import Callable
from typing import Protocol


class Hidden(Protocol):
    """A text that comes in chunks; what might be the beginning of a secret is held back."""

    def feed(self, chunk: str) -> str:
        """Take a chunk and give what can be shown."""
        ...

    def flush(self) -> str:
        """Give what is held back but for a word that may go on."""
        ...

    def finish(self) -> str:
        """Give the rest."""
        ...


Hide = Callable[[], Hidden]
"""Begins a text."""


class _AsItIs:
    """Hides nothing."""

    def feed(self, chunk: str) -> str:
        return chunk

    def flush(self) -> str:
        return ""

    def finish(self) -> str:
        return ""


def as_it_is() -> Hidden:
    """Begin a text in which nothing is hidden."""
    return _AsItIs()
