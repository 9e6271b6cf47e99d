"""Reads the settings of a repository that is not trusted, without git, before git may read in it.

Only a repository of the usual form is looked through: a folder `.git` that is whole. Of any other one it is unknown
what git would obey there. Git looks into repositories that stand in another one, too: where there may be such, it asks.
"""

import posixpath
import re

from treadle.policy.decision_context import MAX_NAMES, FileKind, FileView

_INNER, _FOLDERS = b"\0\0\xe0\0", b"sdir\0\0\0\0"
"""What an index holds that lists a commit of another repository, and folders instead of what is in them."""

_INERT = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol)"
    r"|remote\..*\.(url|fetch|pushurl|push|tagopt|prune|gh-resolved|partialclonefilter|promisor)"
    r"|branch\..*\.(remote|merge|rebase|pushremote|description|vscode-merge-base|gh-merge-base|github-pr-owner-number)"
    r"|user\.(name|email)|init\.defaultbranch|pull\.(rebase|ff)|push\.default|extensions\.(objectformat|partialclone)"
    r"|color\..*|advice\..*|lfs\.repositoryformatversion"
)
_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$|#|;)")
_HEAD = re.compile(r"ref:\s*refs/.*|[0-9a-f]{40,}\s*", re.DOTALL)
_SUBMODULES = "modules"
_ODD = re.compile(r"config\.worktree|sharedindex\..*")
UNREADABLE_SETTINGS = "settings that cannot all be read"
INNER_REPOSITORIES = "settings of repositories in it, such as submodules, or what looks like them"


def surprising_settings(cwd: str, files: FileView) -> list[str]:
    """List what git may run or obey in `cwd` that is not known to be inert: settings, hooks, and what is unknown."""
    folder = cwd
    while files.facts(posixpath.join(folder, ".git")) is None:
        if files.facts(posixpath.join(folder, "HEAD")) is not None:
            return [UNREADABLE_SETTINGS]
        if folder == posixpath.dirname(folder):
            return []
        folder = posixpath.dirname(folder)
    git = _followed(folder, ".git", "gitdir: ", files)
    common = _followed(git, "commondir", "", files) if files.facts(posixpath.join(git, "commondir")) else git
    head, text = files.read_config(posixpath.join(git, "HEAD")), files.read_config(posixpath.join(common, "config"))
    parts = [files.facts(path) for path in (git, posixpath.join(common, "objects"), posixpath.join(common, "refs"))]
    is_whole = all(part is not None and part.kind is FileKind.DIRECTORY and part.mode & 0o100 for part in parts)
    names, index = {*files.names(git), *files.names(common)}, files.read_index(posixpath.join(git, "index"))
    is_usual = len(names) < MAX_NAMES and not any(map(_ODD.fullmatch, names))
    if not (is_whole and is_usual and head and _HEAD.fullmatch(head)) or index is None or _FOLDERS in index:
        return [UNREADABLE_SETTINGS]
    if _SUBMODULES in names or _INNER in index:
        return [INNER_REPOSITORIES]
    found = [f"the setting {key}" for key in setting_names(text or "") if not _INERT.fullmatch(key.lower())]
    hooks = files.names(posixpath.join(common, "hooks"))
    return [*found, *(f"the hook {name}" for name in hooks if not name.endswith(".sample"))]


def is_inert(git: str, files: FileView) -> bool:
    """Whether a `.git` makes git run nothing and lead nowhere: as `git init` leaves it, perhaps with commits."""
    config, hooks = files.facts(posixpath.join(git, "config")), files.facts(posixpath.join(git, "hooks"))
    folders = all(part is None or part.kind is FileKind.DIRECTORY for part in (files.facts(git), hooks))
    own = config is not None and config.kind is FileKind.FILE and config.links == 1  # no other name leads to it
    alone = files.facts(posixpath.join(git, "commondir")) is None
    return folders and own and alone and not surprising_settings(posixpath.dirname(git), files)


def _followed(folder: str, name: str, before: str, files: FileView) -> str:
    """Give the directory of that name, or the one that a file of that name holds; the file where it is unknown."""
    path = posixpath.join(folder, name)
    facts = files.facts(files.resolve(path))
    text = files.read_config(path) if facts is not None and facts.kind is FileKind.FILE else None
    if text is None or not text.startswith(before) or "\0" in text or "\ufffd" in text:
        return path
    return files.resolve(posixpath.join(folder, text.removeprefix(before).rstrip("\r\n")))


def setting_names(text: str) -> list[str]:
    """List the full names of the settings in a git configuration text; a line that cannot be read is listed itself.

    A line ends where git ends it. One that goes on in the next line cannot be read: what follows belongs to its value.
    """
    names: list[str] = []
    section = ""
    for line in text.split("\n"):
        head = _SECTION.match(line)
        if head is not None:
            section = head[1] if head[2] is None else f"{head[1]}.{head[2]}"
        rest = line[head.end() if head is not None else 0 :].strip()
        if rest and not rest.startswith(("#", ";")):
            key = _KEY.match(rest)
            is_whole = bool(section) and not rest.endswith("\\")
            names.append(f"{section}.{key[1]}" if key is not None and is_whole else f"? {rest[:60]}")
    return names
