"""Which settings of a repository make git run nothing: from their text alone."""

import re

_INERT = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol"
    r"|sharedrepository)"
    r"|remote\..*\.(url|fetch|pushurl|push|tagopt|prune|gh-resolved|partialclonefilter|promisor|mirror)"
    r"|branch\..*\.(remote|merge|rebase|pushremote|description|vscode-merge-base|gh-merge-base|github-pr-owner-number)"
    r"|user\.(name|email)|init\.defaultbranch|pull\.(rebase|ff)|push\.default|extensions\.(objectformat|partialclone)"
    r"|color\..*|advice\..*|lfs\.repositoryformatversion|receive\.deny[a-z]+"
)
_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$|#|;)")


def acting_settings(text: str) -> list[str]:
    """List the settings in a git configuration text that are not known to make git run nothing, by their full names."""
    return [name for name in setting_names(text) if not _INERT.fullmatch(name.lower())]


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
