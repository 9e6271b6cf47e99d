"""Reads sed scripts: which commands they hold, and whether those only print."""

import re

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.scene import Scene

_ADDRESS = re.compile(r"\d+(~\d+)?|\$|\+\d+|~\d+")
_PLAIN = frozenset("pPdDnNgGhHxlzF={")
_BRACKET = re.compile(r"\^?\]?(?:\[([:.=]).*?\1\]|[^\]])*\]", re.DOTALL)
"""What follows the `[` of a set of characters, in which a first `]` is one of them."""

_FLAGS = re.compile(r"[gpiIM0-9]*")
_MAY_RUN = re.compile(r"e\s*$|/[gpIiMm0-9]*e|(^|[;{}\s\d$])e(\s|$)")


class _OpaqueScriptError(Exception):
    """The script uses something that is not followed."""


def judge_sed(script: str, scene: Scene) -> list[Finding]:
    """Judge a sed script; what is not understood is searched for the commands that write or run."""
    if not is_static(script):
        return [unclear("opaque-code", "the sed script is unknown until it runs")]
    reader = _Reader(script, scene)
    try:
        reader.read()
    except _OpaqueScriptError:
        reader.findings.append(unclear("opaque-code", "the sed script is not understood"))
        if _MAY_RUN.search(script):
            reader.findings.append(dangerous("opaque-code", "the sed script may run a command"))
        for token in dict.fromkeys(re.split(r"[\s;]+", script)):
            reader.findings.extend(scene.mentions(token))
    return reader.findings


class _Reader:
    """One pass over one script."""

    def __init__(self, text: str, scene: Scene) -> None:
        self.findings: list[Finding] = []
        self._text = text
        self._scene = scene
        self._pos = 0

    def read(self) -> None:
        """Read all commands; raises `_OpaqueScriptError`."""
        while self._pos < len(self._text):
            self._skip(" \t\n;{}")
            if self._pos < len(self._text):
                self._addresses()
                self._skip(" \t!")
                self._command(self._take())

    def _peek(self) -> str:
        return self._text[self._pos : self._pos + 1]

    def _take(self) -> str:
        char = self._peek()
        self._pos += 1
        return char

    def _skip(self, characters: str) -> None:
        while self._peek() and self._peek() in characters:
            self._pos += 1

    def _command(self, letter: str) -> None:
        if letter in _PLAIN:
            return
        if letter in ("q", "Q"):
            self._skip(" 0123456789")
        elif letter == "s":
            self._substitute()
        elif letter == "y":
            self._delimited(2)
        elif letter in ("w", "W", "r", "R"):
            self._file(letter)
        elif letter == "e":
            self.findings.append(dangerous("opaque-code", "the sed command e runs a command"))
            self._rest_of_line()
        elif letter in ("a", "i", "c", "#"):
            self._rest_of_line()
        else:
            raise _OpaqueScriptError

    def _addresses(self) -> None:
        self._address()
        start = self._pos
        self._skip(" \t")
        if self._peek() != ",":
            self._pos = start
            return
        self._pos += 1
        self._skip(" \t")
        self._address()

    def _address(self) -> None:
        if self._peek() == "/":
            self._delimited(1)
            self._skip("IM")
        elif self._peek() == "\\":
            self._pos += 1
            self._delimited(1)
            self._skip("IM")
        elif match := _ADDRESS.match(self._text, self._pos):
            self._pos = match.end()

    def _delimited(self, parts: int) -> None:
        """Step over `parts` texts behind the delimiter that stands here."""
        delimiter = self._take()
        if not delimiter or delimiter in "\\\n":
            raise _OpaqueScriptError
        while parts:
            char = self._take()
            if not char:
                raise _OpaqueScriptError
            if char == "[" and (bracket := _BRACKET.match(self._text, self._pos)):
                if delimiter in bracket.group():  # then two readings are possible
                    raise _OpaqueScriptError
                self._pos = bracket.end()
            elif char == "\\":
                self._pos += 1
            elif char == delimiter:
                parts -= 1

    def _substitute(self) -> None:
        self._delimited(2)
        flags = _FLAGS.match(self._text, self._pos)
        self._pos = flags.end() if flags else self._pos
        following = self._peek()
        if following in ("e", "m"):
            if re.match(r"[egpiImM0-9]*e", self._text[self._pos :]):
                self.findings.append(dangerous("opaque-code", "the e flag of the sed command s runs a command"))
            self._skip("egpiImM0123456789")
        elif following == "w":
            self._pos += 1
            self._file("w")
        elif following and following not in " \t\n;}#":
            raise _OpaqueScriptError

    def _rest_of_line(self) -> str:
        end = self._text.find("\n", self._pos)
        end = len(self._text) if end < 0 else end
        rest = self._text[self._pos : end]
        self._pos = end
        return rest.strip()

    def _file(self, letter: str) -> None:
        name = self._rest_of_line()
        if letter in "wW":
            self.findings.extend(self._scene.path(name, PathOp.WRITE))
        else:
            self.findings.extend(self._scene.path(name, PathOp.READ))
            self.findings.append(unclear("opaque-code", "the sed script reads another file"))
