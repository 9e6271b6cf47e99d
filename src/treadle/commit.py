"""The version in words: its number, and the commit where this copy is a checkout or came from one.

`--version` reads it, so it needs nothing but the system's own modules, and starts no git.
"""

import os

from treadle import __version__

_SHOWN = 12
"""Characters of a commit's name, as git shows them in a large repository."""


def version_words() -> str:
    """Give the version as `--version` prints it; a checkout may hold changes that its commit does not have."""
    package = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes longer than the answer
    above, folder = os.path.split(package)
    root, source = os.path.split(above)
    if (source, folder) == ("src", "treadle") and os.path.exists(os.path.join(root, "pyproject.toml")):  # noqa: PTH110, PTH118
        commit = checked_out(root)
        return f"{__version__} (Treadle, a checkout at commit {commit[:_SHOWN]})" if commit else _plain()
    commit = _installed_from(above)
    return f"{__version__} (Treadle, commit {commit[:_SHOWN]})" if commit else _plain()


def checked_out(root: str) -> str:
    """Read which commit a folder has checked out, as git writes it; empty where it is no repository with a commit."""
    place = f"{root}/.git"
    said = _read(place)  # a file in a work tree of another repository
    if said.startswith("gitdir: "):
        place = os.path.join(root, said.removeprefix("gitdir: "))  # noqa: PTH118
    head = _read(f"{place}/HEAD")
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    common = os.path.join(place, _read(f"{place}/commondir") or ".")  # noqa: PTH118
    packed = (line.split(" ") for line in _read(f"{common}/packed-refs").splitlines())
    return _read(f"{common}/{name}") or next((words[0] for words in packed if words[1:] == [name]), "")


def _installed_from(folder: str) -> str:
    """Read the commit that an installer noted beside the package when it took it from a repository."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith("treadle-") and name.endswith(".dist-info")]  # noqa: PTH208
    except OSError:
        return ""
    if len(names) != 1 or not (noted := _read(f"{folder}/{names[0]}/direct_url.json")):
        return ""
    import json

    try:
        return str(json.loads(noted)["vcs_info"]["commit_id"])
    except (ValueError, KeyError, TypeError):
        return ""


def _plain() -> str:
    return f"{__version__} (Treadle)"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return file.read().strip()
    except (OSError, ValueError):
        return ""
