"""Which encoding a file's bytes are in: marks first, then UTF-8, then a guess that prefers the likely."""

import codecs
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.workspace.files.text import size_of

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch

_SAMPLE = 64 * 1024
_NUL_SAMPLE = 8 * 1024
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""The longer ones first: that of UTF-32 begins as that of UTF-16 does."""

_DECLARATION = 1024
_DECLARED = re.compile(
    rb"coding[:=][ \t]*([-\w.]+)|<\?xml[^>]{0,200}encoding=[\"']([-\w.]+)|<meta[^>]{0,200}charset=[\"']?([-\w.]+)"
    rb"|\A@charset \"([-\w.]+)\"",
    re.IGNORECASE,
)
_CHARACTER_SETS = ("cp", "iso8859", "koi8", "mac", "gb", "big5", "euc", "shift", "johab", "tis", "ptcp", "kz")
_USUAL = ("cp1252", "gb18030")
"""What is shown where several encodings fit as well: the likelier ones first."""

_WIDE_SETS = ("gb18030", "cp932", "cp949", "big5hkscs", "euc_jp")
_NARROW_SETS = ("cp1252", "cp437", "cp1250", "cp1251", "mac_roman", "koi8_r")
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_TYPOGRAPHY = re.compile(
    rb"(?<![^\s(\[{=:/>-])[\x91\x93](?=\S)|(?<=\S)\x94(?![A-Za-z0-9])|(?<=\S)\x92(?![A-Z])|(?<=[\s\d])[\x96\x97](?=[\s\d])"
    rb"|(?<=[A-Za-z])\x97(?=[A-Za-z])|(?<=[a-z.,])\x85(?=\s|\Z)|\x80(?=\s?\d)|(?<=\d)\x80|(?<=\d )\x80"
)
"""Quotes, dashes, the euro and the like of cp1252 where these stand; elsewhere these bytes are letters."""
_WITHIN_WORDS = re.compile(rb"[A-Za-z][\x82\x84\x87\x89\x8b\x93-\x95\x99\x9b][a-z]")
"""Signs of cp1252 that stand in no word."""

_PROOF = {2: 1, 3: 3, 4: 6}
"""How much a character of so many bytes proves that a text is UTF-8: others hardly have such bytes by chance."""
_SURE = 4
_LANGUAGE = 0.2
"""From which coherence on the words of a language were recognised."""
_ENOUGH = 8
"""How many bytes beyond ASCII tell an encoding without words, where no other one fits."""
_MESS = 0.1


class Encoding(Struct, frozen=True, kw_only=True):
    """How a file's bytes become text: its byte order mark, the encoding, and the others that they may be in as well.

    `broken` is UTF-8 with some bytes that are none; they stand as halves of characters.
    """

    name: str = "utf-8"
    mark: bytes = b""
    broken: bool = False
    others: tuple[str, ...] = ()

    @property
    def errors(self) -> str:
        """What Python's codecs do with the bytes that are no text."""
        return "surrogateescape" if self.broken else "strict"

    def unsure(self, character: str) -> bool:
        """Whether the encodings that the file may be in write a character as different bytes."""
        return len({written for name in (self.name, *self.others) if (written := _written(character, name))}) > 1


def _written(character: str, encoding: str) -> bytes:
    try:
        return character.encode(encoding)
    except UnicodeEncodeError:
        return b""


