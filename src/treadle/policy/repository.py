"""Reads a repository's own settings, without git, before git may run in it."""

import posixpath
import re

from treadle.policy.context import FileView

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


def surprising_settings(cwd: str, files: FileView) -> list[str]:
    """List the settings of the repository around `cwd` that are not known to be inert; `?` marks an unreadable one."""
    git = _git_directory(cwd, files)
    if git is None:
        return []
    common = files.read_config(posixpath.join(git, "commondir"))
    base = posixpath.normpath(posixpath.join(git, common.strip())) if common else git
    found: list[str] = []
    modules = [posixpath.join(base, "modules", name) for name in files.names(posixpath.join(base, "modules"))]
    paths = [posixpath.join(directory, "config") for directory in (base, *modules)]
    for path in (*paths, posixpath.join(git, "config.worktree")):
        text = files.read_config(path)
        if text is not None:
            found.extend(key for key in setting_names(text) if not _INERT.fullmatch(key.lower()))
        elif files.facts(path) is not None:
            found.append("? (its settings cannot be read)")
    return found


def _git_directory(cwd: str, files: FileView) -> str | None:
    """Find the `.git` that git would find from `cwd`, following a `.git` file; a bare repository counts too."""
    directory = cwd
    while True:
        candidate = posixpath.join(directory, ".git")
        if files.facts(candidate) is not None:
            pointer = files.read_config(candidate)
            if pointer is not None and pointer.startswith("gitdir:"):
                return posixpath.normpath(posixpath.join(directory, pointer[len("gitdir:") :].strip()))
            return candidate
        if files.facts(posixpath.join(directory, "HEAD")) is not None and files.facts(
            posixpath.join(directory, "objects")
        ):
            return directory
        if directory == posixpath.dirname(directory):
            return None
        directory = posixpath.dirname(directory)


def setting_names(text: str) -> list[str]:
    """List the full names of the settings in a git configuration text; a line that cannot be read is listed itself."""
    names: list[str] = []
    section = ""
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        head = _SECTION.fullmatch(line)
        rest = line
        if head is not None:
            section = head.group(1) + (f".{head.group(2)}" if head.group(2) is not None else "")
            rest = head.group(3)
        if not rest.strip() or rest.lstrip().startswith(("#", ";")):
            continue
        # A value that goes on in the next line is not followed: that line then counts as unreadable or as a setting.
        key = _KEY.match(rest)
        names.append(f"{section}.{key.group(1)}" if key and section else f"? {rest.strip()[:60]}")
    return names
