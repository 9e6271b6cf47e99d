"""What a sandboxed command may do, and the one extra right that a run can be given."""

from dataclasses import dataclass, replace
from typing import assert_never

from treadle.protocol.opened_paths import why_never_opened
from treadle.protocol.tools import Right, SandboxDenial

NO_FILE = "/dev/null"
"""What has no text, and is no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLimits:
    """Bounds of a command with all that it starts; None and 0 stand for none.

    `memory` (bytes), `processes`, `disk` (bytes by which the free space may fall meanwhile) and `seconds` are watched,
    `file` (bytes of one file) and `open_files` of one process are the kernel's to keep.
    """

    processes: int = 1024
    open_files: int = 4096
    memory: int = 0
    file: int = 0
    disk: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The rights of a command. Every path is absolute, resolved and without `..`; one that is missing is left out.

    `roots` are further folders that are treated like the workspace at `root`; none lies in another. `contents` names
    what is bound in the place of such a folder, to be written, where it is not the folder itself.

    - `protected` are paths in these folders, or in `writable` ones, that stay as they are.
    - `masked` are paths that cannot be read. A file shows what `instead` names for it, or else the file `empty`; where
      that is a device, git can add it to no commit.
    - `hidden` folders are shown empty and closed, but for what lies in them and is named here.
    - `readable` paths are shown although they lie in such a place, and so are `shown` ones, in which no link is;
      `replaced` are files shown there with another text.
    - `scratch` folders are writable and private: each shows a folder of the session's own, or itself beside a copy.
    - `writable` paths may be written besides the workspace.
    - `devices` can be used besides the harmless ones that every command has.
    - Without `unix_sockets` none can be made: it could hand an open folder to another command of the session.
    - `own` is Treadle's, its data before its settings: no right opens it, nor anything in it.
    - `cwd` is where the command runs, empty for the workspace itself.
    - `tmp` is a private folder that takes the place of /tmp, `private` one for what the sandbox itself needs.
    """

    root: str
    roots: tuple[str, ...] = ()
    contents: tuple[tuple[str, str], ...] = ()
    change_root: bool = True
    network: bool = False
    protected: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    empty: str = ""
    empty_is_device: bool = False
    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    scratch: tuple[tuple[str, str], ...] = ()
    writable: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    tmp: str
    private: str
    unix_sockets: bool = True
    cwd: str = ""
    limits: CommandLimits = CommandLimits()

    @property
    def folders(self) -> tuple[str, ...]:
        """The workspace and the further folders."""
        return (self.root, *self.roots)

    def root_of(self, path: str) -> str:
        """Give the folder of the workspace that a path lies in; empty when it lies in none."""
        return next((folder for folder in self.folders if is_within(path, folder)), "")

    @property
    def kept(self) -> tuple[str, ...]:
        """What no folder holds that is opened for the sake of something in it."""
        return (*self.hidden, *self.own, *self.folders, *self.masked)

    def why_never_opened(self, path: str) -> str:
        """Say why no right opens a resolved path, as a clause; empty where one can, as in the workspace."""
        if self.root_of(path):
            return ""
        return why_never_opened(path, homes=self.hidden, own=self.own, roots=self.folders)


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
        case Right.WRITE:
            kept = tuple(entry for entry in profile.protected if entry != path)
            masked = tuple(mask for mask in profile.masked if mask != path)
            return replace(profile, protected=kept, masked=masked, writable=(*profile.writable, path))
        case _:
            assert_never(granted.right)


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both absolute and normal."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
