"""Reads a repository's own settings, without git, before git may run in it."""

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from treadle.policy.context import MAX_NAMES, FileKind, FileView

_MODE = (0o160000).to_bytes(4, "big")
"""What the index calls a commit of another repository; it always stands there in plain."""

_NAMES_AFTER = (38, 50)
"""Bytes from the mode to the name with SHA-1 and with SHA-256; two more where an entry has more flags."""

_LONGEST_NAME = 4096
_VERSION = slice(4, 8)
_PACKED_NAMES = 4
_LEFT_OUT = b"sdir\0\0\0\0"
"""The mark of an index that holds folders instead of what is in them."""

SHARED = b"link"
"""The mark of an index that goes on in another file; a name may hold it too."""


def gitlinks(index: bytes) -> Iterator[str] | None:
    """Give every path below which the index may expect a repository, and more; None where it cannot be told."""
    if _LEFT_OUT in index:
        return None
    places = list(_places(index))
    if places and int.from_bytes(index[_VERSION], "big") >= _PACKED_NAMES:
        return None
    return (name for at in places for name in _names(index, at))


def _places(index: bytes) -> Iterator[int]:
    at = index.find(_MODE)
    while at >= 0:
        yield at
        at = index.find(_MODE, at + 1)


def _names(index: bytes, mode_at: int) -> Iterator[str]:
    for after in _NAMES_AFTER:
        for more in (0, 2):
            start = mode_at + after + more
            end = index.find(b"\0", start, start + _LONGEST_NAME + 1)
            if end > start:
                yield os.fsdecode(index[start:end])


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


_WORKTREE = "core.worktree"
_WORKTREE_LINE = re.compile(r"(?mi)^\s*(?:\[core\]\s*)?worktree\s*=[ \t]*([\w./+-]+)[ \t]*$")
"""Where the files of a repository are, spelled as git does it: nothing quoted, nothing after it."""

_HEAD = re.compile(r"ref:\s*refs/.*|[0-9a-f]{40,}\s*", re.DOTALL)
_MOST_REPOSITORIES = 64
_MOST_KEPT = 1000
_MOST_LINKS = 20_000
_UNREADABLE = "? (its settings cannot be read)"
_UNSEEN = "? (which repositories are in it cannot be found out)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repository:
    """A git directory, the one that it shares its settings with, and the folder that its files are in."""

    git: str
    common: str
    folder: str


def surprising_settings(cwd: str, files: FileView) -> list[str]:
    """List the settings that git may obey in `cwd` and that are not known to be inert; `?` marks an unreadable one.

    These are the settings of the repository around `cwd` and of every repository in it that git looks into.
    """
    repositories, found = _obeyed(cwd, files)
    homes = {each.git: files.resolve(each.folder) for each in repositories}
    return [*found, *(name for each in repositories for name in _surprising(each, homes, files))]


def hooks(cwd: str, files: FileView) -> list[str]:
    """List the hooks that git may run in `cwd`; the samples are none."""
    repositories, _ = _obeyed(cwd, files)
    names = [name for each in repositories for name in files.names(posixpath.join(each.common, "hooks"))]
    return [name for name in dict.fromkeys(names) if not name.endswith(".sample")]


def _surprising(repository: _Repository, homes: Mapping[str, str], files: FileView) -> Iterator[str]:
    kept = _kept(repository, files)
    if kept is None:
        yield _UNSEEN
    places = [(repository.common, "config"), (repository.git, "config.worktree")]
    places += [(each, name) for each in kept or () for name in ("config", "config.worktree")]
    for git, name in places:
        path = posixpath.join(git, name)
        text = files.read_config(path)
        if text is not None:
            surprising = [key for key in setting_names(text) if not _INERT.fullmatch(key.lower())]
            if _WORKTREE in surprising and _leads_home(text, git, homes, files):
                surprising.remove(_WORKTREE)
            yield from surprising
        elif files.facts(path) is not None:
            yield _UNREADABLE


def _leads_home(text: str, git: str, homes: Mapping[str, str], files: FileView) -> bool:
    """Whether the files of a git directory are said to be where it was found from, as git says it of a submodule."""
    named = _WORKTREE_LINE.findall(text)
    return len(named) == 1 and files.resolve(posixpath.join(git, named[0])) == homes.get(git)


def _kept(repository: _Repository, files: FileView) -> list[str] | None:
    """List where submodules may be kept, checked out or not; a name may have slashes. None where there are too many."""
    kept: list[str] = []
    waiting = [posixpath.join(each, "modules") for each in dict.fromkeys((repository.common, repository.git))]
    while waiting:
        folder = waiting.pop()
        for name in files.names(folder):
            inner = posixpath.join(folder, name)
            kept.append(inner)
            if len(kept) > _MOST_KEPT:
                return None
            is_repository = files.facts(posixpath.join(inner, "HEAD")) is not None
            waiting.append(posixpath.join(inner, "modules") if is_repository else inner)
    return kept


