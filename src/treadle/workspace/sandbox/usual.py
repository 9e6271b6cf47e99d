"""The usual profile of each confinement: what commands must leave alone, cannot read, and need to find."""

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from treadle.protocol.rebase_steps import OPEN_STEPS, run_programs
from treadle.protocol.tools import Confinement
from treadle.workspace.files.paths import Listed, NoFolder, Unlisted, first_closed, list_folder
from treadle.workspace.files.private_file import make_private_folder, write_private
from treadle.workspace.sandbox.home import Home, home_for
from treadle.workspace.sandbox.owned import Installer
from treadle.workspace.sandbox.profile import NO_FILE, CommandLimits, Profile, is_within
from treadle.workspace.sandbox.survey import Survey

_GIB = 1024**3
_MEMORY, _FILE, _DISK, _SECONDS = 4 * _GIB, 8 * _GIB, 20 * _GIB, 24 * 3600

_HOME_SECONDS = 10
"""How long what was found in the home directory is taken for what is there."""

_TELLING = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "XDG_CACHE_HOME")
"""The variables that say where programs and caches are."""

REPOSITORY_PARTS = (
    *("hooks", "config", "config.worktree", "commondir", "gitdir", "modules"),
    *("info/attributes", "info/grafts", "objects/info/alternates", "objects/info/http-alternates"),
)
"""What in a repository's own data makes git run or read something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a workspace lies: its user's home, Treadle's own data, and a private folder of the session in there.

    `settings` is the folder of the user's settings of Treadle.
    """

    home: str
    data: str
    private: str
    settings: str = ""
    variables: Mapping[str, str]


def profile_for(
    kind: Confinement,
    folders: Sequence[str],
    around: Surroundings,
    surveys: Sequence[Survey],
    *,
    instead: Sequence[tuple[str, str]] = (),
    owned: AbstractSet[Installer] = frozenset(),
) -> Profile:
    """Build the profile of a confinement other than `open`, without a network.

    `folders` are the workspace and its further folders, and `surveys` what there is in each. `instead` pairs secrets
    with files of their committed text, and `owned` names the tools whose installed programs the line may change.
    """
    if kind is Confinement.OPEN:
        raise ValueError("a command without a sandbox has no profile")
    root, *roots = folders
    home = _home(
        around.home,
        around.private,
        tuple((name, around.variables.get(name, "")) for name in _TELLING),
        (tuple(folders), tuple(chain.from_iterable(found.python for found in surveys))),
        age=int(time.monotonic() / _HOME_SECONDS),
    )
    data = os.path.realpath(around.data)
    known = tuple(chain.from_iterable(map(repositories_of, folders)))
    repositories = known if kind is Confinement.GIT else ()
    return Profile(
        root=root,
        roots=tuple(roots),
        change_root=kind is not Confinement.LOOK,
        protected=(
            *(path for found in surveys for path in _found_in(found, owned) if path not in repositories),
            *(_on_path(folders, around.variables) if not owned else ()),
            *repository_parts(repositories),
        ),
        masked=(
            *(*home.masked, data),
            *chain.from_iterable((*found.secrets, *found.unlisted) for found in surveys),
        ),
        instead=tuple(instead),
        empty=(_device if kind is Confinement.GIT else _empty_file)(f"{around.private}/sandbox"),
        empty_is_device=kind is Confinement.GIT,
        hidden=home.hidden,
        readable=tuple(folder for folder in known if not any(is_within(folder, root) for root in folders)),
        shown=home.shown,
        replaced=home.replaced,
        scratch=home.scratch,
        writable=tuple(folder for folder in repositories if not any(is_within(folder, root) for root in folders)),
        own=tuple(os.path.realpath(folder) for folder in (around.data, around.settings) if folder),
        tmp=str(Path(around.private, "tmp")),
        private=f"{around.private}/sandbox",
        unix_sockets=kind is not Confinement.GIT,
        limits=usual_limits(),
    )


def _device(folder: str) -> str:
    """Give a device without text. Root gets one of its own: the modes of the machine's are for everybody."""
    own = Path(folder, "null")
    if os.geteuid() != 0:
        return NO_FILE
    try:
        make_private_folder(own.parent)
        if not own.exists():
            os.mknod(own, stat.S_IFCHR, os.makedev(1, 3))
        own.chmod(0o666)  # a command before may have set another one
        with own.open("rb"):
            return str(own)
    except OSError:  # root of a container may make none, and some file systems have none
        return NO_FILE


