"""Who may see the page: the token of this run, single-use links for other devices, and what is given for them."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.open_session import Reach
from treadle.door.program import KeptDevice, KeptDevices
from treadle.web.pairing import Knock, Knocks
from treadle.web.signals import Signal

LINK_SECONDS = 600.0
"""How long a link can be used."""

DEVICE_SECONDS = 30 * 24 * 3600.0
"""How long a device that is kept stays signed in without being used."""

_MOST_VISITORS, _MOST_LINKS = 100, 20
_LONGEST_NAME = 60
_NOTED = 3600 * 1000
"""Milliseconds after which it is written down again when a kept device was seen."""


class Visitor(Struct, frozen=True, kw_only=True):
    """A browser that was let in; the log calls it by its name. `paired` says that it came by a link for other devices.

    `here` is true of a request of one that is not, from this computer: such a browser may do everything but what it
    `lacks`. `about` is what it says it is, `since` when it was let in (ms since 1970). Its `number` stays with another
    name, and no other browser gets it.
    """

    name: str
    paired: bool = False
    here: bool = False
    lacks: frozenset[Reach] = frozenset()
    about: str = ""
    since: int = 0
    number: int = 0


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
    kept: bool = False


class Keys:
    """Lets browsers in. A restart shuts everybody out but the devices that are `kept`, which `note` writes down.

    Token, links and cookies are too long to be guessed, so wrong ones are not counted: whoever sends many of them
    cannot keep the right one out. `base` is the path below which the page is for them: the cookie of a
    computer goes to every server on it, whatever its port, but only for paths below its own, which nobody else knows.
    `changed` tells when a browser was let in or shut out, or wants in. Cookies begin with the `run` that gave them.
    What it `lacks` no browser may do.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        kept: KeptDevices | None = None,
        note: Callable[[KeptDevices], None] | None = None,
        *,
        lacks: frozenset[Reach] = frozenset(),
    ) -> None:
        kept = kept or KeptDevices()
        self.token = secrets.token_urlsafe(32)
        self.run = secrets.token_hex(4)
        self.changed = Signal()
        self.keeps = note is not None
        self._clock = clock
        self._note = note
        self._lacks = lacks
        self._links: dict[bytes, tuple[float, bool]] = {}
        self._knocks = Knocks()
        self._numbers = count(1)
        self._let = {
            one.cookie: _Let(
                Visitor(name=one.name, paired=True, about=one.about, since=one.since, number=next(self._numbers)),
                one.key,
                one.seen,
                True,
            )
            for one in kept.devices
            if one.seen / 1000 + DEVICE_SECONDS > clock()
        }
        self.base = kept.base if self._let else f"/~{secrets.token_urlsafe(18)}"

    def let_in(self, secret: str, *, about: str = "") -> Entrance | None:
        """Give what is needed for the token or a link, which is then used up; None for anything else."""
        digest = _digest(secret)
        end, paired = self._links.pop(digest, (0.0, False))
        if end <= self._clock():
            paired = False
            if not hmac.compare_digest(digest, _digest(self.token)):
                return None
        return self._enter(about, paired=paired)

    def knock(self, secret: str, *, about: str, address: str) -> Knock | None:
        """Use up the link of a device on the network, which then waits for an answer; None for anything else.

        From there the token opens nothing: whoever listens on the network could use it again.
        """
        end, paired = self._links.get(_digest(secret), (0.0, False))
        if not paired or end <= self._clock():
            return None
        del self._links[_digest(secret)]
        made = self._knocks.add(about, address, end)
        self.changed.set()
        return made

    def knocks(self) -> tuple[Knock, ...]:
        """List the devices that wait for somebody to let them in."""
        return self._knocks.waiting(self._clock())

    def answer_knock(self, wanted: str, *, yes: bool, keep: bool = False) -> bool:
        """Let a device in or not, kept when the page is served again or not; gives whether it was still waiting."""
        found = self._knocks.answer(wanted, yes=yes, keep=keep)
        self.changed.set()
        return found

    def enter(self, wanted: str) -> Entrance | None:
        """Give a device that was let in what it needs, once; None for any other."""
        found = self._knocks.take(wanted, self._clock())
        return None if found is None else self._enter(found[0].about, paired=True, kept=found[1])

    def _enter(self, about: str, *, paired: bool, kept: bool = False) -> Entrance:
        while len(self._let) >= _MOST_VISITORS:
            self._let.pop(min(self._let, key=lambda one: self._let[one].seen))
        entrance = Entrance(cookie=f"{self.run}.{secrets.token_urlsafe(32)}", key=secrets.token_urlsafe(32))
        at = int(self._clock() * 1000)
        visitor = Visitor(
            name=self._free_name(about),
            paired=paired,
            about=about,
            since=at,
            lacks=self._lacks,
            number=next(self._numbers),
        )
        self._let[_digest(entrance.cookie)] = _Let(visitor, _digest(entrance.key), at, kept and self.keeps)
        self._changed_devices()
        return entrance

    def _free_name(self, about: str) -> str:
        known = {one.visitor.name for one in self._let.values()}
        names = (f"{about or 'browser'} {number}" if number > 1 or not about else about for number in count(1))
        return next(name for name in names if name not in known)

    def _changed_devices(self) -> None:
        """Tell who waits, and write down the devices that are kept."""
        self.changed.set()
        if self._note is None:
            return
        kept = [
            KeptDevice(
                name=one.visitor.name,
                about=one.visitor.about,
                since=one.visitor.since,
                seen=one.seen,
                cookie=cookie,
                key=one.key,
            )
            for cookie, one in self._let.items()
            if one.kept
        ]
        self._note(KeptDevices(base=self.base, devices=tuple(kept)))

    def keep(self, name: str, *, kept: bool) -> None:
        """Let a paired device stay signed in when the page is served again, or not."""
        for one in self._let.values():
            if one.visitor.name == name and one.visitor.paired:
                one.kept = kept
        self._changed_devices()

    def rename(self, name: str, new: str) -> bool:
        """Call a browser otherwise; gives whether no other one is called so."""
        new = " ".join(new.split())[:_LONGEST_NAME]
        if not new or any(one.visitor.name == new for one in self._let.values()):
            return False
        for one in self._let.values():
            if one.visitor.name == name:
                one.visitor = replace(one.visitor, name=new)
        self._changed_devices()
        return True

    def visitor(self, cookie: str) -> Visitor | None:
        """Find whose cookie it is, and note that it was seen."""
        found = self._let.get(_digest(cookie))
        if found is None:
            return None
        before, found.seen = found.seen, int(self._clock() * 1000)
        if found.kept and found.seen - before > _NOTED:
            self._changed_devices()
        return found.visitor

    def acts(self, visitor: Visitor, key: str) -> bool:
        """Say whether it is a page of this visitor that wants to act: it knows the visitor's key."""
        known = (one.key for one in self._let.values() if one.visitor.name == visitor.name)
        return any(hmac.compare_digest(one, _digest(key)) for one in known)

    def is_in(self, visitor: Visitor) -> bool:
        """Say whether a browser has not been shut out meanwhile."""
        return any(one.visitor.number == visitor.number for one in self._let.values())

    def visitors(self) -> tuple[tuple[Visitor, int, bool], ...]:
        """List the browsers that were let in: when each was seen last (ms since 1970), and whether it is kept."""
        return tuple((one.visitor, one.seen, one.kept) for one in self._let.values())

    def shut_out(self, name: str) -> None:
        """Take back what a browser was let in with."""
        self._let = {digest: one for digest, one in self._let.items() if one.visitor.name != name}
        self._changed_devices()

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
