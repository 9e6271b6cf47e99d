"""Letting another device in: its link is used up when it knocks, and somebody at this computer says yes or no."""

import secrets

from msgspec import Struct

_MOST_KNOCKS = 20


class Knock(Struct, frozen=True, kw_only=True):
    """A device that wants in: what it says it is, from which address, and a code that it shows to be compared.

    `end` is when that is over (seconds since 1970).
    """

    id: str
    about: str
    address: str
    code: str
    end: float


class Knocks:
    """The devices that want in, until somebody answers or their time is over. Nobody's answer is no."""

    def __init__(self) -> None:
        self._open: dict[str, Knock] = {}
        self._let: dict[str, tuple[Knock, bool]] = {}

    def add(self, about: str, address: str, end: float) -> Knock:
        """Take a device that has a link."""
        while len(self._open) >= _MOST_KNOCKS:
            self._open.pop(next(iter(self._open)))
        code = f"{secrets.randbelow(10_000):04}"
        made = Knock(id=secrets.token_urlsafe(24), about=about, address=address, code=code, end=end)
        self._open[made.id] = made
        return made

    def waiting(self, now: float) -> tuple[Knock, ...]:
        """List the devices that wait for an answer."""
        self._open = {name: one for name, one in self._open.items() if one.end > now}
        return tuple(self._open.values())

    def answer(self, wanted: str, *, yes: bool, keep: bool) -> bool:
        """Let one in, to be kept or not, or refuse it; gives whether it was still waiting."""
        found = self._open.pop(wanted, None)
        if found is not None and yes:
            self._let[wanted] = found, keep
        return found is not None

    def take(self, wanted: str, now: float) -> tuple[Knock, bool] | None:
        """Give the device that was let in, and whether it is kept, once; None where it was not."""
        found = self._let.pop(wanted, None)
        return found if found is not None and found[0].end > now else None
