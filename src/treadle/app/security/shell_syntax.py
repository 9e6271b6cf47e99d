"""A line that is no valid shell is a mistake of the model, not a question for a person: the shell itself says so."""

import subprocess
from collections.abc import Sequence

from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Decision, Verdict
from treadle.protocol.tools import Access, RunCommand
from treadle.workspace.text import visible

_SECONDS = 2.0
_LONGEST_SAID = 400
_HTML = ("&amp;", "&lt;", "&gt;", "&quot;", "&#")


def refuse_broken_shell(decision: Decision, accesses: Sequence[Access], shell: str) -> None:
    """Raise `ToolError` for a line that the policy cannot parse, and `shell` cannot either.

    The shell only parses (`-n`): it runs nothing, expands nothing, and reads no file of the folder or of the user.
    """
    if decision.verdict is Verdict.ALLOW or not _has_unparsed(decision):
        return
    for access in accesses:
        if isinstance(access, RunCommand) and (said := _complaint(access.command, shell)):
            html = " It contains HTML such as `&amp;`. Write `&`, `<` and `>` as they are."
            advice = html if any(mark in access.command for mark in _HTML) else ""
            raise ToolError(f"Not run: this is not valid shell. {said}{advice} Correct the line.", invalid=True)


def _has_unparsed(decision: Decision) -> bool:
    return any(reason.rule == "syntax" for part in decision.parts for reason in part.reasons)


def _complaint(line: str, shell: str) -> str:
    """Give what the shell says of a line that it cannot parse; empty when it can, or does not say."""
    try:
        parsed = subprocess.run(
            (shell, "-n", "-c", line),
            cwd="/",
            env={"LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    if parsed.returncode == 0:
        return ""
    said = [text for text in parsed.stderr.decode(errors="replace").splitlines() if text.strip()]
    first = next((text for text in said if "syntax error" in text or "unexpected" in text), "".join(said[:1]))
    plain = first.rpartition("-c: ")[2]
    return f"{visible(plain)[:_LONGEST_SAID].rstrip('.')}."
