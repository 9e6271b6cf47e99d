"""What the commands of one line mean together: text or a download that a later command runs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from treadle.policy.findings import Finding, dangerous
from treadle.policy.shell.interpreters import scan_code
from treadle.policy.shell.scene import Scene
from treadle.policy.shell.walk import JudgedCommand
from treadle.protocol.tools import Risk

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
