"""The surroundings of a user's process: programs to read, their own folder to write, and no process of anybody else."""

import os
import pwd
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import treadle
from treadle.door.program import find_bubblewraps
from treadle.door.settings import SERVED_PLACE
from treadle.protocol.errors import ConfigError

_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "opt")
_ETC = (
    *("passwd", "group", "hosts", "host.conf", "hostname", "resolv.conf", "nsswitch.conf", "protocols", "services"),
    *("ssl", "ca-certificates", "pki", "localtime", "timezone", "alternatives", "gitconfig", "mime.types", "terminfo"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
)
"""Of `/etc` what programs need; the rest may be meant for the service alone."""

_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "LD_LIBRARY_PATH")


class UserPlace(Struct, frozen=True, kw_only=True):
    """A user's folder, and the account that their process has: None is the one of the service."""

    folder: Path
    account: tuple[int, int] | None = None

    @property
    def projects(self) -> Path:
        """Where their sessions work, if nothing else is said."""
        return self.folder / "projects"

    @property
    def home(self) -> Path:
        """Where Treadle keeps their log, keys and settings."""
        return self.folder / "treadle"


def user_place(data: Path, name: str, account: str) -> UserPlace:
    """Make the folder of a user, for them alone. Raises `ConfigError`."""
    place = UserPlace(folder=data / "users" / name, account=_account(account))
    try:
        (data / "users").mkdir(parents=True, exist_ok=True)
        for folder in (place.folder, place.projects, place.home, place.folder / "tmp"):
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)
            if place.account is not None:
                os.chown(folder, *place.account, follow_symlinks=False)
        if place.account is not None:
            for above in (data, data / "users"):
                above.chmod(0o711)  # another account goes through it
    except OSError as error:
        raise ConfigError(
            "service-folder", f"The folder of {name} cannot be used.", why=f"{error}.", fix="Name another --data."
        ) from error
    return place


def _account(name: str) -> tuple[int, int] | None:
    if not name:
        return None
    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
        numbers = (found.pw_uid, found.pw_gid)
    except KeyError as error:
        if not name.isdecimal():
            raise ConfigError(
                "service-account",
                f"There is no account {name!r} on this computer.",
                fix="Make it, or name another one.",
            ) from error
        numbers = (int(name), int(name))
    if os.geteuid() != 0 and numbers[0] != os.geteuid():
        raise ConfigError(
            "service-account",
            f"The service cannot become the account {name}.",
            why="Only root can start processes of other accounts.",
            fix="Start it as root, or add the user without --account.",
        )
    return numbers


def confined_command(place: UserPlace, command: Sequence[str]) -> list[str]:
    """Give the command that runs another one in the place of a user. Raises `ConfigError` without bubblewrap."""
    program = next(iter(find_bubblewraps()), "")
    if not program:
        raise ConfigError(
            "service-sandbox",
            "The users of this service cannot be kept apart.",
            why="That takes bubblewrap, which is not installed.",
            fix="Install the package bubblewrap of your system, or Treadle's extra `sandbox`.",
        )
    return [
        program,
        *("--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc"),
        *(("--cap-drop", "ALL") if os.geteuid() == 0 and place.account is None else ()),
        *_system(),
        *("--ro-bind", "/dev/null", str(SERVED_PLACE)),
        *("--dev", "/dev", "--proc", "/proc", "--bind", str(place.folder / "tmp"), "/tmp"),  # noqa: S108 - their own
        *_programs(),
        *("--bind", str(place.folder), str(place.folder), "--chdir", str(place.projects)),
        "--",
        *command,
    ]


def _system() -> Iterator[str]:
    for name in _SYSTEM:
        path = Path("/") / name
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _programs() -> Iterator[str]:
    """Show what Treadle itself is made of, wherever that is."""
    roots = {
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(sys.executable).resolve().parents[1],
        Path(treadle.__file__).resolve().parent,
        *(
            Path(one)
            for one in os.environ.get("PYTHONPATH", "").split(":")
            if one.startswith("/") and Path(one).is_dir()
        ),
    }
    for root in sorted(roots):
        if not root.is_relative_to("/usr"):
            yield from ("--ro-bind", str(root), str(root))


def user_variables(place: UserPlace, passed: Sequence[str]) -> Mapping[str, str]:
    """Give the variables of a user's process; those of the service are not among them, but for what is `passed`."""
    kept = {name: os.environ[name] for name in (*_KEPT, *passed) if name in os.environ}
    return {**kept, "HOME": str(place.folder), "TREADLE_HOME": str(place.home)}


class FolderSize(Struct, frozen=True):
    """What a folder takes on the disk in bytes, and a folder in it that could not be looked into; empty for none."""

    taken: int
    unread: str = ""


def folder_size(folder: Path) -> FolderSize:
    """Add up what a folder takes on the disk. Takes its time."""
    total, unread = 0, ""
    waiting = [folder]
    while waiting:
        inner = waiting.pop()
        try:
            with os.scandir(inner) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
        except FileNotFoundError:  # it went meanwhile
            continue
        except OSError:
            unread = str(inner)
    return FolderSize(total, unread)
