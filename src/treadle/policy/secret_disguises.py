"""Known values in other forms: as tools encode them, in other letters, spread out, and in dumps of bytes."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
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
    rb"^(?:[0-9A-Fa-f]{6,8}: ((?:[0-9A-Fa-f]+ )+) |[0-9A-Fa-f]{6,8}[ \t]+)?([^>|\n]*)([>|][^\n]*)?$", re.MULTILINE
)
"""A line of a dump: an offset, groups of digits, and perhaps the same as text."""

_BEGINNINGS = [(size, skip) for size in (1, 2, 4, 8) for skip in range(size)]
_OCTAL_DIGITS = {1: 3, 2: 6, 4: 11}
_MOST = 256 * 1024
"""Characters of a text that is looked through so: several times what the result of one call may hold."""

Place = tuple[int, int, str]
"""Begin and end of what is to be hidden, and the name that is shown instead."""


def disguised(text: str, values: Sequence[tuple[str, str]]) -> Iterator[Place]:
    """Find known values that are not spelled as they are; of dumps the whole lines. Not in a very long text."""
    if not values or len(text) > _MOST:
        return
    data = text.encode("ascii", "replace")
    spread = _OFFSET.sub(lambda found: b" " * len(found[0]), data)
    yield from _found(spread, [(_skeleton(value), name) for value, name in values])
    dumped = _DUMPED.sub(_digits, data)
    numbers = [(form, name) for value, name in values for form in _in_numbers(value)]
    for start, end, name in _found(dumped, numbers):
        first, last = data.rfind(b"\n", 0, start) + 1, (data + b"\n").find(b"\n", end)
        is_dump = dumped[first:last] != data[first:last] or data[first : first + 1].isspace()
        yield (first, last, name) if is_dump else (start, end, name)


def _digits(line: re.Match[bytes]) -> bytes:
    """Keep the groups of digits of a line, where they stand."""
    group = 1 if line[1] else 2
    before, behind = line.start(group) - line.start(), line.end() - line.end(group)
    return b" " * before + line[group] + b" " * behind


@lru_cache(maxsize=4096)
def _skeleton(value: str) -> bytes:
    """Give the letters and digits of a value in small letters; empty where they are too few to tell it by."""
    found = value.encode(errors="replace").translate(None, _DROPPED).lower()
    told = len(found) >= _LEAST and not found.isdigit() and (value != value.lower() or not found.isalpha())
    return found if told else b""


@lru_cache(maxsize=1024)
def _in_numbers(value: str) -> tuple[bytes, ...]:
    """Write the bytes of a value as numbers, as dumps and lists do, wherever a number of several bytes begins in it."""
    data = value.encode(errors="replace")
    found = ["".join(f"0x{byte:02x}" for byte in data), "".join(map(str, data))]
    for size, skip in _BEGINNINGS:
        whole = data[skip:][: (len(data) - skip) // size * size] or data[skip % 4 :][:4]
        words = [int.from_bytes(whole[at : at + size], "little") for at in range(0, len(whole), size)]
        found.append("".join(f"{word:0{2 * min(size, len(whole))}x}" for word in words))
        if size in _OCTAL_DIGITS:
            found.append("".join(f"{word:0{_OCTAL_DIGITS[size]}o}" for word in words))
    return tuple(form.encode() for form in found)


def _found(data: bytes, wanted: Iterable[tuple[bytes, str]]) -> Iterator[Place]:
    """Find texts of letters and digits, whatever stands between their characters, in small letters or not."""
    bones = data.translate(None, _DROPPED).lower()
    places: list[int] = []
    for form, name in wanted:
        for at in find_all(bones, (form,) if form else ()):
            places = places or [found.start() for found in _KEPT.finditer(data)]
            yield places[at], places[at + len(form) - 1] + 1, name
