"""The command line of bubblewrap for a profile: pure, from the facts about the ground."""

from collections.abc import Iterator
from itertools import chain
from pathlib import PurePosixPath

from treadle.workspace.sandbox.ground import TMP, Ground, Kind, Place
from treadle.workspace.sandbox.profile import Profile, is_within

_ISOLATION = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--die-with-parent"),
    *("--cap-drop", "ALL"),
)
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/acpi", "/proc/driver", "/proc/fs", "/proc/mtrr", "/proc/scsi")
"""Settings of the whole system: a process of root writes them without any capability."""

_RESOLVER = "/run/systemd/resolve"
SECCOMP_FD = 9
"""The descriptor on which bubblewrap reads the filter of system calls."""


def bubblewrap(program: str, profile: Profile, ground: Ground, *, seccomp: bool) -> tuple[str, ...]:
    """Build the command line that goes before the command's own; the order decides which mount covers which."""
    contents = dict(profile.contents)
    return (
        program,
        *_ISOLATION,
        *(("--share-net",) if profile.network else ()),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *chain.from_iterable(("--ro-bind-try", path, path) for path in _KERNEL),
        *_hide(profile, ground),
        *(("--ro-bind-try", _RESOLVER, _RESOLVER) if profile.network else ()),
        *chain.from_iterable(
            ("--bind" if profile.change_root else "--ro-bind", contents.get(folder, folder), folder)
            for folder in profile.folders
        ),
        *(_protect(profile, ground) if profile.change_root else ()),
        *chain.from_iterable(("--bind", place.path, place.path) for place in ground.writable),
        *chain.from_iterable(map(_mask, ground.masked)),
        *chain.from_iterable(("--ro-bind-try", "/dev/null", path) for path in _reachable(profile, ground)),
        *("--setenv", "TMPDIR", TMP),
        *("--chdir", profile.root),
        *(("--seccomp", str(SECCOMP_FD)) if seccomp else ()),
        "--",
    )


def _hide(profile: Profile, ground: Ground) -> Iterator[str]:
    """Cover folders with empty ones, and show in them what must be found; the outer before the inner."""
    mounts = {folder: ("--tmpfs", folder) for folder in ground.folders} | {TMP: ("--bind", profile.tmp, TMP)}
    shown = {place.path: ("--ro-bind", place.path, place.path) for place in ground.readable}
    for _, mount in sorted((mounts | shown).items()):
        yield from mount


def _protect(profile: Profile, ground: Ground) -> Iterator[str]:
    """Bind protected places read-only, and every folder above them to itself: a mount point cannot be moved away."""
    held: set[str] = set()
    closed: list[str] = []
    for place in ground.protected:
        if any(is_within(place.path, folder) for folder in closed):
            continue
        for folder in reversed(PurePosixPath(place.path).parents):
            above = str(folder)
            if above not in profile.folders and profile.root_of(above) and above not in held:
                held.add(above)
                yield from ("--bind", above, above)
        if place.kind is not Kind.LINK:
            closed.append(place.path)
            yield from ("--ro-bind", place.path, place.path)


def _mask(place: Place) -> tuple[str, ...]:
    """Show an empty folder that takes nothing, or a file that cannot be opened: a device where devices do not work."""
    if place.kind is Kind.FOLDER:
        return "--tmpfs", place.path, "--remount-ro", place.path
    return "--ro-bind", "/dev/null", place.path


def _reachable(profile: Profile, ground: Ground) -> list[str]:
    """Give the sockets that nothing hides yet; those in the workspace may be the command's own business."""
    hidden = (TMP, *profile.folders, *ground.folders, *(place.path for place in ground.masked))
    return [path for path in ground.sockets if not any(is_within(path, folder) for folder in hidden)]
