"""The other forms in which a known value is printed, and how literals are looked for."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from urllib.parse import quote, quote_plus

from treadle.protocol.base import SHORTEST_SECRET


def forms(value: str) -> tuple[str, ...]:
    """Give a value as tools print it: as it is, for a shell, in URLs, JSON, HTML, as bytes, base64 and base32."""
    quoted = json.dumps(value)[1:-1]
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    encoded = value.encode(errors="surrogatepass")
    hexadecimal = encoded.hex()
    found = (
        *(value, quoted, plain, json.dumps(quoted)[1:-1], json.dumps(plain)[1:-1]),
        *(quote(value, safe=""), quote(value), quote_plus(value), _lower_escapes(quote(value, safe=""))),
        *(html.escape(value), html.escape(value, quote=False), *_with_other_quotes(html.escape(value))),
        *(quoted.replace("/", "\\/"), *_for_a_shell(value)),
        *(hexadecimal, hexadecimal.upper(), "\\x00".join(value)),
        *(form for byte in ("%{:02x}", "%{:02X}", "\\x{:02x}", "\\{:03o}") for form in [_each(byte, encoded)]),
        *chain.from_iterable(_base64(encoded)),
        *chain.from_iterable(_base32(encoded)),
    )
    return tuple(dict.fromkeys(form for form in found if len(form) >= SHORTEST_SECRET))


def _with_other_quotes(escaped: str) -> Iterator[str]:
    yield escaped.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    yield escaped.replace("&#x27;", "&apos;")


def _for_a_shell(value: str) -> Iterator[str]:
    """Quote a value as shells do that print their variables, and programs that print commands."""
    yield re.sub(r"([^\w@%+=:,./\n-])", r"\\\1", value, flags=re.ASCII)
    yield re.sub(r'(["\\$`])', r"\\\1", value)
    yield value.replace("'", "'\\''")
    yield value.replace("'", "'\"'\"'")
    yield value.replace("\\", "\\\\").replace("'", "\\'")


def _lower_escapes(quoted: str) -> str:
    return re.sub(r"%[0-9A-F]{2}", lambda escape: escape.group().lower(), quoted)


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


def _each(shape: str, value: bytes) -> str:
    return "".join(map(shape.format, value))


def find_all(text: str, literals: Iterable[str]) -> Iterator[int]:
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
