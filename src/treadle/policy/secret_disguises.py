"""Known values in a text: as they are, as tools encode them, in other letters, spread out, and in dumps of bytes."""

import base64
import html
import json
import re
import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from urllib.parse import quote, quote_plus

from msgspec import Struct

from treadle.policy.form_search import Forms, forms_of, in_bytes
from treadle.policy.secret_layers import in_base85, layers
from treadle.protocol.base import SHORTEST_SECRET

Span = tuple[int, int, str]
"""Begin and end of what is to be hidden, and the name that is shown instead."""

Values = tuple[tuple[str, str], ...]
"""Texts to hide, with their names."""

_LONG = 15
"""Characters without a blank that every recognised key has at least, but for what is given to a name."""

_PREFIX = 64
"""Characters of a value's beginning by which one is recognised that goes on in the next chunk."""

_WORD = re.compile(rf"\S{{{_LONG},}}")
_DIGITS = string.ascii_letters + string.digits + "+/-_"
_REST = 16
"""Digits around an encoded value that may be the rest of something else."""

_BREAK = re.compile(r"\n(?<=[^ \n]{16}\n)")
"""A line break that may stand inside a long word, as in base64."""


def forms(value: str) -> Iterator[str]:
    """Give a value as tools print it: as it is, in JSON, URLs and HTML, for a shell, as bytes, base64 and base32."""
    data = value.encode(errors="surrogatepass")
    quoted, plain = json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]
    yield from (value, quoted, plain, json.dumps(quoted)[1:-1], json.dumps(plain)[1:-1], quoted.replace("/", "\\/"))
    url, page = quote(data, safe=""), html.escape(value)
    yield from (url, quote(data), quote_plus(data), re.sub(r"%..", lambda escape: escape[0].lower(), url))
    yield from (page, html.escape(value, quote=False), page.replace("&#x27;", "&apos;"))
    yield page.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    # As shells print their variables, and programs commands.
    yield re.sub(r"([^\w@%+=:,./\n-])", r"\\\1", value, flags=re.ASCII)
    yield re.sub(r'(["\\$`])', r"\\\1", value)
    yield from (value.replace("'", "'\\''"), value.replace("'", "'\"'\"'"))
    yield value.replace("\\", "\\\\").replace("'", "\\'")
    yield from (data.hex(), data.hex().upper(), "\\x00".join(value))
    yield from ("".join(map(byte.format, data)) for byte in ("%{:02x}", "%{:02X}", "\\x{:02x}", "\\{:03o}"))
    # A value may begin at each of three places in base64, and of five in base32; the digits it shares are left out.
    for before in range(5):
        for encode, bits in ((base64.b64encode, 6), (base64.urlsafe_b64encode, 6), (base64.b32encode, 5)):
            first, last = (before * 8 + bits - 1) // bits, (before + len(data)) * 8 // bits
            digits = encode(bytes(before) + data + bytes(4)).decode()[first:last]
            yield from (digits, digits.lower()) if bits == 5 else (digits,)
    for inner in (data, base64.b64encode(data), data.hex().encode(), data.hex().upper().encode(), url.encode()):
        yield from in_base85(inner)


def _forms_within(value: str) -> Iterator[str]:
    """Give a value as it may stand inside of another encoding, which takes zeros and line breaks out by itself."""
    data = value.encode(errors="surrogatepass")
    for form in ("\\u{:04x}", "\\u{{{:x}}}", "\\u{{{:04x}}}", "\\U{:08x}", "&#{};", "&#x{:x};"):
        yield "".join(form.format(ord(char)) for char in value)
    yield "".join(map("={:02X}".format, data))
    wide = value.encode("utf-16-le", errors="surrogatepass")
    yield from (wide.hex()[:-2], wide.hex().upper()[:-2])
    for before in range(3):
        first, last = (before * 8 + 5) // 6, (before + len(wide) - 1) * 8 // 6
        yield from (
            encode(bytes(before) + wide + bytes(4)).decode()[first:last]
            for encode in (base64.b64encode, base64.urlsafe_b64encode)
        )


@lru_cache(maxsize=8)
def _forms_of(values: Values) -> Forms:
    """Prepare to look for all forms of all known values, as they are and inside of other encodings."""
    every = {form: name for value, name in values for form in _forms_within(value)}
    for form, name in ((form, name) for value, name in reversed(values) for form in forms(value)):
        every.update({spelled: name for spelled in (form, form.replace("\n", "")) if len(form) >= SHORTEST_SECRET})
    return forms_of(every)


