"""A rough search for danger in text that cannot be parsed. What it does not find is not thereby harmless."""

import re

from treadle.policy.findings import Finding
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk

MAX_PIECES = 4000

_SEPARATORS = re.compile(r"[;&|\n(){}`]+|\$\(|<\(|>\(")
_QUOTING = re.compile(r"[\"'\\]")
_BOMB = re.compile(r"([\w:.]{1,32})\s*\(\)\s*\{[^}]{0,200}?\1\s*\|\s*\1\s*&")


def sweep(text: str, scene: Scene) -> list[Finding]:
    """Cut the text at everything that may separate commands and judge what starts at each word."""
    found: dict[Finding, None] = {}
    joined = text.replace("\\\n", "")
    for piece in _SEPARATORS.split(joined)[:MAX_PIECES]:
        words = tuple(_QUOTING.sub("", word) for word in piece.split())
        for place in range(min(len(words), 6)):
            for finding in scene.command(words[place : place + 60]):
                if finding.risk is Risk.CRITICAL:
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
    return list(found)
