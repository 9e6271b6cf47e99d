"""What a right to a path opens: the path itself, or a plain folder in which it can be made; never what holds more."""

from collections.abc import Callable, Sequence

from treadle.protocol.protected_names import later_name, secret_name

FolderEntries = Callable[[str], Sequence[tuple[str, bool]] | None]
"""Gives what a folder holds, each name with whether it is a folder, no link; None where that is not known."""

NAME_IT = (
    'Name the file or folder itself in needs ("outside:PATH", with a slash at the end for a new folder), or ask with '
    'needs: ["host"] for a run without the sandbox.'
)
"""The way on for the model where no right opens what a command wants to change."""

_MOST_ENTRIES = 2000


def is_in(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both absolute and normal."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def why_never_opened(path: str, *, homes: Sequence[str], own: Sequence[str], roots: Sequence[str]) -> str:
    """Say why no right opens a resolved path outside the workspace, as a clause; empty where one can.

    Nothing in `own`, which is Treadle's, is opened, and nothing that holds that, one of the `homes` or of the `roots`
    of the workspace.
    """
    if any(is_in(path, place) for place in own):
        return "it is Treadle's own"
    held = next((place for place in (*own, *homes, *roots) if is_in(place, path)), "")
    if path in ("/", held):
        return "too much else is in it"
    return f"{held} is in it" if held else ""


def is_plain_folder(folder: str, entries: FolderEntries, *, kept: Sequence[str]) -> bool:
    """Whether a folder may be opened so that something new is made in it.

    It holds none of what is `kept`, nothing secret and nothing that runs later, as far as names tell, and its path has
    no hidden part. One that is too large to be looked through is not plain.
    """
    hidden = any(name.startswith(".") for name in folder.split("/"))
    if folder == "/" or hidden or any(is_in(place, folder) for place in kept) or _is_kept_back(folder):
        return False
    left, found = [""], 0
    while left:
        above = left.pop()
        listed = entries(f"{folder}/{above}".rstrip("/"))
        if listed is None:
            return False
        found += len(listed)
        if found > _MOST_ENTRIES or any(_is_kept_back(f"{above}{name}") for name, _ in listed):
            return False
        left += [f"{above}{name}/" for name, is_folder in listed if is_folder]
    return True


def _is_kept_back(path: str) -> bool:
    return later_name(path) is not None or secret_name(path) is not None