@lru_cache(maxsize=8)
def _beginnings(values: Values) -> tuple[frozenset[str], int]:
    """Give how each form may begin, and how long the longest is."""
    every = _forms_of(values).names
    found = (form[:size] for form in every for size in range(1, min(len(form), _PREFIX + 1)))
    return frozenset(found), max(map(len, every), default=0)


def find_all(text: str, literal: str) -> Iterator[int]:
    """Give every place where a literal stands."""
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + len(literal))


def long_words(text: str) -> str:
    """Give the words of a text in which a key may stand: most of a text is short words, and need not be searched."""
    return "\n".join({word for word in text.split() if len(word) >= _LONG})


def known(text: str, words: str, values: Values) -> Iterator[Span]:
    """Find known values, encoded too, also where lines break inside of long words; `words` are those of the text."""
    if not values:
        return
    names, spelled_out = _forms_of(values).names, {value for value, _ in values}
    joined, joints = _joined(text)
    searched = long_words(joined) if joints else words
    for needle in _forms_of(values).candidates(in_bytes(joined)):
        for at in find_all(joined, needle):
            start, last = (place + bisect_right(joints, place) for place in (at, at + len(needle) - 1))
            if needle not in spelled_out or not _is_part_of_word(text, start, last + 1):
                yield start, last + 1, names[needle]
    for hit in _encoded_again(joined, searched, values):
        start, last = (place + bisect_right(joints, place) for place in (hit.start, hit.end - 1))
        yield (*(_with_rest(text, start, last + 1) if hit.in_digits else (start, last + 1)), hit.name)


class _Hit(Struct, frozen=True, order=True):
    """Where a known value stands that was encoded again, in digits or in characters that are written as numbers."""

    start: int
    end: int
    name: str
    in_digits: bool


def _encoded_again(text: str, words: str, values: Values) -> Iterator[_Hit]:
    """Find known values in what encodings stand for: encoded twice, or written as numbers in part.

    Each long word is read once, and what it holds is found wherever the word stands, in one pass.
    """
    forms = _forms_of(values)
    hits: list[_Hit] = []
    for layer in layers(words.encode("ascii", "replace").replace(b"\n", b" "), forms.least):
        kept: Sequence[int] = ()
        for at, end, name in forms.places(layer.text):
            kept = kept or layer.kept()
            hits.append(_Hit(*layer.source(kept[at], kept[end - 1]), name, layer.bits < 8))
    if not hits:
        return
    begins = [0, *(place + 1 for place in find_all(words, "\n")), len(words) + 1]
    found: dict[str, list[_Hit]] = {}
    for line, within in groupby(sorted(hits), lambda hit: bisect_right(begins, hit.start) - 1):
        begin, end = begins[line], begins[line + 1] - 1
        found[words[begin:end]] = [
            _Hit(hit.start - begin, min(hit.end, end) - begin, hit.name, hit.in_digits) for hit in within
        ]
    for word in _WORD.finditer(text):
        at = word.start()
        yield from (_Hit(at + hit.start, at + hit.end, hit.name, hit.in_digits) for hit in found.get(word[0], ()))


def _with_rest(text: str, start: int, end: int) -> tuple[int, int]:
    """Take what is left of the digits around an encoded value, where that is too short to be anything by itself."""
    before, behind = text[max(start - _REST, 0) : start], text[end : end + _REST]
    first, last = len(before) - len(before.rstrip(_DIGITS)), len(behind) - len(behind.lstrip(_DIGITS))
    start -= first if first < _REST else 0
    end += last if last < _REST else 0
    return start, end + len(text[end : end + _REST]) - len(text[end : end + _REST].lstrip("="))


def open_end(text: str, values: Values) -> int:
    """Give the place behind which a known value may have begun that goes on after the text."""
    beginnings, longest = _beginnings(values)
    tail = text[-2 * longest :]
    joined, joints = _joined(tail)
    for start in range(max(0, len(joined) - longest + 1), len(joined)):
        if joined[start : start + _PREFIX] in beginnings:
            return len(text) - len(tail) + start + bisect_right(joints, start)
    return len(text)


def _joined(text: str) -> tuple[str, list[int]]:
    """Take out the line breaks that may stand inside a long word; gives the places of those that are gone."""
    joints = [found.start() - gone for gone, found in enumerate(_BREAK.finditer(text))]
    return (_BREAK.sub("", text), joints) if joints else (text, joints)


def _is_part_of_word(text: str, start: int, end: int) -> bool:
    """Whether a place holds what looks like a word of a language inside of another, such as `postgres`."""
    word = text[start:end]
    is_word = len(word) < _LONG and word.isalpha() and (word[1:].islower() or word.isupper())
    return is_word and (text[start - 1 : start].isalpha() or text[end : end + 1].isalpha())