def _obeyed(cwd: str, files: FileView) -> tuple[list[_Repository], list[str]]:
    """Find the repositories that git would read in `cwd`, and what about them cannot be found out."""
    repositories: list[_Repository] = []
    problems: list[str] = []
    waiting = list(_around(cwd, files, problems))
    seen = set(waiting)
    while waiting:
        if len(repositories) == _MOST_REPOSITORIES:
            return repositories, [*problems, _UNSEEN]
        repository = waiting.pop()
        repositories.append(repository)
        nested = _nested(repository, files)
        if nested is None:
            problems.append(_UNSEEN)
            continue
        for folder in nested:
            found = _repository_in(folder, files, problems)
            if found is not None and found not in seen:
                seen.add(found)
                waiting.append(found)
    return repositories, problems


def _around(cwd: str, files: FileView, problems: list[str]) -> Iterator[_Repository]:
    """Give what git may take for the repository around `cwd`: it goes on upwards where one is not whole."""
    folder = cwd
    while True:
        for found in (_repository_in(folder, files, problems), _bare_repository(folder, files, problems)):
            if found is not None:
                yield found
                if _is_whole(found, files):
                    return
        if folder == posixpath.dirname(folder):
            return
        folder = posixpath.dirname(folder)


def _bare_repository(folder: str, files: FileView, problems: list[str]) -> _Repository | None:
    parts = [files.facts(posixpath.join(folder, name)) is not None for name in ("HEAD", "objects", "commondir")]
    if not parts[0] or not any(parts[1:]):
        return None
    return _Repository(git=folder, common=_common_directory(folder, files, problems), folder=folder)


def _is_whole(repository: _Repository, files: FileView) -> bool:
    """Whether git takes a directory for a repository beyond doubt, and looks no further up."""
    head = files.read_config(posixpath.join(repository.git, "HEAD"))
    parts = [files.facts(posixpath.join(repository.common, name)) for name in ("objects", "refs")]
    enterable = all(part is not None and part.kind is FileKind.DIRECTORY and part.mode & 0o100 for part in parts)
    return head is not None and _HEAD.fullmatch(head) is not None and enterable


def _repository_in(folder: str, files: FileView, problems: list[str]) -> _Repository | None:
    """Find the repository of a folder with a `.git`, which may be a file that names a directory elsewhere."""
    git = posixpath.join(folder, ".git")
    facts = files.facts(git)
    if facts is not None and facts.kind is FileKind.LINK:
        facts = files.facts(files.resolve(git))
    if facts is None:
        return None
    if facts.kind is FileKind.FILE:
        named = _named(files.read_config(git), "gitdir: ")
        if named is None:
            problems.append(_UNREADABLE)
            return None
        git = files.resolve(posixpath.join(folder, named))
    return _Repository(git=git, common=_common_directory(git, files, problems), folder=folder)


def _common_directory(git: str, files: FileView, problems: list[str]) -> str:
    path = posixpath.join(git, "commondir")
    text = files.read_config(path)
    if text is None:
        if files.facts(path) is not None:
            problems.append(_UNREADABLE)
        return git
    named = _named(text, "")
    if named is None:
        problems.append(_UNREADABLE)
        return git
    return files.resolve(posixpath.join(git, named))


def _named(text: str | None, before: str) -> str | None:
    """Read the path in a file that holds nothing else, as git does; None where that is not certain."""
    if text is None or not text.startswith(before) or "\ufffd" in text or "\0" in text:
        return None
    return text[len(before) :].rstrip("\r\n") or None


def _nested(repository: _Repository, files: FileView) -> list[str] | None:
    """List the folders below which a repository may stand by the index; None where that cannot be told."""
    index = files.read_index(posixpath.join(repository.git, "index"))
    if index is None:
        return None
    indexes = [index]
    if SHARED in index:
        for directory in dict.fromkeys((repository.git, repository.common)):
            names = files.names(directory)
            shared = [files.read_index(posixpath.join(directory, name)) for name in names if "sharedindex." in name]
            if len(names) >= MAX_NAMES or None in shared:
                return None
            indexes += filter(None, shared)
    links: list[str] = []
    for each in indexes:
        found = gitlinks(each)
        if found is None:
            return None
        links += islice(found, _MOST_LINKS + 1)
    if len(links) > _MOST_LINKS:
        return None
    return [posixpath.join(repository.folder, link) for link in dict.fromkeys(links)]


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