def _empty_file(folder: str) -> str:
    """Give the path of an empty file that can be read and not written."""
    path = Path(folder, "empty")
    if not path.exists():
        write_private(path, b"", mode=0o400)
    return str(path)


@lru_cache(maxsize=8)
def _home(
    home: str,
    private: str,
    variables: tuple[tuple[str, str], ...],
    folders: tuple[tuple[str, ...], tuple[str, ...]],
    *,
    age: int,  # noqa: ARG001 - so that what was found is looked for again
) -> Home:
    roots, environments = folders
    return home_for(home, private, dict(variables), roots=roots, environments=environments)


def usual_limits() -> CommandLimits:
    """Give the bounds of a command: of the memory 4 GiB or half of the machine's, whichever is less."""
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        whole = 2 * _MEMORY
    return CommandLimits(memory=min(_MEMORY, whole // 2), file=_FILE, disk=_DISK, seconds=_SECONDS)


def _found_in(found: Survey, owned: AbstractSet[Installer]) -> Iterator[str]:
    """Give what stays as it is: control files, and what interpreters and shells pick up by themselves."""
    yield from found.control_paths
    yield from found.unlisted
    yield from found.python if Installer.PYTHON not in owned else ()
    yield from found.node if Installer.NODE not in owned else ()


def _on_path(folders: Sequence[str], variables: Mapping[str, str]) -> Iterator[str]:
    """Give the folders of the workspace in which shells look for programs."""
    for folder in map(os.path.normpath, variables.get("PATH", "").split(os.pathsep)):
        if folder not in folders and any(is_within(folder, root) for root in folders):
            yield folder


def repository_parts(repositories: Sequence[str]) -> Iterator[str]:
    """Give the parts of repositories that stay as they are, where they exist; also of their linked worktrees.

    Of what cannot be looked into it is not known which parts it holds: it is one as a whole.
    """
    for repository in repositories:
        if isinstance(list_folder(f"{repository}/worktrees"), Unlisted):
            yield first_closed(repository, "worktrees/.") or f"{repository}/worktrees"
        for folder in _with_linked(repository):
            for name in REPOSITORY_PARTS:
                if closed := first_closed(folder, name):
                    yield closed
                elif os.path.lexists(path := f"{folder}/{name}"):
                    yield path


def _with_linked(repository: str) -> list[str]:
    """Give the folder of a repository's data, and those in it of its linked worktrees."""
    match list_folder(f"{repository}/worktrees"):
        case Listed(entries=entries):
            return [repository, *(f"{repository}/worktrees/{entry.name}" for entry in entries)]
        case Unlisted() | NoFolder():
            return [repository]


def open_steps(repositories: Sequence[str]) -> Iterator[str]:
    """Give where repositories, and their linked worktrees, keep the steps of an open rebase."""
    return (f"{folder}/{OPEN_STEPS}" for one in repositories for folder in _with_linked(one))


def steps_that_run_programs(repositories: Sequence[str]) -> Iterator[str]:
    """Give the files with steps of open rebases that run programs, or the folder that keeps them where it is closed.

    Git itself rewrites them with each step, so they do not stay as they are, as other parts do.
    """
    for folder in (folder for one in repositories for folder in _with_linked(one)):
        if closed := first_closed(folder, OPEN_STEPS):
            yield closed
        elif os.path.lexists(path := f"{folder}/{OPEN_STEPS}"):
            try:
                steps = Path(path).read_text(errors="replace")
            except OSError:
                steps = None
            if run_programs(steps):
                yield path


def repositories_of(root: str) -> Iterator[str]:
    """Give the folders with git's data for a workspace at the top of a repository, also of a linked worktree.

    A `.git` file can name any folder. So it is followed only where what it names leads back to this workspace. Data
    that cannot be listed are none that a command may change.
    """
    at = Path(root, ".git")
    match list_folder(at):
        case Listed():
            yield str(at)
            return
        case Unlisted():
            return
        case NoFolder():
            pass
    try:
        named = Path(root, at.read_text().removeprefix("gitdir:").strip()).resolve()
        back = (named / "gitdir").read_text().strip()
        shared = Path(named, (named / "commondir").read_text().strip()).resolve()
    except (OSError, ValueError):
        return
    leads_back = os.path.realpath(back) == os.path.realpath(at) and named.parent == shared / "worktrees"
    if leads_back and isinstance(list_folder(shared), Listed):
        yield str(shared)
