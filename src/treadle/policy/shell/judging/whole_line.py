"""What a line shows as a whole: danger in text that cannot be parsed, and commands that mean harm together."""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from treadle.policy.findings import Finding, dangerous
from treadle.policy.marks import from_both_ends
from treadle.policy.names import control_name, secret_name
from treadle.policy.paths import MAX_PATH_BYTES
from treadle.policy.shell.judging.builtins import judge_assignment
from treadle.policy.shell.judging.interpreters import scan_code
from treadle.policy.shell.judging.scene import CHARACTERS_A_STEP, Effort, EffortError, Scene
from treadle.policy.shell.judging.walk import JudgedCommand
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


_RUNS_SHELL_TEXT = frozenset({"own-program", "shell"})
_RUNS_A_FILE = _RUNS_SHELL_TEXT | {"interpreter", "mode"}
_PRINTERS = frozenset({"echo", "printf"})


def judge_sequence(parts: Sequence[JudgedCommand], scene: Scene) -> list[Finding]:
    """Judge the commands of a line in their order."""
    if len(parts) < 2:
        return []
    scene = replace(scene, is_guess=True)
    findings: list[Finding] = []
    written: list[str] = []
    fetched = False
    for part in parts:
        rules = {finding.rule for finding in part.findings}
        if fetched and rules & _RUNS_A_FILE:
            findings.append(dangerous("download-and-run", "runs a file after a download"))
        if written and rules & _RUNS_SHELL_TEXT:
            findings.extend(found for text in written for found in scene.script(text))
        if written and "interpreter" in rules:
            findings.extend(found for text in written for found in scan_code(text, scene))
        fetched |= "download" in rules
        if "write-inside" in rules:
            written.extend(_texts(part))
    return [finding for finding in dict.fromkeys(findings) if finding.risk is Risk.CRITICAL]


def _texts(part: JudgedCommand) -> Iterator[str]:
    """Give the texts that a command writes, as far as they stand in the line."""
    if part.input is not None:
        yield part.input
    if part.argv[:1] and part.argv[0] in _PRINTERS:
        yield " ".join(part.argv[1:])
        yield from part.argv[1:]
