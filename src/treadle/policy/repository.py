"""Which repository git uses in a folder, and what it would run of it: read without git, before git may read in it.

Only a repository of the usual form is looked through: a folder with git's data that is whole. Of any other one it is
unknown what git would obey there. Git looks into repositories that stand in another one, too: where there may be such,
it asks.
"""

import posixpath
import re

from msgspec import Struct

from treadle.policy.decision_context import MAX_NAMES, FileKind, FileView, PolicyContext, is_below
from treadle.policy.marks import is_static
from treadle.protocol.inert_settings import acting_settings
from treadle.protocol.protected_names import GIT_DATA_NAMES
from treadle.protocol.rebase_steps import OPEN_STEPS, run_programs

_INNER, _FOLDERS = b"\0\0\xe0\0", b"sdir\0\0\0\0"
"""What an index holds that lists a commit of another repository, and folders instead of what is in them."""

_HEAD = re.compile(r"ref:\s*refs/.*|[0-9a-f]{40,}\s*", re.DOTALL)
_SUBMODULES = "modules"
_ODD = re.compile(r"config\.worktree|sharedindex\..*")
UNREADABLE_SETTINGS = "settings that cannot all be read"
INNER_REPOSITORIES = "settings of repositories in it, such as submodules, or what looks like them"


class GitData(Struct, frozen=True):
    """A repository: the folder at its `top`, the one with its `own` data, and the one with what worktrees share."""

    top: str
    own: str
    shared: str


def git_data(cwd: str, files: FileView) -> GitData | None:
    """Find the repository that git uses in a folder: by a `.git` or by its form, in the folder or above it."""
    top = files.resolve(cwd)
    while not (own := _own_data(top, files)):
        if top == posixpath.dirname(top):
            return None
        top = posixpath.dirname(top)
    is_linked = files.facts(posixpath.join(own, "commondir")) is not None
    return GitData(top, own, _followed(own, "commondir", "", files) if is_linked else own)


def _own_data(folder: str, files: FileView) -> str:
    """Give the folder with the data of the repository at the top of a folder; empty where none is, whole or not."""
    if files.facts(posixpath.join(folder, ".git")) is not None:
        return _followed(folder, ".git", "gitdir: ", files)
    head, *others = (files.facts(posixpath.join(folder, name)) for name in GIT_DATA_NAMES)
    return folder if head is not None and any(others) else ""


def surprising_settings(cwd: str, files: FileView) -> list[str]:
    """List what git may run or obey in `cwd` that is not known to be inert: settings, hooks, and what is unknown."""
    data = git_data(cwd, files)
    return [] if data is None else _surprising(data, files)


def runs_untrusted(cwd: str, context: PolicyContext) -> bool:
    """Whether git may run something of a repository that nobody was asked about, as nothing acts in the workspace.

    That is one below the workspace or elsewhere; one of the workspace itself came later.
    """
    if not context.never_asked or not is_static(cwd):
        return context.never_asked and not context.confined
    root, *others = map(context.files.resolve, context.roots)
    data = git_data(cwd, context.files)
    is_trusted = data is None or is_below(root, (data.top,)) or is_below(data.top, others)
    return data is not None and not is_trusted and bool(_surprising(data, context.files))


def is_inert(git: str, files: FileView) -> bool:
    """Whether git's data make it run nothing and lead nowhere: as `git init` leaves them, perhaps with commits."""
    config, hooks = files.facts(posixpath.join(git, "config")), files.facts(posixpath.join(git, "hooks"))
    folders = all(part is None or part.kind is FileKind.DIRECTORY for part in (files.facts(git), hooks))
    own = config is not None and config.kind is FileKind.FILE and config.links == 1  # no other name leads to it
    alone = files.facts(posixpath.join(git, "commondir")) is None
    return folders and own and alone and not _surprising(GitData(git, git, git), files)


def _surprising(data: GitData, files: FileView) -> list[str]:
    git, common = data.own, data.shared
    head, text = files.read_config(posixpath.join(git, "HEAD")), files.read_config(posixpath.join(common, "config"))
    parts = [files.facts(path) for path in (git, posixpath.join(common, "objects"), posixpath.join(common, "refs"))]
    is_whole = all(part is not None and part.kind is FileKind.DIRECTORY and part.mode & 0o100 for part in parts)
    listed = [files.names(folder) for folder in (git, common, posixpath.join(common, "hooks"))]
    own, shared, hooks = (found or () for found in listed)
    is_whole = is_whole and all(found is not None and len(found) < MAX_NAMES for found in listed)
    names, index = {*own, *shared}, files.read_index(posixpath.join(git, "index"))
    is_read = text is not None or files.facts(posixpath.join(common, "config")) is None
    is_usual = is_read and not any(map(_ODD.fullmatch, names))
    if not (is_whole and is_usual and head and _HEAD.fullmatch(head)) or index is None or _FOLDERS in index:
        return [UNREADABLE_SETTINGS]
    if _SUBMODULES in names or _INNER in index:
        return [INNER_REPOSITORIES]
    found = (f"the setting {key}" for key in acting_settings(text or ""))
    return [*found, *(f"the hook {name}" for name in hooks if not name.endswith(".sample"))]


def runs_at_next_step(cwd: str, files: FileView) -> bool:
    """Whether a rebase that is open in the repository around `cwd` goes on with steps that run programs, or may."""
    data = git_data(cwd, files)
    steps = "" if data is None else posixpath.join(data.own, OPEN_STEPS)
    return bool(steps) and files.facts(posixpath.dirname(steps)) is not None and run_programs(files.read_config(steps))


def _followed(folder: str, name: str, before: str, files: FileView) -> str:
    """Give the directory of that name, or the one that a file of that name holds; the file where it is unknown."""
    path = posixpath.join(folder, name)
    facts = files.facts(files.resolve(path))
    text = files.read_config(path) if facts is not None and facts.kind is FileKind.FILE else None
    if text is None or not text.startswith(before) or "\0" in text or "\ufffd" in text:
        return path
    return files.resolve(posixpath.join(folder, text.removeprefix(before).rstrip("\r\n")))
