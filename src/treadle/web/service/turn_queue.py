"""Which turns of which users work, and which wait: as many as the service has room for, and fair between users."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count


class TurnQueue:
    """The turns of all users. `most` work at a time, of a user at most as many as `of_user` says.

    Whoever has the fewest at work is next, among those whoever was served longest ago: a user who asks for a thousand
    keeps another one waiting for a single turn at most.
    """

    def __init__(self, most: int, of_user: Callable[[str], int]) -> None:
        self._most = most
        self._of_user = of_user
        self._waiting: dict[tuple[str, str], None] = {}
        self._working: dict[tuple[str, str], None] = {}
        self._served: dict[str, int] = {}
        self._numbers = count(1)

    @property
    def working(self) -> Mapping[str, int]:
        """How many turns of each user work; users without one are left out."""
        return Counter(user for user, _ in self._working)

    @property
    def waiting(self) -> int:
        """How many turns wait."""
        return len(self._waiting)

    def want(self, user: str, turn: str) -> None:
        """Let a turn wait; one that waits or works already does so."""
        if (user, turn) not in self._working:
            self._waiting.setdefault((user, turn))

    def gives(self, user: str, turn: str) -> None:
        """End a turn, whether it works or waits."""
        self._working.pop((user, turn), None)
        self._waiting.pop((user, turn), None)

    def gone(self, user: str) -> None:
        """End all turns of a user, as when their process ended."""
        for turns in (self._waiting, self._working):
            for one in [one for one in turns if one[0] == user]:
                del turns[one]

    def admit(self) -> list[tuple[str, str]]:
        """Let those work that are next, as far as there is room; gives them."""
        admitted: list[tuple[str, str]] = []
        for one in self._order(admitting=True):
            if len(self._working) >= self._most:
                break
            del self._waiting[one]
            self._working[one] = None
            self._served[one[0]] = next(self._numbers)
            admitted.append(one)
        return admitted

    def places(self) -> Mapping[tuple[str, str], int]:
        """Give the place of each turn that waits: 1 is next."""
        return {one: place for place, one in enumerate(self._order(admitting=False), 1)}

    def _order(self, *, admitting: bool) -> Iterator[tuple[str, str]]:
        """Give those that wait, the next one first; for `admitting` only those whose user may have one more."""
        lines: dict[str, list[tuple[str, str]]] = {}
        for one in self._waiting:
            lines.setdefault(one[0], []).append(one)
        working, served = Counter(self.working), dict(self._served)
        numbers = count(max(served.values(), default=0) + 1)
        while lines:
            able = [user for user in lines if not admitting or working[user] < self._of_user(user)]
            if not able:
                return
            user = min(able, key=lambda one: (working[one], served.get(one, 0)))
            yield lines[user].pop(0)
            working[user] += 1
            served[user] = next(numbers)
            if not lines[user]:
                del lines[user]
