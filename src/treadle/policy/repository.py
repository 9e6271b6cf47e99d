"""Reads a repository's own settings, without git, before git may run in it.

Git looks into repositories that stand in another one, and obeys their settings: where there may be such, it asks.
"""

import posixpath
import re
from collections.abc import Iterator

from treadle.policy.context import MAX_NAMES, FileKind, FileView

_OTHERS = re.compile(rb"\0\0\xe0\0|sdir\0\0\0\0")
"""What an index holds that lists a commit of another repository, or folders instead of what is in them."""

_INERT = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf"
    r"|quotepath|abbrev|compression|sharedrepository|checkstat|trustctime|untrackedcache|longpaths|protecthfs|protectntfs"
    r"|sparsecheckout|sparsecheckoutcone|commitgraph|multipackindex)"
    r"|remote\..*\.(url|fetch|pushurl|push|tagopt|prune|mirror|gh-resolved|partialclonefilter|promisor)"
    r"|branch\..*\.(remote|merge|rebase|pushremote|description|vscode-merge-base|gh-merge-base|github-pr-owner-number)"
    r"|user\.(name|email)|submodule\..*\.(url|active)|submodule\.active|init\.defaultbranch|pull\.(rebase|ff)|push\.default"
    r"|extensions\.(worktreeconfig|objectformat|partialclone|refstorage)|color\..*|advice\..*|gc\.auto|fetch\.prune|index\.version"
    r"|lfs\.repositoryformatversion|feature\.manyfiles"
)
_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$|#|;)")
_HEAD = re.compile(r"ref:\s*refs/.*|[0-9a-f]{40,}\s*", re.DOTALL)
_UNREADABLE = "settings that cannot be read"
_UNSEEN = "repositories in it, whose settings may name programs"
UNKNOWN_SETTINGS = (_UNREADABLE, _UNSEEN)


def surprising_settings(cwd: str, files: FileView, *, looks_into_others: bool = True) -> list[str]:
    """List the settings that git may obey in `cwd` and that are not known to be inert, and what is unknown.

    Most commands look into the repositories that stand in this one.
    """
    repositories = list(_around(cwd, files))
    found = [name for git, common in repositories for name in _surprising(git, common, files)]
    others = looks_into_others and any(_may_hold_others(git, common, files) for git, common in repositories)
    return [*found, _UNSEEN] if others else found


def hooks(cwd: str, files: FileView) -> list[str]:
    """List the hooks that git may run in `cwd`; the samples are none."""
    folders = [posixpath.join(common, "hooks") for _, common in _around(cwd, files) if common]
    return [name for folder in folders for name in files.names(folder) if not name.endswith(".sample")]


def is_inert(git: str, files: FileView) -> bool:
    """Whether a `.git` makes git run nothing and lead nowhere: as `git init` leaves it, perhaps with commits."""
    hooks_folder, config = posixpath.join(git, "hooks"), files.facts(posixpath.join(git, "config"))
    folders = all(part is None or part.kind is FileKind.DIRECTORY for part in map(files.facts, (git, hooks_folder)))
    own = config is not None and config.kind is FileKind.FILE and config.links == 1  # no other name leads to it
    if not folders or not own or _common_directory(git, files) != git or not _is_whole(git, git, files):
        return False
    if files.facts(posixpath.join(git, "config.worktree")) is not None:
        return False
    samples = all(name.endswith(".sample") for name in files.names(hooks_folder))
    return samples and not any(_surprising(git, git, files)) and not _may_hold_others(git, git, files)


def _surprising(git: str, common: str, files: FileView) -> Iterator[str]:
    for path in (f"{common}/config", f"{git}/config.worktree") if common else ():
        text = files.read_config(path)
        if text is not None:
            yield from (key for key in setting_names(text) if not _INERT.fullmatch(key.lower()))
        elif files.facts(path) is not None:
            yield _UNREADABLE
    if not common:
        yield _UNREADABLE


def _may_hold_others(git: str, common: str, files: FileView) -> bool:
    """Whether other repositories may stand in this one, or their settings in its directories.

    The index names them. One in parts may, and so may one that holds what looks like their mark.
    """
    names = [name for each in {git, common} for name in files.names(each)]
    index = files.read_index(posixpath.join(git, "index"))
    kept = any(name == "modules" or name.startswith("sharedindex.") for name in names)
    return kept or len(names) >= MAX_NAMES or index is None or _OTHERS.search(index) is not None


def _around(cwd: str, files: FileView) -> Iterator[tuple[str, str]]:
    """Give what git may take for the repository around `cwd`: it goes on upwards where one is not whole.

    Each is its directory and the one that it shares its settings with, empty where that cannot be told.
    """
    folder = cwd
    while True:
        parts = [files.facts(posixpath.join(folder, name)) is not None for name in ("HEAD", "objects", "commondir")]
        bare = folder if parts[0] and any(parts[1:]) else None
        for git in (_git_directory(folder, files), bare):
            if git is not None:
                common = _common_directory(git, files) if git else ""
                yield git, common
                if common and _is_whole(git, common, files):
                    return
        if folder == posixpath.dirname(folder):
            return
        folder = posixpath.dirname(folder)


def _is_whole(git: str, common: str, files: FileView) -> bool:
    """Whether git takes a directory for a repository beyond doubt, and looks no further up."""
    head = files.read_config(posixpath.join(git, "HEAD"))
    parts = [files.facts(posixpath.join(common, name)) for name in ("objects", "refs")]
    enterable = all(part is not None and part.kind is FileKind.DIRECTORY and part.mode & 0o100 for part in parts)
    return head is not None and _HEAD.fullmatch(head) is not None and enterable


def _git_directory(folder: str, files: FileView) -> str | None:
    """Find the `.git` of a folder, which may be a file that names a directory elsewhere; empty where it is unknown."""
    git = posixpath.join(folder, ".git")
    facts = files.facts(files.resolve(git))
    if facts is None or facts.kind is not FileKind.FILE:
        return git if facts is not None else None
    named = _named(files.read_config(git), "gitdir: ")
    return files.resolve(posixpath.join(folder, named)) if named else ""


def _common_directory(git: str, files: FileView) -> str:
    path = posixpath.join(git, "commondir")
    if files.facts(path) is None:
        return git
    named = _named(files.read_config(path), "")
    return files.resolve(posixpath.join(git, named)) if named else ""


def _named(text: str | None, before: str) -> str | None:
    """Read the path in a file that holds nothing else, as git does; None where that is not certain."""
    if text is None or not text.startswith(before) or "\ufffd" in text or "\0" in text:
        return None
    return text[len(before) :].rstrip("\r\n") or None


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
