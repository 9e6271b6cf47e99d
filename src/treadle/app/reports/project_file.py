"""A file of a session's folder as a person looks at it: only one that is read without a question."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from treadle.app.reports.policy_explain import asked_context, judge_access
from treadle.protocol.errors import ConfigError, ToolError
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import ReadPath
from treadle.workspace.files.names import existing_path
from treadle.workspace.files.text_files import decode

MOST_SHOWN_BYTES = 400_000
"""Bytes of a file that is shown."""


def project_path(root: str, path: str, *, trusted: bool) -> str:
    """Find a file below a folder by its shown name; raises `ConfigError` for one that is not shown.

    What leads out of the folder, and what the policy would ask about, is not found. To be called in a thread.
    """
    base = os.path.realpath(root)
    try:
        real = os.path.realpath(existing_path(base, path))
    except UnicodeEncodeError as error:
        raise ConfigError("file-not-shown", "No file has such a name.", fix="Choose another file.") from error
    if real != base and not real.startswith(f"{base}/"):
        raise ConfigError("file-not-shown", f"{path} leads out of the session's folder.", fix="Open it in an editor.")
    decision = judge_access(ReadPath(path=real), asked_context(Path(base), Mode.ASK, trusted=trusted))
    if decision.verdict is not Verdict.ALLOW:
        why = words_of_decision(decision).headline
        raise ConfigError("file-not-shown", f"{path} is not shown here.", why=why, fix="Open it in an editor.")
    return real


def project_lines(root: str, path: str, *, trusted: bool) -> Sequence[str]:
    """Read the lines of a file as `project_path` finds it; raises `ConfigError`. To be called in a thread."""
    real = project_path(root, path, trusted=trusted)
    try:
        with os.fdopen(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError("file-not-shown", f"{path} is not a file.", fix="Choose a file.")
            raw = file.read(MOST_SHOWN_BYTES + 1)
    except OSError as error:
        what = f"{path} cannot be read."
        raise ConfigError("file-not-shown", what, why=str(error.strerror), fix="Choose another file.") from error
    if len(raw) > MOST_SHOWN_BYTES:
        why = f"It has more than {MOST_SHOWN_BYTES // 1000} kB."
        raise ConfigError("file-not-shown", f"{path} is too large to show.", why=why, fix="Open it in an editor.")
    try:
        return decode(raw, path).text.split("\n")
    except ToolError as error:
        raise ConfigError(
            "file-not-shown",
            f"{path} is not shown.",
            why="It is not text, or in an encoding that is not known.",
            fix="Open it in a program made for its format.",
        ) from error
