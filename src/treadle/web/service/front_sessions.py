"""The browsers that signed in to a service: each has a cookie here, and one at the page of its user."""

import hashlib
import secrets
import time

from msgspec import Struct

from treadle.web.service.service_users import ServiceUser

_WEEK = 7 * 24 * 3600.0
_MOST_OF_USER = 100


class FrontSession(Struct, frozen=True, kw_only=True):
    """A browser of a user. `token` is the digest of their token then: with a new one, they sign in again.

    `base` is the path below which their page was, `cookie` what that page knows the browser by; it never gets there.
    """

    user: str
    token: str
    base: str
    cookie: str
    end: float


class FrontSessions:
    """All of them, in memory alone: a restart lets everybody sign in again."""

    def __init__(self) -> None:
        self._known: dict[bytes, FrontSession] = {}

    def begin(self, user: ServiceUser, base: str, cookie: str) -> tuple[str, FrontSession]:
        """Let a browser in; gives its cookie. Of too many of one user the oldest ones are forgotten."""
        now = time.monotonic()
        self._known = {digest: one for digest, one in self._known.items() if one.end > now}
        own = [digest for digest, one in self._known.items() if one.user == user.name]
        for digest in own[: max(0, len(own) + 1 - _MOST_OF_USER)]:
            del self._known[digest]
        session = FrontSession(user=user.name, token=user.token, base=base, cookie=cookie, end=now + _WEEK)
        value = secrets.token_urlsafe(32)
        self._known[_digest(value)] = session
        return value, session

    def find(self, cookie: str) -> FrontSession | None:
        """Find a browser by its cookie."""
        found = self._known.get(_digest(cookie))
        return found if found is not None and found.end > time.monotonic() else None

    def has(self, session: FrontSession) -> bool:
        """Whether a browser that was let in has not been shut out, or forgotten, meanwhile."""
        return session.end > time.monotonic() and any(one is session for one in self._known.values())

    def forget(self, session: FrontSession) -> None:
        """Shut a browser out."""
        self._known = {digest: one for digest, one in self._known.items() if one != session}


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode(errors="replace")).digest()