_LEAST = 12
"""Letters and digits that a value has at least which is looked for when nothing else of it is left."""

_MOST = 256 * 1024
"""Characters of a text that is looked through so: several times what the result of one call may hold."""

_DROPPED = dict.fromkeys(code for code in range(128) if not chr(code).isalnum())
_KEPT = re.compile(r"[0-9A-Za-z]")
_OFFSET = re.compile(r"^[ \t]*[0-9A-Fa-f]{6,16}:?(?=[ \t])", re.MULTILINE)
_DUMPED = re.compile(
    r"^(?:[0-9A-Fa-f]{6,8}: ((?:[0-9A-Fa-f]+ )+) |[0-9A-Fa-f]{6,8}[ \t]+)?([^>|\n]*)([>|][^\n]*)?$", re.MULTILINE
)
"""A line of a dump: an offset, groups of digits, and perhaps the same as text."""


def disguised(text: str, values: Values) -> Iterator[Span]:
    """Find known values that are not spelled as they are; of dumps the whole lines. Not in a very long text."""
    if not values or len(text) > _MOST:
        return
    plain = text.encode("ascii", "replace").decode()
    spread = _OFFSET.sub(lambda found: " " * len(found[0]), plain)
    yield from _found(spread, _bones(spread), _skeletons(values))
    dumped = _DUMPED.sub(_digits, plain)
    bones = _bones(dumped)
    if not _numbers(values)[1].search(bones):
        return
    for start, end, name in _found(dumped, bones, _forms_of_numbers(values)):
        first, last = plain.rfind("\n", 0, start) + 1, (plain + "\n").find("\n", end)
        is_dump = dumped[first:last] != plain[first:last] or plain[first].isspace()
        yield (first, last, name) if is_dump else (start, end, name)


def _digits(line: re.Match[str]) -> str:
    """Keep the groups of digits of a line, where they stand."""
    group = 1 if line[1] else 2
    return " " * (line.start(group) - line.start()) + line[group] + " " * (line.end() - line.end(group))


@lru_cache(maxsize=8)
def _skeletons(values: Values) -> Forms:
    """Prepare to look for the letters and digits of all values."""
    return forms_of(_named((_skeleton(value), name) for value, name in values))


@lru_cache(maxsize=8)
def _numbers(values: Values) -> tuple[Mapping[str, str], re.Pattern[str]]:
    """Give the bytes of all values as numbers, and what every text has that holds one: most have no so many digits."""
    named = _named((form, name) for value, name in values for form in _in_numbers(value))
    return named, re.compile(rf"[0-9a-fx]{{{min(map(len, named))}}}")


@lru_cache(maxsize=8)
def _forms_of_numbers(values: Values) -> Forms:
    """Prepare to look for the bytes of all values as numbers."""
    return forms_of(_numbers(values)[0])


def _named(forms: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Give texts with their names; of two that are the same the first gives it."""
    named: dict[str, str] = {}
    for form, name in forms:
        if form:
            named.setdefault(form, name)
    return named


def _skeleton(value: str) -> str:
    """Give the letters and digits of a value in small letters; empty where they are too few to tell it by."""
    found = value.encode("ascii", "ignore").decode().translate(_DROPPED).lower()
    is_telling = len(found) >= _LEAST and not found.isdigit() and (value != value.lower() or not found.isalpha())
    return found if is_telling else ""


def _in_numbers(value: str) -> list[str]:
    """Write the bytes of a value as numbers, as dumps and lists do, wherever a number of several bytes begins in it."""
    data = value.encode(errors="replace")
    found = ["".join(map("0x{:02x}".format, data)), "".join(map(str, data))]
    for size in (1, 2, 4, 8):
        for skip in range(size):
            whole = data[skip:][: (len(data) - skip) // size * size] or data[skip % 4 :][:4]
            words = [int.from_bytes(whole[at : at + size], "little") for at in range(0, len(whole), size)]
            found.append("".join(f"{word:0{2 * min(size, len(whole))}x}" for word in words))
            if size < 8:
                found.append("".join(f"{word:0{(8 * size + 2) // 3}o}" for word in words))
    return found


def _bones(text: str) -> str:
    """Give the letters and digits of a text of ASCII, in small letters."""
    return text.translate(_DROPPED).lower()


def _found(text: str, bones: str, wanted: Forms) -> Iterator[Span]:
    """Find texts of letters and digits, whatever stands between their characters, in small letters or not."""
    places: list[int] = []
    for start, end, name in wanted.places(bones.encode("ascii")):
        places = places or [found.start() for found in _KEPT.finditer(text)]
        yield places[start], places[end - 1] + 1, name
