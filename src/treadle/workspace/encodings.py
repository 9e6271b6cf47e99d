"""Which encoding a file's bytes are in: marks first, then UTF-8, then a guess that prefers the likely."""

import codecs

from treadle.protocol.errors import ToolError

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


def detect(raw: bytes, shown: str) -> tuple[bytes, str]:
    """Find the byte order mark and the encoding from (the beginning of) a file's bytes.

    Raises `ToolError`, naming the file `shown`, when they are not text.
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return mark, encoding
    if b"\0" in raw[:_NUL_SAMPLE]:
        if wide := _wide(raw):
            return b"", wide
        raise binary(shown)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        return b"", _guess(raw[:_SAMPLE], shown)
    return b"", "utf-8"


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


def _guess(sample: bytes, shown: str) -> str:
    # Loaded here: it costs 34 ms, and nearly every file is UTF-8.
    from charset_normalizer import from_bytes

    found = [match for match in from_bytes(sample) if not match.encoding.startswith("utf_")]
    if not found and not _mostly_text(sample):
        raise ToolError(
            f"{shown} is neither UTF-8 nor text in an encoding that can be recognised. Use `file` or `iconv` on it."
        )
    for match in found:
        as_good = match.chaos <= found[0].chaos and match.coherence >= found[0].coherence
        if as_good and "cp1252" in (match.encoding, *match.could_be_from_charset):
            return "cp1252"
    return found[0].encoding if found else "cp1252"


def _mostly_text(sample: bytes) -> bool:
    odd = sum(byte < 0x09 or 0x0D < byte < 0x20 or byte == 0x7F for byte in sample)
    return odd * 50 < len(sample)
