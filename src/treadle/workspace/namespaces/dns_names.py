"""Names that commands look up, and the addresses that stand for them inside: DNS as RFC 1035 writes it.

A name gets an address of 198.18.0.0/15, which is set aside for tests of networks (RFC 2544) and is nobody's. Inside all
of them lead back to Treadle, so that it knows which name a connection is for. Nothing of a query leaves the machine.
"""

import re
import struct
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network

from msgspec import Struct

ADDRESSES = IPv4Network("198.18.0.0/15")
_FIRST = 2
_MOST_NAMES = 60_000
_HEADER = struct.Struct("!6H")
_TYPE_AND_CLASS = struct.Struct("!2H")
_RECORD = struct.Struct("!3HIH")
_A, _INTERNET = 1, 1
_ANSWERS, _RECURSION_WANTED, _RECURSION_THERE, _CODES = 0x8000, 0x0100, 0x0080, 0x000F
_OPERATIONS = 0x7800
_LONGEST_LABEL = 63
_LONGEST_NAME = 120
"""Characters of a name that is looked up: a person is to read it in a question."""

SECONDS = 60
"""For so long an answer holds: then a program asks again, and it is decided again."""

_POINTER = 0xC000 | _HEADER.size
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])")
_OWN = frozenset({"local", "localhost", "internal", "arpa", "onion", "lan", "home", "corp", "test", "invalid"})
"""Last labels that no public name has (RFC 6761, 6762, 9476, and what ICANN gives to nobody)."""


class LookUpEnd(IntEnum):
    """How a query ended."""

    FOUND = 0
    NO_SUCH_NAME = 3
    REFUSED = 5


class LookUp(Struct, frozen=True):
    """A question for one name, lower case and without a dot at its end; `wire` is the question as it came."""

    number: int
    flags: int
    name: str
    kind: int
    wire: bytes

    @property
    def wants_address(self) -> bool:
        """Whether it asks for the kind of address that there is here."""
        return self.kind == _A


def read_query(packet: bytes) -> LookUp | None:
    """Read a packet; None for what is no query of one name, which gets no answer."""
    try:
        number, flags, questions, *_ = _HEADER.unpack_from(packet)
        if flags & (_ANSWERS | _OPERATIONS) or questions != 1:
            return None
        at, labels = _HEADER.size, list[str]()
        while size := packet[at]:
            if size > _LONGEST_LABEL or at + size >= len(packet):
                return None
            labels.append(packet[at + 1 : at + 1 + size].decode("ascii").lower())
            at += 1 + size
        kind, network = _TYPE_AND_CLASS.unpack_from(packet, at + 1)
    except (struct.error, IndexError, UnicodeDecodeError):
        return None
    if network != _INTERNET:
        return None
    return LookUp(number, flags, ".".join(labels), kind, packet[_HEADER.size : at + 1 + _TYPE_AND_CLASS.size])


def write_answer(query: LookUp, code: LookUpEnd, address: IPv4Address | None = None) -> bytes:
    """Answer a query: with an address, with none, or with a failure."""
    flags = _ANSWERS | (query.flags & _RECURSION_WANTED) | _RECURSION_THERE | (code & _CODES)
    head = _HEADER.pack(query.number, flags, 1, address is not None, 0, 0)
    if address is None:
        return head + query.wire
    return head + query.wire + _RECORD.pack(_POINTER, _A, _INTERNET, SECONDS, len(address.packed)) + address.packed


def is_public_name(name: str) -> bool:
    """Whether a name may be one of the open network: with a dot, of plain letters, and of no network of one's own."""
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None and name.rpartition(".")[2] not in _OWN


def registered(name: str) -> str:
    """Give the part of a name that somebody registered, as far as that shows: `pypi.org`, `bbc.co.uk`.

    Where a country has two letters and a label of up to three stands before it, that is taken for a part of it.
    """
    labels = name.split(".")
    within_country = len(labels[-1]) == 2 and len(labels) > 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3 if within_country else -2 :])


class NameTable:
    """Which address stands for which name; at most 60,000 of them."""

    def __init__(self) -> None:
        self._addresses: dict[str, IPv4Address] = {}
        self._names: dict[IPv4Address, str] = {}

    def address_of(self, name: str) -> IPv4Address | None:
        """Give the address that stands for a name, a new one if need be; None when there are too many."""
        known = self._addresses.get(name)
        if known is None and len(self._addresses) < _MOST_NAMES:
            known = self._addresses[name] = ADDRESSES[_FIRST + len(self._addresses)]
            self._names[known] = name
        return known

    def name_of(self, address: str) -> str:
        """Give the name that an address stands for; empty for one that stands for none."""
        return self._names.get(IPv4Address(address), "")