def detect(raw: bytes, shown: str) -> Encoding:
    """Find the byte order mark and the encoding from (the beginning of) a file's bytes.

    Raises `ToolError`, naming the file `shown`, when they are not text.
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return Encoding(mark=mark, name=encoding)
    if b"\0" in raw[:_NUL_SAMPLE]:
        if wide := _wide(raw):
            return Encoding(name=wide)
        raise binary(shown)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        if declared := _declared(raw):
            return Encoding(name=declared)
        return _mostly_utf8(raw[:_SAMPLE]) or _guess(raw[:_SAMPLE], shown)
    return Encoding()


def _declared(raw: bytes) -> str:
    """The encoding that the first lines declare, for Python, editors, XML, HTML or CSS; empty where it does not fit."""
    found = _DECLARED.search(b"\n".join(raw[:_DECLARATION].split(b"\n", 5)[:5]))
    if found is None:
        return ""
    try:
        name = codecs.lookup(next(filter(None, found.groups())).decode()).name
        return name if name.startswith(_CHARACTER_SETS) and raw.decode(name).encode(name) == raw else ""
    except (LookupError, UnicodeError):
        return ""


def _mostly_utf8(sample: bytes) -> Encoding | None:
    """Tell UTF-8 with some bytes that are none: there are no more of them than the others prove."""
    text = sample.decode(errors="surrogateescape")
    bad = sum("\udc80" <= character <= "\udcff" for character in text)
    proof = sum(_PROOF[size_of(character)] for character in text if character > "\x7f" and not _is_half(character))
    if bad > proof:
        return None
    others = () if proof >= _SURE * bad else tuple(name for name in _WIDE_SETS if _fits(sample, name))
    return Encoding(broken=True, others=others)


def _is_half(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _fits(sample: bytes, encoding: str) -> bool:
    try:
        sample.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def binary(shown: str) -> ToolError:
    """Say that a file is no text."""
    return ToolError(
        f"{shown} is a binary file, not text. Use a command such as `file` or `xxd`, or a program made for its format."
    )


def _wide(raw: bytes) -> str:
    """Tell UTF-16 without a mark, by its zeros: nearly every second byte is one, and no other byte."""
    even, odd = raw[:_NUL_SAMPLE:2], raw[1:_NUL_SAMPLE:2]
    for encoding, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros.count(0) * 10 >= len(zeros) * 9 and 0 not in others and _mostly_text(others):
            return encoding
    return ""


def _guess(sample: bytes, shown: str) -> Encoding:
    # Loaded here: it costs 34 ms, and nearly every file is UTF-8.
    from charset_normalizer import from_bytes

    found = list(from_bytes(sample))
    if not found and not _mostly_text(sample):
        raise ToolError(
            f"{shown} is neither UTF-8 nor text in an encoding that can be recognised. Use `file` or `iconv` on it."
        )
    if not found:
        return Encoding(name="cp1252", others=tuple(name for name in _NARROW_SETS if _fits(sample, name)))
    best = found[0]
    sure = _is_sure(best, found[1:], sum(byte > 0x7F for byte in sample))
    likely = [match for match in found if match is best or (not sure and match.chaos <= best.chaos + _MESS)]
    names = list(dict.fromkeys(name for match in likely for name in (match.encoding, *match.could_be_from_charset)))
    if not sure:
        names += [name for name in _NARROW_SETS if name not in names and _fits(sample, name)]
    as_good = [m for m in found if m.chaos <= best.chaos and m.coherence >= best.coherence]
    equal = {name for match in as_good for name in (match.encoding, *match.could_be_from_charset)}
    name = next((name for name in _USUAL if name in equal), best.encoding)
    if not sure and _fits(sample, "cp1252") and not _BEYOND_ASCII.search(_TYPOGRAPHY.sub(b"", sample)):
        name = "cp1252"
    elif not sure and name == "cp1252" and _WITHIN_WORDS.search(sample):
        name = next((other for other in _NARROW_SETS if other != name and _fits(sample, other)), name)
    if name.startswith("utf"):
        name = next((other for other in names if not other.startswith("utf")), "cp1252")
    return Encoding(name=name, others=tuple(other for other in names if other != name and not other.startswith("utf")))


def _is_sure(best: "CharsetMatch", others: "Sequence[CharsetMatch]", count: int) -> bool:
    """Whether no other encoding fits as well: by the words of a language, or by much that fits no other."""
    rivals = [match for match in others if match.chaos < best.chaos + _MESS / 2]
    if best.coherence >= _LANGUAGE:
        return all(match.coherence * 2 < best.coherence for match in rivals)
    return count >= _ENOUGH and all(match.chaos >= best.chaos + _MESS for match in others)


def _mostly_text(sample: bytes) -> bool:
    odd = sum(byte < 0x09 or 0x0D < byte < 0x20 or byte == 0x7F for byte in sample)
    return odd * 50 < len(sample)
