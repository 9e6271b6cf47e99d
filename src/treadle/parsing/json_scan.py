"""The top-level parameters of a JSON object while it streams, for previews."""

import re
from functools import lru_cache
from typing import Literal, TypeAlias

from treadle.protocol.patterns import regex

_NOT_BLANK = regex(r"[^ \t\r\n]")
_HIGH = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_WHOLE = regex(rf'(?:[^"\\]+|\\[^u]|{_HIGH}{_LOW}|(?!{_HIGH})\\u[0-9a-fA-F]{{4}})*')
_ESCAPE = regex(rf"{_HIGH}{_LOW}|\\u[0-9a-fA-F]{{4}}|\\.", re.DOTALL)
_BEGUN = regex(rf"\\(?:u[0-9a-fA-F]{{0,3}})?|{_HIGH}(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_NESTED_STRING = regex(r'(?:[^"\\]+|\\.)*', re.DOTALL)
_STRUCTURE = regex(r'["{}\[\],]')


# Strings, no enum: they are compared for every chunk, and an enum member costs ten times as much (3.11).
_State: TypeAlias = Literal[
    "start", "key", "in key", "colon", "value", "in string", "in raw", "in nested string", "comma", "done"
]


class ObjectScan:
    """Yields `(name, piece)` for each parameter: the decoded text of strings, the raw JSON of other values.

    It does not judge: where the text is no object, or no JSON, pieces just stop. `repeated` holds the names
    that came twice. Time is linear: at most the eleven characters of a begun escape are looked at again.
    """

    __slots__ = ("_depth", "_key", "_name", "_names", "_state", "_tail", "repeated")

    def __init__(self) -> None:
        self.repeated: list[str] = []
        self._names: set[str] = set()
        self._state: _State = "start"
        self._tail = ""
        self._key: list[str] = []
        self._name = ""
        self._depth = 0

    @property
    def ended(self) -> bool:
        """Whether the object is closed, or is none."""
        return self._state == "done"

    def feed(self, text: str) -> list[tuple[str, str]]:
        """Read the next piece of the JSON text."""
        if self._tail:
            text = self._tail + text
            if self._state in ("in key", "in string") and _BEGUN.fullmatch(text):
                self._tail = text
                return []
            self._tail = ""
        if self._state == "in string" and '"' not in text and "\\" not in text:
            return [(self._name, text)] if text else []
        out: list[tuple[str, str]] = []
        pos = 0
        while pos < len(text) and self._state != "done" and not self._tail:
            pos = self._step(text, pos, out)
        return out

    def _step(self, data: str, pos: int, out: list[tuple[str, str]]) -> int:
        match self._state:
            case "in key" | "in string":
                return self._in_string(data, pos, out)
            case "in raw":
                return self._in_raw(data, pos, out)
            case "in nested string":
                return self._in_nested_string(data, pos, out)
            case _:
                return self._between(data, pos)

    def _between(self, data: str, pos: int) -> int:
        found = _NOT_BLANK.search(data, pos)
        if found is None:
            return len(data)
        match self._state, found[0]:
            case "start", "{":
                self._state = "key"
            case "key", '"':
                self._state = "in key"
            case "colon", ":":
                self._state = "value"
            case "comma", ",":
                self._state = "key"
            case "value", '"':
                self._state = "in string"
            case "value", _:
                self._state = "in raw"
                return found.start()
            case _:
                self._state = "done"
        return found.end()

    def _in_string(self, data: str, pos: int, out: list[tuple[str, str]]) -> int:
        whole = _WHOLE.match(data, pos)
        end = whole.end() if whole else pos
        if piece := _decoded(data[pos:end]):
            if self._state == "in key":
                self._key.append(piece)
            else:
                out.append((self._name, piece))
        if end == len(data):
            return end
        if data[end] == '"':
            self._close_string()
            return end + 1
        if _BEGUN.fullmatch(data, end):
            self._tail = data[end:]
        else:
            self._state = "done"
        return end

    def _close_string(self) -> None:
        if self._state == "in string":
            self._state = "comma"
            return
        self._name = "".join(self._key)
        self._key = []
        self._state = "colon"
        if self._name in self._names:
            self.repeated.append(self._name)
        self._names.add(self._name)

    def _in_raw(self, data: str, pos: int, out: list[tuple[str, str]]) -> int:
        at = pos
        while found := _STRUCTURE.search(data, at):
            at = found.end()
            match found[0]:
                case '"':
                    self._state = "in nested string"
                    break
                case "{" | "[":
                    self._depth += 1
                case "," if self._depth:
                    pass
                case "}" | "]" if self._depth:
                    self._depth -= 1
                case mark:
                    at = found.start()
                    self._state = "comma" if mark == "," else "done"
                    break
        else:
            at = len(data)
        if at > pos:
            out.append((self._name, data[pos:at]))
        return at

    def _in_nested_string(self, data: str, pos: int, out: list[tuple[str, str]]) -> int:
        whole = _NESTED_STRING.match(data, pos)
        end = whole.end() if whole else pos
        if end < len(data):
            if data[end] == '"':
                self._state = "in raw"
                end += 1
            else:
                self._tail = data[end:]
        if end > pos:
            out.append((self._name, data[pos:end]))
        return end


def _decoded(piece: str) -> str:
    """The text of a piece of a JSON string that cuts no escape."""
    return _ESCAPE.sub(_meaning, piece) if "\\" in piece else piece


def _meaning(escape: re.Match[str]) -> str:
    return _unescaped(escape[0])


@lru_cache(maxsize=4096)
def _unescaped(written: str) -> str:
    if len(written) == 2:
        return _SHORT.get(written[1], written)
    codes = [int(code, 16) for code in written.split("\\u")[1:]]
    if len(codes) == 2:
        return chr(0x10000 + ((codes[0] - 0xD800) << 10) + (codes[1] - 0xDC00))
    return written if 0xD800 <= codes[0] < 0xE000 else chr(codes[0])
