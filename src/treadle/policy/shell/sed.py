"""Reads sed scripts: which commands they hold, and whether those only print."""

import re

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.scene import Scene

_ADDRESS = re.compile(r"\d+(~\d+)?|\$|\+\d+|~\d+")
_PLAIN = frozenset("pPdDnNgGhHxlzF=")
_FLAGS = re.compile(r"[gpiIM0-9]*")


class _OpaqueScriptError(Exception):
    """The script uses something that is not followed."""


def judge_sed(script: str, scene: Scene) -> list[Finding]:
    """Judge a sed script; what is not understood is searched for the commands that write or run."""
    if not is_static(script):
        return [unclear("opaque-code", "the sed script is unknown until it runs")]
    findings: list[Finding] = []
    position = 0
    try:
        while position < len(script):
            position = _command(script, position, findings, scene)
    except _OpaqueScriptError:
        findings.append(unclear("opaque-code", "the sed script is not understood"))
        if re.search(r"e\s*$|/[gpIiMm0-9]*e|(^|[;{}\s\d$])e(\s|$)", script):
            findings.append(dangerous("opaque-code", "the sed script may run a command"))
        for token in re.split(r"[\s;]+", script):
            findings.extend(scene.mentions(token))
    return findings


def _command(script: str, position: int, findings: list[Finding], scene: Scene) -> int:
    position = _skip(script, position, " \t\n;{}")
    if position >= len(script):
        return position
    position = _addresses(script, position)
    position = _skip(script, position, " \t!")
    letter = script[position : position + 1]
    position += 1
    if letter in _PLAIN and letter:
        return position
    if letter == "{":
        return position
    if letter in ("q", "Q"):
        return _skip(script, position, " 0123456789")
    if letter == "s":
        return _substitute(script, position, findings, scene)
    if letter == "y":
        return _delimited(script, position, 2)
    if letter in ("w", "W", "r", "R"):
        return _file(letter, script, position, findings, scene)
    if letter == "e":
        findings.append(dangerous("opaque-code", "the sed command e runs a command"))
        return _line_end(script, position)
    if letter in ("a", "i", "c", "#"):
        return _line_end(script, position)
    raise _OpaqueScriptError


def _skip(script: str, position: int, characters: str) -> int:
    while position < len(script) and script[position] in characters:
        position += 1
    return position


def _line_end(script: str, position: int) -> int:
    end = script.find("\n", position)
    return len(script) if end < 0 else end


def _addresses(script: str, position: int) -> int:
    position = _address(script, position)
    after = _skip(script, position, " \t")
    if script[after : after + 1] == ",":
        return _address(script, _skip(script, after + 1, " \t"))
    return position


def _address(script: str, position: int) -> int:
    if script[position : position + 1] == "/":
        return _skip(script, _delimited(script, position, 1), "IM")
    if script[position : position + 1] == "\\":
        raise _OpaqueScriptError
    match = _ADDRESS.match(script, position)
    return match.end() if match else position


def _delimited(script: str, position: int, parts: int) -> int:
    """Step over `parts` texts behind the delimiter at `position`."""
    delimiter = script[position : position + 1]
    if not delimiter or delimiter in "\\\n":
        raise _OpaqueScriptError
    position += 1
    while parts:
        if position >= len(script):
            raise _OpaqueScriptError
        char = script[position]
        # A delimiter inside a bracket expression is not told apart: then two readings are possible.
        if char == "[" and delimiter in script[position : script.find("]", position) + 1]:
            raise _OpaqueScriptError
        if char == "\\":
            position += 2
            continue
        if char == delimiter:
            parts -= 1
        position += 1
    return position


def _substitute(script: str, position: int, findings: list[Finding], scene: Scene) -> int:
    position = _delimited(script, position, 2)
    match = _FLAGS.match(script, position)
    position = match.end() if match else position
    following = script[position : position + 1]
    if following in ("e", "m"):
        if re.match(r"[egpiImM0-9]*e", script[position:]):
            findings.append(dangerous("opaque-code", "the e flag of the sed command s runs a command"))
        return _skip(script, position, "egpiImM0123456789")
    if following == "w":
        return _file("w", script, position + 1, findings, scene)
    if following and following not in " \t\n;}#":
        raise _OpaqueScriptError
    return position


def _file(letter: str, script: str, position: int, findings: list[Finding], scene: Scene) -> int:
    end = _line_end(script, position)
    name = script[position:end].strip()
    findings.extend(scene.path(name, PathOp.WRITE if letter in "wW" else PathOp.READ))
    if letter in "rR":
        findings.append(unclear("opaque-code", "the sed script reads another file"))
    return end
