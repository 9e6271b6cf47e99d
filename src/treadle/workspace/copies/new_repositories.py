"""By which changes of a copy a folder becomes a repository for git, whatever it is called, that runs something."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from treadle.protocol.inert_settings import acting_settings
from treadle.protocol.protected_names import GIT_DATA_NAMES, git_data_of, is_git_data
from treadle.workspace.copies.staging import Difference, place_in
from treadle.workspace.files.paths import Listed, Unlisted, list_folder

RUNS_LATER = "git takes its folder for a repository and would run what is named there"
_LARGEST = 64 * 1024  # bytes of a configuration
_Key = tuple[int, bytes]


def acting_changes(
    roots: Sequence[str], changes: Sequence[Difference], text_of: Callable[[Difference], bytes]
) -> frozenset[_Key]:
    """Give the changes by which git would run something in a folder where it did not: its `HEAD`, settings, hooks.

    `text_of` gives the new bytes of a file. Looks at the disk.
    """
    found: dict[_Key, dict[bytes, Difference]] = {}
    for change in changes:
        path = b"/" + change.path
        for folder, _ in git_data_of(os.fsdecode(path)):
            above = os.fsencode(folder)
            found.setdefault((change.root, above), {})[path[len(above) :]] = change
    keys: set[_Key] = set()
    for (root, above), changed in found.items():
        keys |= {
            (root, changed[name].path) for name in _acting(place_in(roots[root], above.strip(b"/")), changed, text_of)
        }
    return frozenset(keys)


def _acting(
    folder: str, changed: Mapping[bytes, Difference], text_of: Callable[[Difference], bytes]
) -> Iterator[bytes]:
    was = {name for name in GIT_DATA_NAMES if os.path.lexists(f"{folder}/{name}")}
    now = {os.fsdecode(name.partition(b"/")[0]) for name, change in changed.items() if change.after is not None}
    if not is_git_data(was | now):
        return
    acting = [name for name, change in changed.items() if change.after is not None and _acts(name, change, text_of)]
    if is_git_data(was):
        yield from acting
    elif acting or _acts_on_disk(folder):
        yield from (name for name, change in changed.items() if change.after is not None and name.lower() == b"head")
        yield from acting


def _acts(name: bytes, change: Difference, text_of: Callable[[Difference], bytes]) -> bool:
    match name.lower():
        case b"config":
            is_read = change.kinds[1] == "f" and not change.note and change.size <= _LARGEST
            return not is_read or bool(acting_settings(text_of(change).decode(errors="replace")))
        case b"commondir" | b"config.worktree":
            return True
        case b"hooks":
            return change.kinds[1] != "d"
        case folded:
            return folded.startswith(b"hooks/") and not folded.endswith(b".sample")


def _acts_on_disk(folder: str) -> bool:
    """Whether settings or hooks that were there before would run."""
    hooks = list_folder(f"{folder}/hooks", follow=True)
    if isinstance(hooks, Unlisted) or (
        isinstance(hooks, Listed) and any(not entry.name.endswith(".sample") for entry in hooks.entries)
    ):
        return True
    try:
        with open(f"{folder}/config", "rb") as file:  # noqa: PTH123 - a text
            text = file.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return len(text) > _LARGEST or bool(acting_settings(text.decode(errors="replace")))
