"""What goes around a command: programs that run the guard, and programs that run the command below the guard."""

from collections.abc import Sequence

from msgspec import Struct


class Wrapping(Struct, frozen=True):
    """Beginnings of two command lines: of the guard's, and of the command's own; each ends where the other goes on."""

    outer: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()

    def around(self, guard: Sequence[str], command: Sequence[str]) -> tuple[str, ...]:
        """Put the command line together."""
        return (*self.outer, *guard, *self.inner, *command)


PLAIN = Wrapping()
"""Nothing around."""
