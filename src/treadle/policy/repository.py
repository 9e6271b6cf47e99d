"""Reads a repository's own settings, without git, before git may run in it.

Git looks into repositories that stand in another one, and obeys their settings: where there may be such, it asks.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from treadle.policy.context import MAX_NAMES, FileKind, FileView

_COMMIT = (0o160000).to_bytes(4, "big")
"""What the index calls a commit of another repository; it always stands there in plain."""

_LEFT_OUT = b"sdir\0\0\0\0"
"""The mark of an index that holds folders instead of what is in them."""

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
_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)')
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$|#|;)")
_HEAD = re.compile(r"ref:\s*refs/.*|[0-9a-f]{40,}\s*", re.DOTALL)
_UNREADABLE = "settings that cannot be read"
_UNSEEN = "repositories in it, whose settings may name programs"
UNKNOWN_SETTINGS = (_UNREADABLE, _UNSEEN)


@dataclass(frozen=True, slots=True)
class _Repository:
    """A git directory, and the one that it shares its settings with; None where that cannot be read."""

    git: str
    common: str | None


def surprising_settings(cwd: str, files: FileView, *, looks_into_others: bool = True) -> list[str]:
    """List the settings that git may obey in `cwd` and that are not known to be inert, and what is unknown.

    Most commands look into the repositories that stand in this one.
    """
    repositories = list(_around(cwd, files))
    found = [name for repository in repositories for name in _surprising(repository, files)]
    others = looks_into_others and any(_may_hold_others(repository, files) for repository in repositories)
    return [*found, *([_UNSEEN] if others else [])]


def hooks(cwd: str, files: FileView) -> list[str]:
    """List the hooks that git may run in `cwd`; the samples are none."""
    folders = [posixpath.join(each.common, "hooks") for each in _around(cwd, files) if each.common]
    return [name for folder in folders for name in files.names(folder) if not name.endswith(".sample")]


def _surprising(repository: _Repository, files: FileView) -> Iterator[str]:
    if repository.common is None:
        yield _UNREADABLE
        return
    for path in (f"{repository.common}/config", f"{repository.git}/config.worktree"):
        text = files.read_config(path)
        if text is not None:
            yield from (key for key in setting_names(text) if not _INERT.fullmatch(key.lower()))
        elif files.facts(path) is not None:
            yield _UNREADABLE


def _may_hold_others(repository: _Repository, files: FileView) -> bool:
    """Whether other repositories may stand in this one, or their settings in its directories.

    The index names them. One in parts may, and so may one that holds what looks like their mark.
    """
    directories = dict.fromkeys((repository.git, repository.common or repository.git))
    names = [name for each in directories for name in files.names(each)]
    if len(names) >= MAX_NAMES or any(name.startswith("sharedindex.") for name in names):
        return True
    index = files.read_index(posixpath.join(repository.git, "index"))
    kept = any(files.names(posixpath.join(each, "modules")) for each in directories)
    return kept or index is None or _LEFT_OUT in index or _COMMIT in index


def _around(cwd: str, files: FileView) -> Iterator[_Repository]:
    """Give what git may take for the repository around `cwd`: it goes on upwards where one is not whole."""
    folder = cwd
    while True:
        for git in (_git_directory(folder, files), _bare_repository(folder, files)):
            if git is not None:
                repository = _Repository(git, _common_directory(git, files) if git else None)
                yield repository
                if _is_whole(repository, files):
                    return
        if folder == posixpath.dirname(folder):
            return
        folder = posixpath.dirname(folder)


def _bare_repository(folder: str, files: FileView) -> str | None:
    parts = [files.facts(posixpath.join(folder, name)) is not None for name in ("HEAD", "objects", "commondir")]
    return folder if parts[0] and any(parts[1:]) else None


def _is_whole(repository: _Repository, files: FileView) -> bool:
    """Whether git takes a directory for a repository beyond doubt, and looks no further up."""
    if repository.common is None:
        return False
    head = files.read_config(posixpath.join(repository.git, "HEAD"))
    parts = [files.facts(posixpath.join(repository.common, name)) for name in ("objects", "refs")]
    enterable = all(part is not None and part.kind is FileKind.DIRECTORY and part.mode & 0o100 for part in parts)
    return head is not None and _HEAD.fullmatch(head) is not None and enterable


def _git_directory(folder: str, files: FileView) -> str | None:
    """Find the `.git` of a folder, which may be a file that names a directory elsewhere; empty where it is unknown."""
    git = posixpath.join(folder, ".git")
    facts = files.facts(git)
    if facts is not None and facts.kind is FileKind.LINK:
        facts = files.facts(files.resolve(git))
    if facts is None or facts.kind is not FileKind.FILE:
        return git if facts is not None else None
    named = _named(files.read_config(git), "gitdir: ")
    return files.resolve(posixpath.join(folder, named)) if named else ""


def _common_directory(git: str, files: FileView) -> str | None:
    path = posixpath.join(git, "commondir")
    if files.facts(path) is None:
        return git
    named = _named(files.read_config(path), "")
    return files.resolve(posixpath.join(git, named)) if named else None


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
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        if line.rstrip("\r").endswith("\\"):
            names.append(f"? {line.strip()[:60]}")
        head = _SECTION.fullmatch(line)
        rest = line
        if head is not None:
            section = head.group(1) + (f".{head.group(2)}" if head.group(2) is not None else "")
            rest = head.group(3)
        if not rest.strip() or rest.lstrip().startswith(("#", ";")):
            continue
        key = _KEY.match(rest)
        names.append(f"{section}.{key.group(1)}" if key and section else f"? {rest.strip()[:60]}")
    return names
