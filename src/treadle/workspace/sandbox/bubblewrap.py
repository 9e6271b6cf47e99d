"""The command line of bubblewrap for a profile: pure, from the facts about what is there."""

from collections.abc import Iterator, Mapping
from itertools import chain

from treadle.workspace.sandbox.present import TMP, Present
from treadle.workspace.sandbox.profile import NO_FILE, Profile, is_within

_ALONE = ("--unshare-ipc", "--unshare-pid", "--unshare-net")
_ISOLATION = (
    *("--unshare-user", "--disable-userns", "--unshare-uts", "--unshare-cgroup-try"),
    *("--new-session", "--die-with-parent", "--cap-drop", "ALL"),
)
_RESOLVER = "/run/systemd/resolve"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a private one
_MOST_IN_MEMORY = 512 * 1024**2
"""Bytes that each folder kept in memory takes: it is no memory of a process that could be counted."""

SECCOMP_FD = 9
"""The descriptor on which bubblewrap reads the filter of system calls, see `Caps`."""

Mounts = dict[str, tuple[str, ...]]


def bubblewrap(
    program: str, profile: Profile, present: Present, *, seccomp: bool, joined: bool = False
) -> tuple[str, ...]:
    """Build the command line that goes before the command's own; a folder is mounted before what lies in it.

    What has `joined` the namespaces of its session has a network and processes of its own already.
    """
    alone = () if joined else _ALONE[:-1] if profile.network else _ALONE
    mounts = _mounts(profile, present)
    return (
        program,
        *_ISOLATION,
        *alone,
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *chain.from_iterable(("--dev-bind-try", path, path) for path in profile.devices),
        *("--size", str(_MOST_IN_MEMORY), "--perms", "1777", "--tmpfs", _SHARED_MEMORY, "--remount-ro", "/dev"),
        *chain.from_iterable(("--ro-bind", path, path) for path in present.kernel),
        *chain.from_iterable(mounts[path] for path in sorted(mounts, key=lambda path: path.split("/"))),
        *chain.from_iterable(("--remount-ro", path) for path in _closed(mounts, present)),
        *chain.from_iterable(("--ro-bind-try", "/dev/null", path) for path in _reachable(profile, present)),
        *("--setenv", "TMPDIR", TMP, "--unsetenv", "TMP", "--unsetenv", "TEMP"),
        *("--chdir", profile.cwd or profile.root),
        *(("--seccomp", str(SECCOMP_FD)) if seccomp else ()),
        "--",
    )


def _mounts(profile: Profile, present: Present) -> Mounts:
    """Give one mount for each path; where two are wanted, the later one here is taken."""
    mounts: Mounts = {folder: _tmpfs(folder) for folder in (*present.shared, *present.hidden)}
    mounts[TMP] = ("--bind", profile.tmp, TMP)
    if profile.network:
        mounts[_RESOLVER] = ("--ro-bind-try", _RESOLVER, _RESOLVER)
    for path in present.readable:
        mounts[path] = ("--ro-bind", path, path)
    for path, file in profile.replaced:
        mounts[path] = ("--ro-bind", file, path)
    for path, folder in profile.scratch:
        mounts[path] = ("--bind", folder, path)
    mounts |= _workspace(profile, present)
    for path in present.writable:
        # What is a mount point cannot be replaced: in a folder that may be changed it needs none.
        changeable = profile.change_root and profile.root_of(path)
        if not changeable or any(is_within(path, kept) for kept in present.protected):
            mounts[path] = ("--bind", path, path)
    return mounts | dict(_masks(profile, present))


def _closed(mounts: Mounts, present: Present) -> Iterator[str]:
    """Give the empty folders that take nothing new."""
    return (path for path in (*present.hidden, *present.masked_folders) if mounts.get(path) == _tmpfs(path))


def _tmpfs(folder: str) -> tuple[str, ...]:
    return "--size", str(_MOST_IN_MEMORY), "--tmpfs", folder


def _workspace(profile: Profile, present: Present) -> Mounts:
    """Bind the folders of the workspace, and keep what is protected in them.

    Every folder above a protected path is bound to itself: a mount point cannot be moved away. What has other contents
    needs no protection.
    """
    contents = dict(profile.contents)
    bind = "--bind" if profile.change_root else "--ro-bind"
    mounts: Mounts = {}
    for folder in profile.folders:
        mounts[folder] = ("--bind", contents[folder], folder) if folder in contents else (bind, folder, folder)
    closed: list[str] = []
    for path in present.protected:
        top = _top_of(path, profile, present)
        if not top or top in contents or any(is_within(path, folder) for folder in closed):
            continue
        for above in _between(path, top):
            mounts.setdefault(above, ("--bind", above, above))
        closed.append(path)
        mounts[path] = ("--ro-bind", path, path)
    return mounts


def _top_of(path: str, profile: Profile, present: Present) -> str:
    """Give the writable folder that a path lies in; empty where nothing can change it."""
    root = profile.root_of(path) if profile.change_root else ""
    return root or next((folder for folder in present.writable if is_within(path, folder)), "")


def _between(path: str, top: str) -> Iterator[str]:
    """Give the folders above a path and below its top, the outer before the inner."""
    names = path[len(top.rstrip("/")) + 1 :].split("/")
    for number in range(1, len(names)):
        yield "/".join((top.rstrip("/"), *names[:number]))


def _masks(profile: Profile, present: Present) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Show an empty folder that takes nothing, or another file: one without text, or one with that of the commit."""
    contents = dict(profile.contents)
    shown: Mapping[str, str] = dict(profile.instead)
    for path in present.masked_folders:
        if path not in present.closed and not _is_hidden(path, profile, present):
            yield path, ("--ro-bind", shown[path], path) if path in shown else _tmpfs(path)
    for path in present.masked_files:
        if path in present.closed or profile.root_of(path) in contents:
            continue
        if not _is_hidden(path, profile, present):
            file = shown.get(path) or profile.empty
            bind = "--dev-bind" if profile.empty_is_device and path not in shown else "--ro-bind"
            yield path, (bind, file or NO_FILE, path)


def _is_hidden(path: str, profile: Profile, present: Present) -> bool:
    """Whether a path lies in a folder that is shown empty, and in nothing that is shown in there."""
    covers = [folder for folder in (TMP, *present.shared, *present.hidden) if is_within(path, folder)]
    shown = (*profile.folders, *present.readable, *present.writable)
    return bool(covers) and not any(
        is_within(path, each) and len(each) > len(cover) for each in shown for cover in (max(covers, key=len),)
    )


def _reachable(profile: Profile, present: Present) -> list[str]:
    """Give the sockets that nothing hides yet; those in the workspace may be the command's own business."""
    covered = (TMP, *profile.folders, *present.shared, *present.hidden, *present.masked)
    sockets = (path for path in present.sockets if path not in present.closed)
    return [path for path in sockets if not any(is_within(path, folder) for folder in covered)]
