"""Who may see the page: the token of this run, single-use links for other devices, and the cookies given for them."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from itertools import count

from msgspec import Struct

_LINK_SECONDS = 600.0
"""How long a pairing link can be used."""

_MOST_VISITORS = 100
_MOST_WRONG = 20
"""Wrong tokens in `_WRONG_SECONDS`; then even the right one has to wait."""

_WRONG_SECONDS = 60.0


class Visitor(Struct, frozen=True):
    """A browser that was let in; the log calls it `browser 2`. `paired` says that it came by a pairing link."""

    name: str
    paired: bool = False


class Keys:
    """Lets browsers in. Nothing of it is written anywhere: a restart shuts everybody out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = secrets.token_urlsafe(32)
        self._clock = clock
        self._visitors: dict[bytes, Visitor] = {}
        self._links: dict[bytes, float] = {}
        self._wrong: list[float] = []
        self._numbers = count(1)

    def let_in(self, secret: str) -> str | None:
        """Give a cookie for the token or a pairing link, which is then used up; None for anything else."""
        now = self._clock()
        self._wrong = [at for at in self._wrong if now - at < _WRONG_SECONDS]
        if len(self._wrong) >= _MOST_WRONG:
            return None
        digest = _digest(secret)
        paired = self._links.pop(digest, 0.0) > now
        if not paired and not hmac.compare_digest(digest, _digest(self.token)):
            self._wrong.append(now)
            return None
        while len(self._visitors) >= _MOST_VISITORS:
            self._visitors.pop(next(iter(self._visitors)))
        cookie = secrets.token_urlsafe(32)
        self._visitors[_digest(cookie)] = Visitor(f"browser {next(self._numbers)}", paired=paired)
        return cookie

    def visitor(self, cookie: str) -> Visitor | None:
        """Find whose cookie it is."""
        return self._visitors.get(_digest(cookie))

    def visitors(self) -> tuple[Visitor, ...]:
        """List the browsers that were let in."""
        return tuple(self._visitors.values())

    def shut_out(self, name: str) -> None:
        """Take a browser's cookie back."""
        self._visitors = {digest: one for digest, one in self._visitors.items() if one.name != name}

    def new_link(self) -> str:
        """Make the secret of a pairing link."""
        now = self._clock()
        self._links = {digest: end for digest, end in self._links.items() if end > now}
        secret = secrets.token_urlsafe(24)
        self._links[_digest(secret)] = now + _LINK_SECONDS
        return secret


def _digest(secret: str) -> bytes:
    # Looked up by its digest, so that the time it takes says nothing about the secret.
    return hashlib.sha256(secret.encode(errors="replace")).digest()
