"""Expressions in the syntax of ripgrep, written in that of Python for `scan.py`; an error where Python cannot."""

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "word": "0-9A-Z_a-z",
    "xdigit": "0-9A-Fa-f",
}
_CATEGORIES = {
    **dict.fromkeys(("l", "letter"), "L"),
    **dict.fromkeys(("lu", "uppercaseletter"), "Lu"),
    **dict.fromkeys(("ll", "lowercaseletter"), "Ll"),
    **dict.fromkeys(("lt", "titlecaseletter"), "Lt"),
    **dict.fromkeys(("lm", "modifierletter"), "Lm"),
    **dict.fromkeys(("lo", "otherletter"), "Lo"),
    **dict.fromkeys(("m", "mark"), "M"),
    **dict.fromkeys(("n", "number"), "N"),
    **dict.fromkeys(("nd", "decimalnumber", "digit"), "Nd"),
    **dict.fromkeys(("nl", "letternumber"), "Nl"),
    **dict.fromkeys(("no", "othernumber"), "No"),
    **dict.fromkeys(("p", "punctuation", "punct"), "P"),
    **dict.fromkeys(("s", "symbol"), "S"),
    **dict.fromkeys(("sc", "currencysymbol"), "Sc"),
    **dict.fromkeys(("sm", "mathsymbol"), "Sm"),
    **dict.fromkeys(("z", "separator"), "Z"),
    **dict.fromkeys(("zs", "spaceseparator"), "Zs"),
    **dict.fromkeys(("cc", "control", "cntrl"), "Cc"),
    **dict.fromkeys(("any", "ascii"), ""),
}
"""The classes of characters that Python knows, by their names in small letters without signs between words."""

_PROPERTY = regex(r"\\(?P<sign>[pP])(?:\{(?P<not>\^?)(?P<name>[^}]*)\}|(?P<letter>[A-Za-z]))")
_CODE = regex(r"\\[xuU]\{([0-9A-Fa-f]{1,8})\}")
_NAMED = regex(r"\\(?:k[<{']|g\{)(?P<name>\w+)[>}']")
_BOUND = regex(r"\\b\{(start|end|start-half|end-half)\}|\\[<>]")
_BOUNDS = {
    **dict.fromkeys(("\\b{start}", r"\<"), r"\b(?=\w)"),
    **dict.fromkeys(("\\b{end}", r"\>"), r"\b(?<=\w)"),
    r"\b{start-half}": r"(?<!\w)",
    r"\b{end-half}": r"(?!\w)",
}
_KNOWN = frozenset("aAbBdDfnrsStuUvwWxZ")
"""Letters that mean the same behind a backslash in both."""
_OTHERS = {"z": r"\Z", "e": r"\x1b", "h": r"[\t ]"}
_FLAGS = regex(r"\(\?(?P<flags>[A-Za-z]*(?:-[A-Za-z]+)?)(?P<end>[:)])")
_POSIX_CLASS = regex(r"\[:(?P<not>\^?)(?P<name>\w+):\]")
_NESTED = regex(r"\[\^?\]?(?:\\.|[^\]\\])*\](?:\\.|[^\[\]\\])*\]")
_SET_SIGNS = ("&&", "--", "~~")
_LONGEST = 100_000


def in_python(expression: str) -> str:
    """Write an expression as Python understands it. Raises `ToolError` for what needs ripgrep."""
    written = _Translation(expression).whole()
    if len(written) > _LONGEST:
        raise _needs_ripgrep("an expression with so many classes of characters")
    return written


def _needs_ripgrep(what: str) -> ToolError:
    return ToolError(f"The search failed: {what} cannot be searched for without ripgrep. Write it in another way.")


