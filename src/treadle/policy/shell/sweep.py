"""A rough search for danger in text that cannot be parsed. What it does not find is not thereby harmless."""

import re
from collections.abc import Iterator
from dataclasses import replace

from treadle.policy.findings import Finding
from treadle.policy.marks import from_both_ends
from treadle.policy.names import control_name, secret_name
from treadle.policy.paths import MAX_PATH_BYTES
from treadle.policy.shell.assignments import judge_assignment
from treadle.policy.shell.scene import CHARACTERS_A_STEP, Effort, EffortError, Scene
from treadle.protocol.tools import Risk

SWEEP_EFFORT = 800
MAX_TARGETS = 200

_SEPARATORS = re.compile(r"[;&|\n(){}`]+|\$\(|<\(|>\(")
_QUOTING = re.compile(r"[\"'\\]")
_BOMB = re.compile(r"([\w:.]{1,32})\s*\(\)\s*\{[^}]{0,200}?\1\s*\|\s*\1\s*&")


def sweep(text: str, scene: Scene) -> list[Finding]:
    """Cut the text at everything that may separate commands and judge what starts at each word."""
    effort = scene.effort if scene.depth else Effort(SWEEP_EFFORT)
    scene = replace(scene, effort=effort, is_search=True, is_guess=True)
    found: dict[Finding, None] = {}
    joined = text.replace("\\\n", "")
    try:
        # What is cut out of the line by `>` is looked at first: it is short.
        for target in from_both_ends(re.findall(r">+\s*([^\s;&|<>()]+)", joined))[:MAX_TARGETS]:
            found.update(dict.fromkeys(scene.mentions(_QUOTING.sub("", target))))
        for word in from_both_ends(_QUOTING.sub("", joined).split()):
            effort.spend(1 + len(word) // CHARACTERS_A_STEP)
            if len(word) <= MAX_PATH_BYTES and (name := secret_name(word) or control_name(word)):
                found[Finding(Risk.CRITICAL, "secret-read", f"names {name}, which is protected")] = None
        for piece in from_both_ends(_SEPARATORS.split(joined)):
            found.update(dict.fromkeys(_judge_piece(piece, scene)))
    except EffortError:
        pass
    for match in re.finditer(
        r"\|\s*(?:\w{1,64}=\S{0,99}\s+)*(?:\S{0,99}/)?(sudo|env|exec|nohup)?\s*(ba|z|da|k|a|c|tc)?sh\b", joined
    ):
        found[
            Finding(Risk.CRITICAL, "piped-script", f"what comes through the pipe is run: {match.group().strip()!r}")
        ] = None
    if _BOMB.search(joined):
        found[Finding(Risk.CRITICAL, "fork-bomb", "a function that calls itself")] = None
    return [finding for finding in found if finding.risk is Risk.CRITICAL]


def _judge_piece(piece: str, scene: Scene) -> Iterator[Finding]:
    words = tuple(filter(None, (_QUOTING.sub("", word) for word in piece.split())))
    for word in words[:6]:
        variable, is_set, value = word.partition("=")
        if is_set and variable.isidentifier():
            yield from judge_assignment(variable, value)
    for place in range(min(len(words), 4)):
        yield from scene.command(words[place : place + 60])
