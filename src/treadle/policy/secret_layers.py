"""Reads what encodings in a text stand for, so that a value that was encoded twice is found too.

Takes time in proportion to the text: each run of an alphabet is decoded once for each place at which a group may begin.
"""

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from msgspec import Struct

_RUN = 16
"""Digits that a run has at least which is decoded."""

_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{_RUN},}}={{0,2}}")
_BASE32 = re.compile(rf"[A-Z2-7]{{{_RUN},}}|[a-z2-7]{{{_RUN},}}")
_HEX = re.compile(rf"[0-9A-Fa-f]{{{_RUN},}}")
_ESCAPE = re.compile(
    r"(?:%|\\{1,2}x)([0-9A-Fa-f]{2})|\\{1,2}u([0-9A-Fa-f]{4})|\\{1,2}u\{([0-9A-Fa-f]{1,6})\}"
    r"|\\{1,2}U([0-9A-Fa-f]{8})|\\{1,2}([0-3][0-7]{2})|&(?:\#[xX][0-9A-Fa-f]{1,6}|\#[0-9]{1,7}|amp|lt|gt|quot|apos);"
)
_QUOTED = re.compile(r"=([0-9A-F]{2})")
"""Quoted-printable, which is read by itself: what follows `=` is the value of an option elsewhere."""

_BLANK = re.compile(r"\s")
_PRINTED = re.compile(r"[\x20-\x7e]{6,}")
_URL_SAFE = str.maketrans("-_", "+/")
_DIGITS_32 = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghijklmnopqrstuv")


class DecodedRun(Struct, frozen=True):
    """What a part of a text, from `start` to `end`, reads as when it is decoded."""

    start: int
    end: int
    text: str


def layers(text: str) -> Iterator[DecodedRun]:
    """Give everything in a text that decodes to something printable."""
    for runs, decoded in ((_BASE64, _from_base64), (_BASE32, _from_base32), (_HEX, _from_hex)):
        for run in runs.finditer(text):
            if read := "\n".join(filter(None, map(_printed, decoded(run[0])))):
                yield DecodedRun(run.start(), run.end(), read)
    yield from _unescaped(text, _ESCAPE)
    yield from _unescaped(text, _QUOTED)


def _printed(data: bytes) -> str:
    """Keep what of some bytes is text, in UTF-16 too; of a picture hardly anything is."""
    return "\n".join(_PRINTED.findall(data.replace(b"\0", b"").decode("latin-1")))


def _from_base64(run: str) -> Iterator[bytes]:
    digits = run.rstrip("=").translate(_URL_SAFE)
    for skip in range(4):
        whole = len(digits) - skip
        # Of a last group that is not full, two or three digits say something.
        padded = digits[skip:] + "=" * (-whole % 4) if whole % 4 != 1 else digits[skip:-1]
        with suppress(binascii.Error):
            yield base64.b64decode(padded)


def _from_base32(run: str) -> Iterator[bytes]:
    # As one number: what reads base32 in the library takes a step of Python for each group.
    number = int(run.upper().translate(_DIGITS_32), 32)
    for spare in range(8):
        yield (number >> spare).to_bytes(len(run) * 5 // 8 + 1, "big")


def _from_hex(run: str) -> Iterator[bytes]:
    for skip in range(2):
        yield bytes.fromhex(run[skip : skip + (len(run) - skip) // 2 * 2])


def _unescaped(text: str, escapes: re.Pattern[str]) -> Iterator[DecodedRun]:
    """Read words in which some or all characters are written as numbers."""
    end = 0
    for escape in escapes.finditer(text):
        if escape.start() < end:
            continue
        start = max(end, *(text.rfind(blank, end, escape.start()) + 1 for blank in " \n\t"))
        blank = _BLANK.search(text, escape.end())
        end = blank.start() if blank else len(text)
        yield DecodedRun(start, end, escapes.sub(_character, text[start:end]))


def _character(escape: re.Match[str]) -> str:
    if escape[0].startswith("&"):
        return html.unescape(escape[0])
    digits = next(filter(None, escape.groups()))
    code = int(digits, 8 if escape[0].lstrip("\\") == digits else 16)
    return chr(code) if code <= 0x10FFFF else ""


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
