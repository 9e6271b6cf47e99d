"""What a sandboxed command may do, and the one extra right that a run can be given."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a command: processes beside those its user has, open files, and bytes of memory of each process."""

    processes: int = 1024
    open_files: int = 4096
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The rights of a command. Every path is absolute and without `..`.

    `protected` are paths in the workspace that stay as they are, also when they do not exist: one that ends in `/`
    is a folder. `masked` are paths that cannot be read. `tmp` is a private folder that takes the place of /tmp, and
    `lock` a file outside the workspace that commands of this workspace share; its folder exists. `writable` paths may
    be written besides the workspace, `readable` ones are shown although they lie in a place that is hidden whole.
    """

    root: str
    change_root: bool = True
    network: bool = False
    protected: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    tmp: str
    lock: str
    limits: Limits = Limits()


class RightKind(StrEnum):
    """What a run may be given besides its profile."""

    READ = "read"
    WRITE = "write"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Right:
    """One right by its name; `path` is empty for the network."""

    kind: RightKind
    path: str = ""


def allow(profile: Profile, right: Right) -> Profile:
    """Add one right to a profile."""
    match right.kind:
        case RightKind.NETWORK:
            return replace(profile, network=True)
        case RightKind.READ:
            return replace(profile, masked=tuple(path for path in profile.masked if path != right.path))
        case RightKind.WRITE if right.path == profile.root:
            return replace(profile, change_root=True)
        case RightKind.WRITE if right.path in profile.protected:
            return replace(profile, protected=tuple(path for path in profile.protected if path != right.path))
        case RightKind.WRITE:
            return replace(profile, writable=(*profile.writable, right.path))
        case _:
            assert_never(right.kind)


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both absolute and normal."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
