"""The whole command line of a sandboxed command."""

import os
import platform
import sys
from hashlib import sha256
from pathlib import Path

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.wrapping import Caps, Watch, Wrapping
from treadle.workspace.files.owners import Owner
from treadle.workspace.files.private_file import write_private
from treadle.workspace.sandbox import confine
from treadle.workspace.sandbox.backend import Backend, SandboxState
from treadle.workspace.sandbox.bubblewrap import bubblewrap
from treadle.workspace.sandbox.landlock import landlock
from treadle.workspace.sandbox.present import Present, closed_above, look
from treadle.workspace.sandbox.profile import Profile
from treadle.workspace.sandbox.seatbelt import seatbelt
from treadle.workspace.sandbox.seccomp import (
    SET_GROUP_ID,
    SET_USER_ID,
    SOCKET_FAMILIES,
    UNIX_FAMILY,
    filter_program,
)

_PYTHON = (sys.executable, "-I", "-S")
_NOT_UNIX = tuple(family for family in SOCKET_FAMILIES if family != UNIX_FAMILY)


def prepare(profile: Profile, state: SandboxState, holder: Owner | None = None) -> Wrapping:
    """Look at what is there and wrap for it, in the namespaces of a holder if there is one.

    Raises `ToolError` when nothing here can confine a command.
    """
    if state.backend is None:
        raise ToolError(
            f"The command was not started: there is no sandbox on this system ({state.reason}). Tell the user."
        )
    if state.backend is Backend.BUBBLEWRAP and os.geteuid() == 0:
        _refuse_closed(profile)
    try:
        for folder in (profile.tmp, profile.private, *(source for path, source in profile.scratch if source != path)):
            os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - a third of its time with pathlib
        return wrap_command(profile, look(profile), state, tasks=running_tasks(), holder=holder)
    except OSError as error:
        raise ToolError(f"The command was not started: its sandbox cannot be set up ({error}). Tell the user.") from (
            error
        )


def _refuse_closed(profile: Profile) -> None:
    """Raise `ToolError` where a folder lies in one of another user, which root cannot enter without capabilities."""
    for folder in profile.folders:
        if above := closed_above(folder):
            raise ToolError(
                f"The command was not started: {above} is closed to other users, and in the sandbox root is one of "
                f"them. Tell the user to start Treadle as the owner of {above}, or to open it: chmod o+x {above}"
            )


def wrap_command(
    profile: Profile, present: Present, state: SandboxState, *, tasks: int, holder: Owner | None = None
) -> Wrapping:
    """Wrap for what is there; `tasks` are the threads that run on this system now, on which the bound stands."""
    machine = platform.machine()
    limits = profile.limits
    code = b""
    match state.backend:
        case Backend.BUBBLEWRAP:
            families = SOCKET_FAMILIES if profile.unix_sockets else _NOT_UNIX
            code = filter_program(machine, families, never_set=_never_set(profile))
            inner = bubblewrap(state.program, profile, present, seccomp=bool(code), joined=holder is not None)
            if profile.network and _can_be_scoped(state.program):
                # With the network of the system come its abstract sockets, which have no path that could be covered.
                inner = (*_PYTHON, confine.__file__, *confine.SCOPES_ONLY, "--", *inner)
        case Backend.SEATBELT:
            inner = seatbelt(profile, present)
        case _:
            inner = _landlock(profile, present, machine)
    watch = Watch(
        memory=limits.memory,
        processes=limits.processes,
        disk=limits.disk,
        seconds=limits.seconds,
        folders=(profile.root, profile.tmp),
    )
    caps = Caps(
        open_files=limits.open_files,
        file=limits.file,
        tasks=limits.processes + tasks,
        opened=_stored(code, profile.private),
    )
    joins = "" if holder is None else f"{holder.pid} {holder.started} {int(profile.network)}"
    return Wrapping(inner=inner, watch=watch, caps=caps, joins=joins)


def _landlock(profile: Profile, present: Present, machine: str) -> tuple[str, ...]:
    # Landlock knows no rights to modes, owners and times: where nothing may change nobody changes those either.
    families = SOCKET_FAMILIES if profile.network else ()
    code = filter_program(machine, families, metadata=profile.change_root, never_set=_never_set(profile)).hex()
    if not code and not (profile.network and profile.change_root):
        raise ToolError(f"The command was not started: on {machine} it cannot be confined. Tell the user.")
    helper = (*_PYTHON, confine.__file__)
    return (*landlock(helper, profile, present, _children), *(("--seccomp", code) if code else ()), "--")


def _never_set(profile: Profile) -> int:
    """Give the bits of modes that no file gets; folders of a shared group pass theirs on by the one for groups."""
    shares = any(_mode(place) & SET_GROUP_ID for one in profile.folders for place in (one, f"{one}/.git"))
    return SET_USER_ID if shares else SET_USER_ID | SET_GROUP_ID


def _mode(path: str) -> int:
    try:
        return Path(path).stat().st_mode
    except OSError:
        return 0


def _stored(code: bytes, folder: str) -> str:
    """Keep the filter in a file, named by what it holds; gives the path."""
    if not code:
        return ""
    file = Path(folder, f"filter-{sha256(code).hexdigest()[:16]}")
    if not file.exists():
        write_private(file, code)
    return str(file)


def _can_be_scoped(program: str) -> bool:
    """Whether Landlock can go around bubblewrap: not where it has to gain rights to work."""
    mode = _mode(program)
    return mode != 0 and not mode & SET_USER_ID and confine.version() >= confine.LEAST_FOR_SCOPES


def _children(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return []


def running_tasks() -> int:
    """Count the threads of this system; the kernel's bound on processes counts all of a user."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 4096
