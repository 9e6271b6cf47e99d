"""Who may see the page: the token of this run, single-use links for other devices, and what is given for them."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from itertools import count

from msgspec import Struct

from treadle.web.signals import Signal

LINK_SECONDS = 600.0
"""How long a link can be used."""

_MOST_VISITORS, _MOST_LINKS = 100, 20


class Visitor(Struct, frozen=True, kw_only=True):
    """A browser that was let in; the log calls it `browser 2`. `paired` says that it came by a link for other devices.

    `here` is true of a request of one that is not, from this computer: such a browser may do everything. `about` is
    what it says it is, `since` when it was let in (ms since 1970).
    """

    name: str
    paired: bool = False
    here: bool = False
    about: str = ""
    since: int = 0


class Entrance(Struct, frozen=True, kw_only=True):
    """What a browser is let in with: the cookie that it sends along, and the key that its pages name when they act.

    A browser sends the cookie of this computer to every server on it, whatever its port; the key only this page knows.
    """

    cookie: str
    key: str


class _Let(Struct):
    visitor: Visitor
    key: bytes
    seen: int


class Keys:
    """Lets browsers in. Nothing of it is written anywhere: a restart shuts everybody out.

    Token, links and cookies are too long to be guessed, so wrong ones are not counted: whoever sends many of them
    cannot keep the right one out. `base` is the path below which the page is for them: the cookie of a
    computer goes to every server on it, whatever its port, but only for paths below its own, which nobody else knows.
    `changed` tells when a browser was let in or shut out.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.token = secrets.token_urlsafe(32)
        self.base = f"/~{secrets.token_urlsafe(18)}"
        self.changed = Signal()
        self._clock = clock
        self._let: dict[bytes, _Let] = {}
        self._links: dict[bytes, tuple[float, bool]] = {}
        self._numbers = count(1)

    def let_in(self, secret: str, *, about: str = "", near: bool = True) -> Entrance | None:
        """Give what is needed for the token or a link, which is then used up; None for anything else.

        From another computer (not `near`) the token opens nothing: whoever listens on the network could use it again.
        """
        now = self._clock()
        digest = _digest(secret)
        end, paired = self._links.pop(digest, (0.0, False))
        if end <= now:
            paired = False
            if not hmac.compare_digest(digest, _digest(self.token)):
                return None
        if not near and not paired:
            return None
        while len(self._let) >= _MOST_VISITORS:
            self._let.pop(min(self._let, key=lambda one: self._let[one].seen))
        entrance = Entrance(cookie=secrets.token_urlsafe(32), key=secrets.token_urlsafe(32))
        at = int(now * 1000)
        visitor = Visitor(name=f"browser {next(self._numbers)}", paired=paired, about=about, since=at)
        self._let[_digest(entrance.cookie)] = _Let(visitor, _digest(entrance.key), at)
        self.changed.set()
        return entrance

    def visitor(self, cookie: str) -> Visitor | None:
        """Find whose cookie it is, and note that it was seen."""
        found = self._let.get(_digest(cookie))
        if found is None:
            return None
        found.seen = int(self._clock() * 1000)
        return found.visitor

    def acts(self, visitor: Visitor, key: str) -> bool:
        """Say whether it is a page of this visitor that wants to act: it knows the visitor's key."""
        known = (one.key for one in self._let.values() if one.visitor.name == visitor.name)
        return any(hmac.compare_digest(one, _digest(key)) for one in known)

    def is_in(self, visitor: Visitor) -> bool:
        """Say whether a browser has not been shut out meanwhile."""
        return any(one.visitor.name == visitor.name for one in self._let.values())

    def visitors(self) -> tuple[tuple[Visitor, int], ...]:
        """List the browsers that were let in, each with when it was seen last (ms since 1970)."""
        return tuple((one.visitor, one.seen) for one in self._let.values())

    def shut_out(self, name: str) -> None:
        """Take back what a browser was let in with."""
        self._let = {digest: one for digest, one in self._let.items() if one.visitor.name != name}
        self.changed.set()

    def new_link(self, *, paired: bool = True) -> str:
        """Make the secret of a link that lets one browser in: that of another device, or (not `paired`) the user's."""
        now = self._clock()
        links = {digest: link for digest, link in self._links.items() if link[0] > now}
        while len(links) >= _MOST_LINKS:
            links.pop(next(iter(links)))
        secret = secrets.token_urlsafe(24)
        self._links = {**links, _digest(secret): (now + LINK_SECONDS, paired)}
        return secret


def _digest(secret: str) -> bytes:
    # Looked up by its digest, so that the time it takes says nothing about the secret.
    return hashlib.sha256(secret.encode(errors="replace")).digest()
