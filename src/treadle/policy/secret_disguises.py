"""Known values in other forms: as tools encode them, in other letters, spread out, and in dumps of bytes."""

import base64
import html
import json
import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from typing import AnyStr
from urllib.parse import quote, quote_plus

from treadle.protocol.base import SHORTEST_SECRET


def forms(value: str) -> tuple[str, ...]:
    """Give a value as tools print it: as it is, for a shell, in URLs, JSON, HTML, as bytes, base64 and base32."""
    quoted = json.dumps(value)[1:-1]
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    encoded = value.encode(errors="surrogatepass")
    hexadecimal, escaped = encoded.hex(), html.escape(value)
    found = (
        *(value, quoted, plain, json.dumps(quoted)[1:-1], json.dumps(plain)[1:-1]),
        *(
            quote(value, safe=""),
            quote(value),
            quote_plus(value),
            re.sub(r"%..", lambda escape: escape[0].lower(), quote(value, safe="")),
        ),
        *(escaped, html.escape(value, quote=False)),
        *(escaped.replace("&#x27;", "&#39;").replace("&quot;", "&#34;"), escaped.replace("&#x27;", "&apos;")),
        *(quoted.replace("/", "\\/"), *_for_a_shell(value)),
        *(hexadecimal, hexadecimal.upper(), "\\x00".join(value)),
        *("".join(map(byte.format, encoded)) for byte in ("%{:02x}", "%{:02X}", "\\x{:02x}", "\\{:03o}")),
        *chain.from_iterable(_base64(encoded)),
        *chain.from_iterable(_base32(encoded)),
    )
    return tuple(dict.fromkeys(form for form in found if len(form) >= SHORTEST_SECRET))


def _for_a_shell(value: str) -> Iterator[str]:
    """Quote a value as shells do that print their variables, and programs that print commands."""
    yield re.sub(r"([^\w@%+=:,./\n-])", r"\\\1", value, flags=re.ASCII)
    yield re.sub(r'(["\\$`])', r"\\\1", value)
    yield value.replace("'", "'\\''")
    yield value.replace("'", "'\"'\"'")
    yield value.replace("\\", "\\\\").replace("'", "\\'")


def _base64(value: bytes) -> Iterator[tuple[str, str]]:
    """Encode a value at each of the three places it can have in what is encoded; the digits it shares are left out."""
    for before in range(3):
        first, last = (before * 8 + 5) // 6, (before + len(value)) * 8 // 6
        digits = base64.b64encode(bytes(before) + value + bytes(2)).decode()[first:last]
        yield digits, digits.replace("+", "-").replace("/", "_")


def _base32(value: bytes) -> Iterator[tuple[str, str]]:
    """The same of base32, where there are five places."""
    for before in range(5):
        first, last = (before * 8 + 4) // 5, (before + len(value)) * 8 // 5
        digits = base64.b32encode(bytes(before) + value + bytes(4)).decode()[first:last]
        yield digits, digits.lower()


def find_all(text: AnyStr, literals: Iterable[AnyStr]) -> Iterator[int]:
    """Give every place where one of some literals stands, literal by literal."""
    for literal in literals:
        at = text.find(literal)
        while at >= 0:
            yield at
            at = text.find(literal, at + len(literal))


def lowered(text: str) -> str:
    """Give a text in small letters, of the same length."""
    small = text.lower()
    return small if len(small) == len(text) else text.replace("\u0130", "I").lower()


_LEAST = 12
"""Letters and digits that a value has at least which is looked for when nothing else of it is left."""

_DROPPED = bytes(byte for byte in range(256) if byte >= 128 or not chr(byte).isalnum())
_KEPT = re.compile(rb"[0-9A-Za-z]")
_OFFSET = re.compile(rb"^[ \t]*[0-9A-Fa-f]{6,16}:?(?=[ \t])", re.MULTILINE)
_DUMPED = re.compile(
    rb"^(?:[0-9A-Fa-f]{6,8}:?[ \t]+)?[ \t]*([0-9A-Fa-f]{1,16}(?:[ \t]{1,8}[0-9A-Fa-f]{1,16})*)(?=[ \t\r]|$)[^\n]*$",
    re.MULTILINE,
)
"""A line of a dump: an offset, groups of digits, and perhaps the same as text."""

