"""The rules and repositories below a workspace, found by looking into each folder: once, when the user is asked."""

import os
from collections.abc import Iterator
from pathlib import Path

from treadle.protocol.errors import StoreError
from treadle.protocol.protected_names import is_git_data
from treadle.store.activation import NESTED_RULE_FILES, NESTED_RULE_FOLDERS, RULE_FOLDERS, ActiveFile, ActiveKind
from treadle.store.active_items import git_items, imported_items, listed_item, named_from
from treadle.workspace.files.paths import Unlisted, list_folder
from treadle.workspace.files.walking import walk

_LEFT_OUT = frozenset({"node_modules", "venv", "target", "__pycache__"})
"""Folders of other people's code: rules in them are not the project's. Neither are those in hidden folders."""

_MOST_FOLDERS = 20_000
_MOST_HELD = 100
_HOLDERS = frozenset(folder.partition("/")[0] for folder in NESTED_RULE_FOLDERS)
_MOST_RULES = 500


def nested_items(workspace: Path) -> tuple[ActiveFile, ...]:
    """Find the rules in the folders below a resolved folder; of very many folders, those in the first ones."""
    found: list[ActiveFile] = []
    for file in _files(workspace):
        found.append(listed_item(workspace, file, ActiveKind.RULES))
        if len(found) >= _MOST_RULES:
            break
    return tuple(sorted({*found, *imported_items(workspace, found)}))


def nested_repositories(workspace: Path) -> Iterator[ActiveFile]:
    """Find by what git runs something in the repositories below a resolved folder; of very many, in the first ones."""
    for count, (place, folders, files) in enumerate(walk(workspace)):
        if count >= _MOST_FOLDERS:
            return
        names = {*folders, *files}
        if place != str(workspace) and (".git" in names or is_git_data(names)):
            try:
                yield from git_items(workspace, Path(place))
            except StoreError:  # what the user cannot go into git does not, either; of the hooks it needs no list
                hooks = (Path(place, name) for name in (".git/hooks", "hooks"))
                closed = (one for one in hooks if isinstance(list_folder(one), Unlisted))
                yield from (listed_item(workspace, named_from(workspace, one), ActiveKind.HOOK) for one in closed)
        folders[:] = sorted(name for name in folders if name != ".git")


def is_passed_over(folder: str) -> bool:
    """Whether rules in a folder of this name are not looked for."""
    return folder.startswith(".") or folder in _LEFT_OUT


def _files(workspace: Path) -> Iterator[str]:
    for count, (place, folders, files) in enumerate(walk(workspace)):
        if count >= _MOST_FOLDERS:
            return
        holders = {name for name in folders if name in _HOLDERS}
        folders[:] = sorted(name for name in folders if not is_passed_over(name))
        if place != str(workspace):
            below = os.path.relpath(place, workspace)
            yield from (f"{below}/{name}" for name in sorted(files) if name.casefold() in NESTED_RULE_FILES)
            yield from (f"{below}/{name}" for name in held_rules(Path(place)) if holders)


def rules_folder(path: str) -> str:
    """Give the folder that a nested rule is about, by the path of its file."""
    kept = next((one for one in NESTED_RULE_FOLDERS if f"/{one}/" in path), "")
    return path.partition(f"/{kept}/")[0] if kept else os.path.dirname(path)  # noqa: PTH120 - a text


def held_rules(folder: Path) -> Iterator[str]:
    """Name the rules that a folder below the workspace keeps in folders of programs, by their paths in it."""
    for kept in NESTED_RULE_FOLDERS:
        for count, (place, folders, files) in enumerate(walk(folder / kept)):
            if count >= _MOST_HELD:
                break
            folders.sort()
            below = os.path.relpath(place, folder)
            yield from (f"{below}/{name}" for name in sorted(files) if name.endswith(RULE_FOLDERS[kept]))
