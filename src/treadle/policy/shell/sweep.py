"""A rough search for danger in text that cannot be parsed. What it does not find is not thereby harmless."""

import re
from dataclasses import replace

from treadle.policy.findings import Finding
from treadle.policy.shell.assignments import judge_assignment
from treadle.policy.shell.scene import Effort, Scene
from treadle.protocol.tools import Risk

MAX_PIECES = 600

_SEPARATORS = re.compile(r"[;&|\n(){}`]+|\$\(|<\(|>\(")
_QUOTING = re.compile(r"[\"'\\]")
_BOMB = re.compile(r"([\w:.]{1,32})\s*\(\)\s*\{[^}]{0,200}?\1\s*\|\s*\1\s*&")


def sweep(text: str, scene: Scene) -> list[Finding]:
    """Cut the text at everything that may separate commands and judge what starts at each word."""
    scene = replace(scene, effort=Effort(), is_search=True, is_guess=True)
    found: dict[Finding, None] = {}
    joined = text.replace("\\\n", "")
    # The same piece needs one look, and what is to be hidden stands at an end.
    pieces = list(dict.fromkeys(_SEPARATORS.split(joined)))
    for piece in (*pieces[:MAX_PIECES], *pieces[MAX_PIECES:][-MAX_PIECES:]):
        words = tuple(_QUOTING.sub("", word) for word in piece.split())
        for word in words[:6]:
            variable, is_set, value = word.partition("=")
            if is_set and variable.isidentifier():
                found.update(dict.fromkeys(judge_assignment(variable, value)))
        for place in range(min(len(words), 4)):
            for finding in scene.command(words[place : place + 60]):
                found[finding] = None
    for target in re.findall(r">+\s*([^\s;&|<>()]+)", joined):
        for finding in scene.mentions(_QUOTING.sub("", target)):
            found[finding] = None
    for match in re.finditer(
        r"\|\s*(?:\w{1,64}=\S{0,99}\s+)*(?:\S{0,99}/)?(sudo|env|exec|nohup)?\s*(ba|z|da|k|a|c|tc)?sh\b", joined
    ):
        found[
            Finding(Risk.CRITICAL, "piped-script", f"what comes through the pipe is run: {match.group().strip()!r}")
        ] = None
    if _BOMB.search(joined):
        found[Finding(Risk.CRITICAL, "fork-bomb", "a function that calls itself")] = None
    return [finding for finding in found if finding.risk is Risk.CRITICAL]
