"""What a sandboxed command may do, and the one extra right that a run can be given."""

from dataclasses import dataclass, replace
from typing import assert_never

from treadle.protocol.tools import Right, SandboxDenial


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a command: processes beside those its user has, open files, and bytes of memory of each process."""

    processes: int = 1024
    open_files: int = 4096
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The rights of a command. Every path is absolute and without `..`.

    `roots` are further folders that are treated like the workspace at `root`; none lies in another. `contents` names
    what is bound in the place of such a folder, where it is not the folder itself. `locks` has one
    file for each of them in their order, as `lock` is for the workspace. `protected` are paths in these folders that
    stay as they are, also when they do not exist: one that ends in `/` is a folder. `masked` are paths that cannot be
    read. `tmp` is a private folder that takes the place of /tmp, and `lock` a file outside the workspace that commands
    of this workspace share; its folder exists. `writable` paths may be written besides the workspace, `readable` ones
    are shown although they lie in a place that is hidden whole.
    """

    root: str
    roots: tuple[str, ...] = ()
    contents: tuple[tuple[str, str], ...] = ()
    change_root: bool = True
    network: bool = False
    protected: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    tmp: str
    lock: str
    locks: tuple[str, ...] = ()
    limits: Limits = Limits()

    @property
    def folders(self) -> tuple[str, ...]:
        """The workspace and the further folders."""
        return (self.root, *self.roots)

    def root_of(self, path: str) -> str:
        """Give the folder of the workspace that a path lies in; empty when it lies in none."""
        return next((folder for folder in self.folders if is_within(path, folder)), "")


def allow(profile: Profile, granted: SandboxDenial) -> Profile:
    """Add to a profile the right that a command lacked; what is to run without a sandbox has no profile."""
    path = granted.target
    match granted.right:
        case Right.UNSANDBOXED:
            raise ValueError("a command without a sandbox has no profile")
        case Right.NETWORK:
            return replace(profile, network=True)
        case Right.READ if path in profile.masked:
            return replace(profile, masked=tuple(mask for mask in profile.masked if mask != path))
        case Right.READ:
            return replace(profile, readable=(*profile.readable, path))
        case Right.WRITE if path in profile.folders:
            return replace(profile, change_root=True)
        case Right.WRITE if path in profile.protected:
            return replace(profile, protected=tuple(entry for entry in profile.protected if entry != path))
        case Right.WRITE:
            return replace(profile, writable=(*profile.writable, path))
        case _:
            assert_never(granted.right)


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both absolute and normal."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
