"""Reads what encodings in a text stand for, so that a value that was encoded twice is found too.

Each alphabet is read once for each place at which a group may begin, and all escapes at once, over the whole text:
what is no digit counts as zero. So the time is in proportion to the text, whatever it holds.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import compress

from msgspec import Struct

_DIGITS_64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_DIGITS_32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_DIGITS_16 = b"0123456789ABCDEFabcdef"


def _table(digits: bytes, values: bytes, rest: bytes) -> bytes:
    """Give a table for `bytes.translate` that leaves nothing but values: for all other bytes `rest`."""
    return bytes(values[digits.index(byte)] if byte in digits else rest[0] for byte in range(256))


def _flags(digits: bytes) -> bytes:
    return _table(digits, b"\1" * len(digits), b"\0")


_IS_64, _IS_32, _IS_SMALL_32, _IS_16 = map(_flags, (_DIGITS_64, _DIGITS_32, _DIGITS_32.lower(), _DIGITS_16))
_AS_64 = _table(_DIGITS_64, _DIGITS_64[:64] + b"+/", b"A")
_AS_32 = _table(_DIGITS_32 + _DIGITS_32.lower(), b"0123456789abcdefghijklmnopqrstuv" * 2, b"0")
_AS_16 = _table(_DIGITS_16, _DIGITS_16, b"0")

_RUN = 16
"""Digits side by side that are read at least: fewer hold no value that was encoded twice."""

_FILLER = b"\xff"
"""A byte of no text that fills the places of an escape behind its character."""

_BETWEEN = (b"\0", b"\r", b"\n")
_DROPPED = b"".join((*_BETWEEN, _FILLER))
"""What is taken out of what was decoded: fillers, line breaks, and every second byte of UTF-16."""

_KEEPS = bytes(byte not in _DROPPED for byte in range(256))
_KEEPS_BYTES = bytes(bytes([byte]) not in _BETWEEN for byte in range(256))


class DecodedText(Struct, frozen=True):
    """A text as it reads when it is decoded: digits of so many `bits`, the first of them after `offset` bits."""

    read: bytes
    bits: int = 8
    offset: int = 0

    @property
    def text(self) -> bytes:
        """The decoded text without what stands between its characters."""
        if self.bits == 8 or self.read.count(b"\0") * 8 > len(self.read):
            return self.read.translate(None, _DROPPED if self.bits == 8 else b"".join(_BETWEEN))
        text = self.read
        for byte in _BETWEEN:  # faster where hardly anything is taken out
            text = text.replace(byte, b"")
        return text

    def kept(self) -> Sequence[int]:
        """Give the place in `read` of each byte of `text`."""
        return list(compress(range(len(self.read)), self.read.translate(_KEEPS if self.bits == 8 else _KEEPS_BYTES)))

    def source(self, first: int, last: int) -> tuple[int, int]:
        """Give begin and end of the characters from which two bytes of `read`, and those between, came."""
        if self.bits == 8:
            while self.read[last + 1 : last + 2] == _FILLER:
                last += 1
        return max((first * 8 - self.offset) // self.bits, 0), -((self.offset - (last + 1) * 8) // self.bits)


def layers(text: bytes, least: int) -> Iterator[DecodedText]:
    """Read a text in ASCII in each way in which something of at least so many bytes may be encoded in it."""
    if _has_run(text, _IS_64, least * 8 // 6):
        digits = text.translate(_AS_64)
        for skip in range(4):
            yield DecodedText(binascii.a2b_base64(digits[skip:] + b"A" * (-(len(digits) - skip) % 4)), 6, -6 * skip)
    if any(_has_run(text, flags, least * 8 // 5) for flags in (_IS_32, _IS_SMALL_32)):
        # As one number: what reads base32 in the library takes a step of Python for each group.
        number, size = int(text.translate(_AS_32), 32), len(text) * 5 // 8 + 2
        for shift in range(8):
            yield DecodedText((number >> shift).to_bytes(size, "big"), 5, size * 8 - len(text) * 5 + shift)
    if _has_run(text, _IS_16, least * 2):
        digits = text.translate(_AS_16)
        for skip in range(2):
            yield DecodedText(binascii.unhexlify(digits[skip : skip + (len(digits) - skip) // 2 * 2]), 4, -4 * skip)
    # `=` by itself: what follows it is the value of an option elsewhere.
    for marks, read in (((b"%", b"\\", b"&"), _unescaped), ((b"=",), _unquoted)):
        if any(mark in text for mark in marks) and (unescaped := read(text)) != text:
            yield DecodedText(unescaped)


def _has_run(text: bytes, flags: bytes, size: int) -> bool:
    """Whether so many digits stand side by side somewhere."""
    return b"\1" * max(size, _RUN) in text.translate(flags)


_ESCAPES = re.compile(
    rb"(?:%|\\\\?(?:x|u00|U000000))([0-9A-Fa-f]{2})|\\\\?u\{(?:00){0,2}([0-9A-Fa-f]{2})\}|&#[xX](?:00){0,2}([0-9A-Fa-f]{2});"
    rb"|\\\\?([0-3][0-7]{2})|&#0{0,2}(1?[0-9]{2});|&(amp|lt|gt|quot|apos);|\\([\\\"'/nr])"
)
_LINE_BREAKS = bytes.maketrans(b"nr", _FILLER * 2)
_QUOTED = re.compile(rb"=([0-9A-F]{2})")
_NAMED = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}


def _unescaped(text: bytes) -> bytes:
    """Read escapes, each in the place of its first byte and with fillers behind it."""
    return _ESCAPES.sub(_character, text)


def _character(found: re.Match[bytes]) -> bytes:
    digits = found[1] or found[2] or found[3]
    if digits or found[4] or found[5]:
        read = bytes([int(digits, 16) if digits else int(found[4], 8) if found[4] else int(found[5])])
    else:
        read = (found[7] or _NAMED[found[6]]).translate(_LINE_BREAKS)
    return read + _FILLER * (len(found[0]) - 1)


def _unquoted(text: bytes) -> bytes:
    return _QUOTED.sub(lambda found: bytes([int(found[1], 16)]) + _FILLER * 2, text)


_Encode = Callable[[bytes], bytes]
_Z85 = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)


def in_base85(data: bytes) -> Iterator[str]:
    """Give what of some bytes is the same in base85 wherever they stand: the groups of four that they fill."""
    encoders: tuple[_Encode, ...] = (
        base64.b85encode,
        base64.a85encode,
        lambda whole: base64.b85encode(whole).translate(_Z85),
    )
    for skip in range(4):
        whole = data[skip:][: (len(data) - skip) // 4 * 4]
        if len(whole) >= 8:
            yield from (encode(whole).decode() for encode in encoders)