_LISTED = re.compile(rb"(?:0x[0-9A-Fa-f]{2}|[0-9]{1,3})(?:,\s*(?:0x[0-9A-Fa-f]{2}|[0-9]{1,3})){7,}")
_BYTES_A_LINE = 16
_NUMBER = re.compile(rb"0x[0-9A-Fa-f]{2}|[1-9][0-9]*|0")
_BYTE = 256

_MOST = 256 * 1024
"""Characters of a text that is looked through so: several times what the result of one call may hold."""

Place = tuple[int, int, str]
"""Begin and end of what is to be hidden, and the name that is shown instead."""


def disguised(text: str, values: Sequence[tuple[str, str]]) -> Iterator[Place]:
    """Find known values that are not spelled as they are; of a dump the whole lines. Not in a very long text."""
    if not values or len(text) > _MOST:
        return
    data = text.encode("ascii", "replace")
    bare = _OFFSET.sub(lambda found: b" " * len(found[0]), data) if _OFFSET.search(data) else data
    yield from _spread(bare, values)
    for run in _runs(_DUMPED.finditer(data)):
        yield from _dumped(run, values)
    for numbers in _LISTED.finditer(data):
        shown = bytes(value for value in (int(one, 0) for one in _NUMBER.findall(numbers[0])) if value < _BYTE)
        yield from ((*numbers.span(), name) for value, name in values if value.encode(errors="replace") in shown)


@lru_cache(maxsize=4096)
def _skeleton(value: str) -> bytes:
    """Give the letters and digits of a value in small letters; empty where they are too few to tell it by."""
    found = value.encode(errors="replace").translate(None, _DROPPED).lower()
    told = len(found) >= _LEAST and not found.isdigit() and (value != value.lower() or not found.isalpha())
    return found if told else b""


def _spread(data: bytes, values: Iterable[tuple[str, str]]) -> Iterator[Place]:
    """Find values in other letters, or with something between their characters."""
    bones = data.translate(None, _DROPPED).lower()
    places: list[int] = []
    for value, name in values:
        wanted = _skeleton(value)
        for at in find_all(bones, (wanted,) if wanted else ()):
            places = places or [found.start() for found in _KEPT.finditer(data)]
            yield places[at], places[at + len(wanted) - 1] + 1, name


def _runs(lines: Iterator[re.Match[bytes]]) -> Iterator[list[re.Match[bytes]]]:
    """Put lines of dumps together that follow each other."""
    run: list[re.Match[bytes]] = []
    for line in lines:
        if run and line.start() != run[-1].end() + 1:
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _dumped(run: Sequence[re.Match[bytes]], values: Iterable[tuple[str, str]]) -> Iterator[Place]:
    for read in _READINGS:
        lines = [read(line[1].split()) for line in run]
        ends = list(accumulate(map(len, lines)))
        shown = b"".join(lines)
        for value, name in values:
            wanted = value.encode(errors="replace")
            for at in find_all(shown, (wanted,)):
                first, last = bisect_right(ends, at), bisect_left(ends, at + len(wanted))
                yield run[first].start(1), run[last].end(), name


def _hexadecimal(groups: Sequence[bytes]) -> bytes:
    """Read bytes as two digits each; all groups but the last are of one size."""
    found = b""
    for place, group in enumerate(groups):
        if len(group) % 2 or len(group) > len(groups[0]) or (place and len(groups[place - 1]) < len(groups[0])):
            break
        found += bytes.fromhex(group.decode())
    return found[:_BYTES_A_LINE]


def _swapped(groups: Sequence[bytes]) -> bytes:
    """Read numbers of several bytes as machines store them, the last digits first."""
    return b"".join(_hexadecimal([group])[::-1] for group in groups)[:_BYTES_A_LINE]


def _numbers(base: int, sizes: Mapping[int, str]) -> Callable[[Sequence[bytes]], bytes]:
    """Read numbers; how many digits they have says how many bytes they stand for."""

    def read(groups: Sequence[bytes]) -> bytes:
        found = b""
        for group in groups:
            try:
                found += struct.pack(sizes[len(group)], int(group, base))
            except (ValueError, KeyError, struct.error):
                break
        return found[:_BYTES_A_LINE]

    return read


_READINGS = (_hexadecimal, _swapped, _numbers(8, {3: "B", 6: "<H", 11: "<I"}), _numbers(10, {1: "B", 2: "B", 3: "B"}))
