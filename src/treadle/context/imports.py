"""The files that a rules file names with `@path` to be read along with it."""

from collections.abc import Iterator

from treadle.protocol.patterns import regex

_CODE = regex(r"`[^`]*`")
_IMPORT = regex(r"(?:^|(?<=\s))@((?:\\ |[^\s`\\])+)")
_MOST = 64
_LONGEST = 512


def import_paths(text: str) -> tuple[str, ...]:
    """Give the paths that a text imports, as they are written there, each once: `@docs/style.md`, but not in code.

    What looks like a path may be an address or a name: only a file that is there is one.
    """
    if "@" not in text:
        return ()
    matches = (match for line in _outside_code(text) if "@" in line for match in _IMPORT.finditer(line))
    found = (match[1].replace("\\ ", " ").rstrip(".,;:!?)\"'") for match in matches)
    return tuple(dict.fromkeys(path for path in found if path.strip() and len(path) <= _LONGEST))[:_MOST]


def _outside_code(text: str) -> Iterator[str]:
    """Give the lines without those of code blocks, and without what is between backticks in them."""
    fence = ""
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence and not line.strip().strip(fence[0]) else fence
        elif mark in ("```", "~~~"):
            fence = mark
        else:
            yield _CODE.sub("` ", line) if "`" in line else line  # `: no backslash before it escapes the blank
