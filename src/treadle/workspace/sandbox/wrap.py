"""The whole command line of a sandboxed command, around the guard and inside of it."""

import os
import platform
import stat
import sys
from itertools import chain
from pathlib import Path

from treadle.protocol.errors import ToolError
from treadle.workspace.sandbox import box, confine
from treadle.workspace.sandbox.backend import Backend, SandboxState
from treadle.workspace.sandbox.bubblewrap import bubblewrap
from treadle.workspace.sandbox.ground import Ground, Kind, look
from treadle.workspace.sandbox.landlock import landlock
from treadle.workspace.sandbox.profile import Limits, Profile, is_within
from treadle.workspace.sandbox.seccomp import filter_program
from treadle.workspace.wrapping import Wrapping

_PYTHON = (sys.executable, "-I", "-S")


def prepare(profile: Profile, state: SandboxState) -> Wrapping:
    """Look at the ground and wrap for it. Raises `ToolError` when nothing here can confine a command."""
    if state.backend is None:
        raise ToolError(
            f"The command was not started: there is no sandbox on this system ({state.reason}). Tell the user."
        )
    Path(profile.tmp).mkdir(mode=0o700, parents=True, exist_ok=True)
    for lock in (profile.lock, *profile.locks):
        Path(lock).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return wrap(profile, look(profile), state, tasks=_tasks())


def wrap(profile: Profile, ground: Ground, state: SandboxState, *, tasks: int) -> Wrapping:
    """Wrap for one ground; `tasks` are the threads that run on this system now, on which the bound stands."""
    machine = platform.machine()
    options = _limits(profile.limits, tasks)
    if state.backend is Backend.BUBBLEWRAP:
        code = filter_program(machine, sockets=True).hex()
        inner = bubblewrap(state.program, profile, ground, seccomp=bool(code))
        if profile.network and _can_be_scoped(state.program):
            # With the network of the system come its abstract sockets, which have no path that could be covered.
            inner = (*_PYTHON, confine.__file__, *confine.SCOPES_ONLY, "--", *inner)
        options += (*_placeholders(profile, ground), *(("--seccomp", code) if code else ()))
    else:
        code = filter_program(machine, sockets=profile.network).hex()
        if not code and not profile.network:
            raise ToolError(
                f"The command was not started: on {machine} it cannot be cut off from the network. Tell the user."
            )
        helper = (*_PYTHON, confine.__file__)
        inner = (*landlock(helper, profile, ground, _children), *(("--seccomp", code) if code else ()), "--")
    return Wrapping((*_PYTHON, box.__file__, profile.lock, *options, "--"), inner)


def _can_be_scoped(program: str) -> bool:
    """Whether Landlock can go around bubblewrap: not where it has to gain rights to work."""
    try:
        gains = bool(Path(program).stat().st_mode & stat.S_ISUID)
    except OSError:
        return False
    return not gains and confine.version() >= confine.LEAST_FOR_SCOPES


def _limits(limits: Limits, tasks: int) -> tuple[str, ...]:
    wanted = {"NPROC": limits.processes + tasks, "NOFILE": limits.open_files, "CORE": 0, "AS": limits.memory}
    given = (f"{name}={number}" for name, number in wanted.items() if number is not None)
    return tuple(chain.from_iterable(("--limit", text) for text in given))


def _placeholders(profile: Profile, ground: Ground) -> tuple[str, ...]:
    """Name what must stand in for missing paths, by root; a workspace that cannot be changed needs none."""
    if not profile.change_root:
        return ()
    options = {Kind.MISSING_FILE: "--file", Kind.MISSING_FOLDER: "--folder", Kind.LINK: "--link"}
    named: list[tuple[str, str]] = []
    for root, lock in zip(profile.folders, (profile.lock, *profile.locks), strict=True):
        named += [] if lock == profile.lock else [("--lock", lock)]
        missing = (place for place in ground.protected if place.kind in options and is_within(place.path, root))
        named += [(options[place.kind], place.path) for place in missing]
    return tuple(chain.from_iterable(named))


def _children(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return []


def _tasks() -> int:
    """Count the threads of this system; the kernel's bound on processes counts all of a user."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 4096
