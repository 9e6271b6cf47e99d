"""Patterns of ignore files, read and matched as git does; time is bounded whatever the pattern says."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from treadle.protocol.patterns import regex

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \t",
    "cntrl": "\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \t\n\x0b\x0c\r",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_NAMED = regex(r"\[:([^\]]*):\]")
_ANY_DEPTH = regex(r"\*{2,}")
_ESCAPED = regex(r"\\(.)", re.DOTALL)
_NOTHING = "(?!)"
_END = regex(_NOTHING)


class _Pattern(Struct, frozen=True):
    """One line. `parts` match a path part by part (None: any number of parts), or, if `anywhere`, its last part.

    `line` is the place of the line among those that were given.
    """

    parts: tuple[re.Pattern[str] | None, ...]
    anywhere: bool
    directories_only: bool
    shows: bool
    line: int

    def matches(self, path: Sequence[str], *, is_directory: bool) -> bool:
        """Whether it is about this path, given in parts."""
        if self.directories_only and not is_directory:
            return False
        if self.anywhere:
            return self.parts[0] is not None and self.parts[0].fullmatch(path[-1]) is not None
        return _match_parts(self.parts, path)


class Patterns:
    """The patterns of one directory; a later one has the last word.

    With `any_case` what is to be hidden is, however it is spelled; what is to be shown is in its own spelling.
    """

    def __init__(self, lines: Iterable[str], *, any_case: bool = False) -> None:
        found = (_read(line, number, any_case=any_case) for number, line in enumerate(lines))
        self._patterns = tuple(pattern for pattern in found if pattern)[::-1]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def __len__(self) -> int:
        return len(self._patterns)

    def hides(self, path: Sequence[str], *, is_directory: bool) -> bool | None:
        """Whether a path (in parts, from the directory on) is hidden; None where no pattern is about it."""
        found = self.last_word(path, is_directory=is_directory)
        return None if found is None else found[1]

    def last_word(self, path: Sequence[str], *, is_directory: bool) -> tuple[int, bool] | None:
        """Give the place of the line that decides about a path, and whether it hides it; None where there is none."""
        for pattern in self._patterns:
            if pattern.matches(path, is_directory=is_directory):
                return pattern.line, not pattern.shows
        return None


def _read(line: str, number: int, *, any_case: bool) -> _Pattern | None:
    """Read one line; None for an empty one and a comment."""
    text = _without_trailing_blanks(line.removesuffix("\r"))
    shows = text.startswith("!")
    if text.startswith("#"):
        return None
    text = text[shows:]
    directories_only = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    anywhere = "/" not in text
    parts = _ESCAPED.sub(_keep_escaped, text.removeprefix("/")).split("/")
    deep = (not anywhere and _ANY_DEPTH.fullmatch(part) is not None for part in parts)
    flags = re.DOTALL | (re.IGNORECASE if any_case and not shows else 0)
    expressions = tuple(None if any_depth else _part(part, flags) for part, any_depth in zip(parts, deep, strict=True))
    return _Pattern(expressions, anywhere, directories_only, shows, number)


def _keep_escaped(found: re.Match[str]) -> str:
    """Leave a backslash where it is, but for one before a slash, which parts a path all the same."""
    return "/" if found[1] == "/" else found[0]


def _without_trailing_blanks(text: str) -> str:
    """Leave out the blanks at the end, but for one that follows a backslash."""
    stripped = text.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return f"{stripped} " if backslashes % 2 and stripped != text else stripped


def _match_parts(parts: Sequence[re.Pattern[str] | None], path: Sequence[str]) -> bool:
    """Match a whole path; behind the last part that stands for any number of them there must be at least one."""
    at = wanted = 0
    retry: tuple[int, int] | None = None
    while at < len(path):
        part = parts[wanted] if wanted < len(parts) else _END
        if part is None:
            if wanted + 1 == len(parts):
                return True
            retry = (at, wanted + 1)
            wanted += 1
        elif part.fullmatch(path[at]):
            at, wanted = at + 1, wanted + 1
        elif retry is not None:
            at, wanted = retry[0] + 1, retry[1]
            retry = (at, wanted)
        else:
            return False
    return wanted == len(parts)


def _part(glob: str, flags: int) -> re.Pattern[str]:
    """Turn the pattern of one part into an expression; each `*` takes as little as it can and never takes it back."""
    pieces = [""]
    at = 0
    while at < len(glob):
        character = glob[at]
        at += 1
        if character == "*":
            pieces.append("")
        elif character == "?":
            pieces[-1] += "[^/]"
        elif character == "\\":
            pieces[-1] += re.escape(glob[at]) if at < len(glob) else _NOTHING
            at += 1
        elif character == "[":
            found, at = _class(glob, at)
            pieces[-1] += found
        else:
            pieces[-1] += re.escape(character)
    first, *more = pieces
    if not more:
        return re.compile(first, flags)
    middle = "".join(f"(?>.*?{piece})" for piece in more[:-1] if piece)
    return re.compile(f"{first}{middle}.*{more[-1]}", flags)


def _class(glob: str, at: int) -> tuple[str, int]:
    """Read what stands between brackets, from behind the first one; unclosed, it matches nothing."""
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    inside, first = "", True
    while at < len(glob) and (first or glob[at] != "]"):
        first = False
        named = _NAMED.match(glob, at)
        if named is not None:
            if named[1] not in _CLASSES:
                return _NOTHING, len(glob)
            inside, at = inside + _CLASSES[named[1]], named.end()
            continue
        low, at = _member(glob, at)
        high = low
        if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in ("", "]"):
            high, at = _member(glob, at + 1)
        inside += re.escape(low) + (f"{re.escape(low)}-{re.escape(high)}" if low <= high else "")
    if at >= len(glob):
        return _NOTHING, at
    if not inside:
        return ("[^/]" if negated else _NOTHING), at + 1
    return (f"[^/{inside}]" if negated else f"(?!/)[{inside}]"), at + 1


def _member(glob: str, at: int) -> tuple[str, int]:
    if glob[at] == "\\" and at + 1 < len(glob):
        return glob[at + 1], at + 2
    return glob[at], at + 1