class _Translation:
    """Goes through an expression once. `_scopes` counts, per group, the flags that hold up to its end."""

    def __init__(self, expression: str) -> None:
        self._text = expression
        self._at = 0
        self._scopes: list[list[str]] = [[]]

    def whole(self) -> str:
        written = []
        while self._at < len(self._text):
            written.append(self._next())
        return "".join(written) + ")" * len(self._scopes[-1])

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _next(self) -> str:
        match self._text[self._at]:
            case "\\":
                return self._escape(in_class=False)
            case "[":
                return self._class()
            case "(":
                return self._open()
            case ")" | "|" as sign:
                self._at += 1
                flags = self._scopes[-1]
                if sign == "|":
                    return f"{')' * len(flags)}|{''.join(flags)}"
                if len(self._scopes) > 1:
                    self._scopes.pop()
                return f"{')' * len(flags)})"
            case sign:
                self._at += 1
                return sign

    def _open(self) -> str:
        """Begin a group; flags that are set within one hold up to its end, which Python has only for groups."""
        found = self._take(_FLAGS)
        if found is None:
            self._scopes.append([])
            is_name = re.compile(r"\(\?<(?![=!])").match(self._text, self._at) is not None
            self._at += 3 if is_name else 1
            return "(?P<" if is_name else "("
        flags = found["flags"].replace("u", "", 1) if "-" not in found["flags"] else found["flags"]
        if odd := set(flags) - set("ims-"):
            raise _needs_ripgrep(f"(?{found['flags']}) with the flag {min(odd)}")
        begin = f"(?{flags}:"
        if found["end"] == ":":
            self._scopes.append([])
            return begin
        self._scopes[-1].append(begin)
        return begin

    def _escape(self, *, in_class: bool) -> str:
        """Write what begins with a backslash."""
        if found := self._take(_PROPERTY):
            negated = (found["sign"] == "P") is not bool(found["not"])
            inside = _characters(found[0], found["name"] or found["letter"], negated=negated)
            return inside if in_class else f"[{inside}]"
        if found := self._take(_CODE):
            if int(found[1], 16) > sys.maxunicode:
                raise _needs_ripgrep(found[0])
            return _code(int(found[1], 16))
        if not in_class and (found := self._take(_BOUND)):
            return _BOUNDS[found[0]]
        if not in_class and (found := self._take(_NAMED)):
            return f"(?:\\{found['name']})" if found["name"].isdecimal() else f"(?P={found['name']})"
        letter = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if letter in _OTHERS:
            return _OTHERS[letter].strip("[]") if in_class else _OTHERS[letter]
        if letter.isascii() and letter.isalpha() and letter not in _KNOWN:
            raise _needs_ripgrep(f"\\{letter}")
        return f"\\{letter}"

    def _class(self) -> str:
        """Write a class in brackets."""
        written = ["["]
        self._at += 1
        for first in ("^", "]"):
            if self._text.startswith(first, self._at):
                written.append(first if first == "^" else r"\]")
                self._at += 1
        while self._at < len(self._text) and self._text[self._at] != "]":
            written.append(self._in_class())
        closing = self._text[self._at : self._at + 1]
        self._at += 1
        return "".join(written) + closing

    def _in_class(self) -> str:
        if self._text[self._at] == "\\":
            return self._escape(in_class=True)
        if found := self._take(_POSIX_CLASS):
            if found["name"] not in _POSIX:
                raise _needs_ripgrep(found[0])
            inside = _POSIX[found["name"]]
            return _all_but(inside) if found["not"] else inside
        if self._text.startswith(_SET_SIGNS, self._at) or _NESTED.match(self._text, self._at):
            raise _needs_ripgrep("a class that is made of other classes")
        sign = self._text[self._at]
        self._at += 1
        return r"\[" if sign == "[" else sign


def _characters(spelling: str, name: str, *, negated: bool) -> str:
    """Write the characters of a property, for use within brackets."""
    short = re.sub(r"[\s_-]", "", name.lower()).removeprefix("gc=").removeprefix("generalcategory=")
    if short not in _CATEGORIES:
        raise _needs_ripgrep(spelling)
    if short in ("any", "ascii"):
        last = sys.maxunicode if short == "any" else 0x7F
        return _ranges(lambda code: (code <= last) is not negated)
    return _of_category(_CATEGORIES[short], negated=negated)


@lru_cache(maxsize=16)
def _of_category(category: str, *, negated: bool) -> str:
    return _ranges(lambda code: unicodedata.category(chr(code)).startswith(category) is not negated)


@lru_cache(maxsize=16)
def _all_but(inside: str) -> str:
    shape = re.compile(f"[{inside}]")
    return _ranges(lambda code: shape.match(chr(code)) is None)


def _ranges(holds: Callable[[int], bool]) -> str:
    """Write the ranges of characters of which something holds."""
    ranges, begin = [], -1
    for code in range(sys.maxunicode + 2):
        is_in = code <= sys.maxunicode and holds(code)
        if is_in and begin < 0:
            begin = code
        elif not is_in and begin >= 0:
            ranges.append(f"{_code(begin)}-{_code(code - 1)}")
            begin = -1
    return "".join(ranges)


def _code(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
