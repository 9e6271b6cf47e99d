"""Runs a command as a person was shown it, with their own programs, unless a rule denies it."""

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from treadle.app.reports.policy_explain import asked_context, judge_access
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import RunCommand
from treadle.workspace.commands.variables import child_variables, find_outside
from treadle.workspace.files.text import Decoder, as_displayed

_RUN_SECONDS, _END_SECONDS = 300.0, 10.0
_MOST_PRINTED = 20_000

_OWN_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType({"gh": ("GH_TOKEN", "GITHUB_TOKEN", "GH_HOST")})
"""Variables of programs that hold what the user signs in with for this program."""

_QUIET: Mapping[str, str] = MappingProxyType(
    {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_LITERAL_PATHSPECS": "1", "GH_PROMPT_DISABLED": "1"}
)


class GitRun(Struct, frozen=True, kw_only=True):
    """A command that ran: its line, its exit status (None where it took too long), and what it printed."""

    line: str
    status: int | None
    output: str


def run_shown(root: str, words: Sequence[str], *, pass_on: Sequence[str] = ()) -> GitRun:
    """Run a command as it was shown, unless a rule denies it; `pass_on` names variables. Raises `ConfigError`."""
    require_text(*words)
    require_allowed(root, shlex.join(words))
    return run_program(root, words[0], words[1:], pass_on=(*pass_on, *_OWN_VARIABLES.get(words[0], ())))


def require_text(*texts: str) -> None:
    """Raise `ConfigError` for a text that no program takes."""
    if any("\0" in text for text in texts):
        raise ConfigError("commit-text", "A program takes no text with the character U+0000.", fix="Write another one.")


def require_allowed(root: str, line: str) -> None:
    """Raise `ConfigError` for what a rule denies: rules hold for what the page runs, too."""
    decision = judge_access(RunCommand(command=line, cwd=root), asked_context(Path(root), Mode.ASK, trusted=True))
    if decision.verdict is Verdict.DENY:
        why = words_of_decision(decision).headline
        raise ConfigError("commit-denied", f"A rule denies: {line}", why=why, fix="Change the rule, or use a terminal.")


def run_program(
    root: str, program: str, arguments: Sequence[str], *, given: bytes = b"", pass_on: Sequence[str] = ()
) -> GitRun:
    """Run a program that reads what is `given`; nobody is asked for anything. Raises `ConfigError`."""
    line = shlex.join((program, *arguments))
    found = find_outside(program, root)
    if not found:
        raise ConfigError("commit-program", f"There is no {program} on the PATH.", fix=f"Install {program}.")
    # In files: what a hook leaves in the background may hold the output open, and is not waited for.
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as printed:
        asked.write(given)
        asked.seek(0)
        process = subprocess.Popen(
            (found, *arguments),
            cwd=root,
            env=_variables(pass_on),
            stdin=asked,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status = _ended(process)
        printed.seek(max(0, printed.seek(0, os.SEEK_END) - _MOST_PRINTED))
        output = as_displayed(Decoder().feed(printed.read(_MOST_PRINTED), final=True)).strip()
    if status is None:
        output = f"{output}\nIt ran for more than {_RUN_SECONDS:.0f} seconds and was ended.".lstrip()
    return GitRun(line=line, status=status, output=output)


def _variables(pass_on: Sequence[str]) -> dict[str, str]:
    """Give the variables of a program; with them git prints names as they are, not as the numbers of their bytes."""
    found = {**child_variables(os.environ, pass_on), **_QUIET}
    number = found.get("GIT_CONFIG_COUNT", "0")
    if number.isdecimal():
        found |= {f"GIT_CONFIG_KEY_{number}": "core.quotePath", f"GIT_CONFIG_VALUE_{number}": "false"}
        found["GIT_CONFIG_COUNT"] = str(int(number) + 1)
    return found


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    """Give the exit status; None where it took too long: git then removes its locks before it ends."""
    try:
        return process.wait(_RUN_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
