"""Whether throw-away copies can be made here: tried out for each workspace, and what hinders them."""

import os
import stat
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

from msgspec import structs

from treadle.protocol.errors import ToolError
from treadle.workspace.copies.making import copy_command, write_job
from treadle.workspace.copies.staging import Manifest, new_folder, read_manifest, remove_folder
from treadle.workspace.sandbox import Backend, Profile, SandboxState, prepare
from treadle.workspace.sandbox.profile import is_within
from treadle.workspace.sandbox.trial import run_trial

_PATIENCE = (10.0, 60.0)
"""Seconds that are waited, and once more: it takes some 50 milliseconds, but a machine may be busy."""
_SIZE = 16 * 1024 * 1024
_TRIAL = 'cd "$0" && echo new >new && echo more >>kept && rm gone && rm -r folder && mkdir folder && exec "$@"'
_MARK = ': >"$0"'
_NEW = ".treadle-probe"
_EXPECTED = {
    (0, b"new", False, True),
    (0, b"kept", True, True),
    (0, b"gone", True, False),
    (0, b"folder/below", True, False),
    (1, _NEW.encode(), False, True),
}
"""What the trial does: root, path, whether it was there, and whether it is."""

_SWITCHES = (
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor keeps programs from making user namespaces (kernel.apparmor_restrict_unprivileged_userns)",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "this system has user namespaces turned off (kernel.unprivileged_userns_clone)",
    ),
    ("/proc/sys/user/max_user_namespaces", "0", "this system allows no user namespaces (user.max_user_namespaces)"),
)


def why_no_copy(profile: Profile, state: SandboxState, data: Path) -> str:
    """Say why commands cannot work on a copy of the folders of `profile`; empty where they can.

    What is remembered is the trial; that nothing is mounted in the folders, and whose they are, is looked at each time.
    """
    if state.backend is not Backend.BUBBLEWRAP:
        return "copies need bubblewrap, which does not work here"
    return _in_the_way(profile.folders, data) or _try(profile, state, data)


def _in_the_way(roots: tuple[str, ...], data: Path) -> str:
    """Look at what no overlay can be laid over."""
    mounts = _mount_points()
    for root in roots:
        if is_within(os.path.realpath(data), root):
            return f"Treadle's own data is in {root}"
        inner = next((point for point in mounts if point != root and is_within(point, root)), "")
        if inner:
            return f"something else is mounted in the workspace, at {inner}"
        foreign = _foreign(root)
        if foreign:
            return f"{foreign} belongs to another user or group: a copy cannot change it"
    return ""


def _mount_points() -> list[str]:
    """List where something is mounted, as this process sees it."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return []
    return [os.fsdecode(_unescaped(line.split()[4])) for line in lines]


def _unescaped(text: bytes) -> bytes:
    """Read blanks and the like, which the kernel writes as octal numbers."""
    for escape, byte in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        text = text.replace(escape, byte)
    return text


def _foreign(root: str) -> str:
    """Name the root, or something directly in it, that does not belong to this user and group; empty for none."""
    ids = os.geteuid(), os.getegid()
    try:
        found = [(root, os.lstat(root))]
        with os.scandir(root) as entries:
            found += [(entry.path, entry.stat(follow_symlinks=False)) for entry in entries]
    except OSError:
        return root
    return next((path for path, status in found if (status.st_uid, status.st_gid) != ids and not _is_link(status)), "")


def _is_link(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode)


@cache
def _tried() -> dict[tuple[str, ...], str]:
    """What came of the trials in this process, by the folders."""
    return {}


def _try(profile: Profile, state: SandboxState, data: Path) -> str:
    """Run a command on a copy once, or once more where it takes too long, and read what it did."""
    tried = _tried()
    for seconds in _PATIENCE:
        if profile.folders in tried:
            break
        try:
            tried[profile.folders] = _try_once(profile, state, data, seconds)
        except subprocess.TimeoutExpired as error:
            if seconds == _PATIENCE[-1]:
                tried[profile.folders] = f"trying it out failed: {error}"
        except _GoneError as error:  # another program removed what was to be covered: not for good
            if seconds == _PATIENCE[-1]:
                return f"trying it out failed: {error}"
        except OSError as error:  # as on a full disk: not for good
            return f"trying it out failed: {error}"
        except ToolError as error:
            tried[profile.folders] = f"trying it out failed: {error}"
    return tried[profile.folders]


_GONE = "Can't mkdir parents for "
"""What bubblewrap says of a path that was there when it was looked for."""


class _GoneError(Exception):
    """Something vanished between the look at it and the start."""


def _try_once(profile: Profile, state: SandboxState, data: Path, seconds: float) -> str:
    folder = new_folder(data)
    try:
        return _try_in(folder, profile, state, seconds)
    finally:
        remove_folder(folder)


def _try_in(folder: Path, profile: Profile, state: SandboxState, seconds: float) -> str:
    """Change a folder of our own in every way, and make a file in the workspace from inside the sandbox."""
    trial = folder / "trial"
    (trial / "folder").mkdir(parents=True)
    for name in ("kept", "gone", "folder/below"):
        (trial / name).write_text("old\n")
    roots = (str(trial), *profile.folders)
    write_job(folder, roots, [[] for _ in roots], _SIZE)
    contents = tuple((root, f"{folder}/mount/{number}/all") for number, root in enumerate(roots) if number)
    masked = tuple(path for path in profile.masked if not profile.root_of(path))
    sandbox = prepare(replace(profile, contents=contents, change_root=True, protected=(), masked=masked), state)
    changing = ("/bin/sh", "-c", _TRIAL, f"{folder}/mount/0/all")
    around = structs.replace(sandbox, inner=(*copy_command(folder), *changing, *sandbox.inner))
    command = around.around(("/bin/sh", "-c", _MARK, f"{profile.root}/{_NEW}"))
    status, said = run_trial(command, {"PATH": os.defpath}, seconds)
    manifest = read_manifest(folder)
    if status == 0 and manifest is not None and _found(manifest) >= _EXPECTED:
        return ""
    if _GONE in said:
        raise _GoneError(said)
    return _reason(said)


def _found(manifest: Manifest) -> set[tuple[int, bytes, bool, bool]]:
    """Name what was read: root, path, whether it was there before, and whether it is there now."""
    return {(one.root, one.path, one.before is not None, one.after is not None) for one in manifest.changes}


def _reason(said: str) -> str:
    """Say which switch of the system hinders copies, or else what the trial said."""
    for file, value, text in _SWITCHES:
        try:
            if Path(file).read_text().strip() == value:
                return text
        except OSError:
            continue
    return f"overlays do not work here ({said or 'what a command changed could not be read'})"
