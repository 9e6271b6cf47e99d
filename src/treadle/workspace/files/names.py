"""Names of any bytes as text: what is shown of a name is valid, unlike any other, and finds the same file again."""

import hashlib
import os
import re
from pathlib import Path, PurePosixPath

from treadle.protocol.patterns import regex

_NOT_SHOWN = (
    "\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f"
)
_SPECIAL = regex(rf"[{_NOT_SHOWN}]|\A | \Z|\A~\Z")
_SPECIAL_OR_BACKSLASH = regex(rf"{_SPECIAL.pattern}|\\")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
_ESCAPE = regex(rb"\\(?:([\\nrt])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_MEANT = {b"\\": b"\\", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def shown_name(path: str) -> str:
    """Show a name or a path on one line: what cannot be seen as itself, or is no UTF-8, as escapes such as `\\xe9`.

    Only in such a name, and in one that could be taken for one, is a backslash doubled.
    """
    if path.isprintable() and "\\" not in path and " " not in path and "~" not in path:
        return path  # nearly always, and many times as fast
    return "/".join(map(_shown_part, path.split("/")))


def clipped_path(path: str, most: int = 300) -> str:
    """Leave out the middle of a path that has more than so many characters."""
    half = most // 2
    return path if len(path) <= most else f"{path[:half]}[...]{path[-half:]}"


def _shown_part(part: str) -> str:
    if not _SPECIAL.search(part) and _meant(part) == part:
        return part
    return _SPECIAL_OR_BACKSLASH.sub(lambda found: _escape(found[0]), part)


def _escape(character: str) -> str:
    if short := _SHORT.get(character):
        return short
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # a byte that is no UTF-8, as `os.fsdecode` gives it
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def existing_path(base: str, path: str) -> str:
    """Give the path below `base` (or from `/`, if it begins so) that a shown path means; looks at the disk.

    Each part means what its escapes say where there is something of that name, else exactly what it says. Raises
    `UnicodeEncodeError` for half a character.
    """
    parts = PurePosixPath(path).parts
    found = PurePosixPath(base)
    for part in parts:
        meant = _meant(part)
        found /= meant if meant != part and os.path.lexists(found / meant) else part
    return str(found)


def logged_path(path: str) -> str:
    """Give the path that a path from the log means; looks at the disk."""
    return path if "\\" not in path or os.path.lexists(path) else existing_path("/", path)


def _meant(part: str) -> str:
    return part if "\\" not in part else os.fsdecode(_ESCAPE.sub(_bytes_meant, os.fsencode(part)))


def _bytes_meant(found: re.Match[bytes]) -> bytes:
    short, byte, *code = found.groups()
    if short:
        return _MEANT[short]
    if byte:
        meant = bytes([int(byte, 16)])
    else:
        number = int(code[0] or code[1], 16)
        meant = b"/" if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF else chr(number).encode()
    return found[0] if meant in (b"/", b"\0") else meant  # no name holds these


def hash_of_file(path: str) -> str:
    """Hash a file's bytes (SHA-256, hex) by the path that the log has for it; empty where there is no file."""
    try:
        with Path(logged_path(path)).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
