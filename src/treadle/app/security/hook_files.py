"""What a trusted folder's hooks run: the files that their commands name, protected and compared before each run."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from treadle.policy.shell.shell_parser import parse
from treadle.policy.shell.syntax import BudgetError, ShellSyntaxError, Simple
from treadle.protocol.codec import texts_within
from treadle.store.activation import OF_HOOKS, ActiveFile, active_kind
from treadle.store.active_items import has_hooks, listed_item, named_from, read_item, repository_of
from treadle.store.named_scripts import hooks_in, named_paths

_HOLDING = (".treadle", ".claude")
"""Folders with scripts of hooks in which other files change while a session is open."""

_WRITERS = frozenset({"mkdir", "rm", "tee", "touch"})
"""Commands that take nothing from the files that they name."""


def files_of_hooks(workspace: Path, items: Sequence[ActiveFile]) -> frozenset[str]:
    """Give the absolute paths of what the hooks of a folder run, and where those lead that are links.

    `items` are what was trusted. What a hook only writes to, such as its log, is none of them.
    """
    run = {
        file
        for item in items
        if has_hooks(item)
        for file in _run_paths(workspace, texts_within(hooks_in(item.path, read_item(workspace, item) or b"")))
    }
    paths = [workspace / item.path for item in items if item.kind in OF_HOOKS]
    own = [path for path in paths if path in run or active_kind(named_from(workspace, path)) is not None]
    return frozenset(text for path in own for text in (str(path), os.path.realpath(path)))


class HookFiles:
    """Compares what the hooks of a folder run with what was trusted (`items`), before each run; looks at the disk.

    What is new since is not trusted, but for what a run of a hook itself made.
    """

    def __init__(self, workspace: Path, items: Sequence[ActiveFile]) -> None:
        self._workspace = workspace
        self._trusted = {item.path: item for item in items if item.kind in OF_HOOKS}
        self._made: set[str] = set()

    def begin(self, texts: Sequence[str]) -> str:
        """Name the first file that a hook with these texts runs and that was not trusted so; empty where all were.

        What lies beside a script counts as well, where that was trusted with it. Where it may run, `end` follows.
        """
        named = self._named(texts)
        folders = {os.path.dirname(name) for name in named if name in self._trusted}  # noqa: PTH120
        beside = [name for name in self._trusted if _is_beside(name, folders)]
        other = next((name for name in dict.fromkeys((*named, *beside)) if self._is_other(name)), "")
        if not other:
            self._made.update(name for name in named if name not in self._trusted)
        return other

    def end(self, texts: Sequence[str]) -> None:
        """Note that a hook with these texts has run: what it did not make, nobody else is to make for it."""
        self._made.difference_update(name for name in self._named(texts) if not _is_file(self._workspace / name))

    def _named(self, texts: Sequence[str]) -> list[str]:
        return [named_from(self._workspace, file) for file in _run_paths(self._workspace, texts)]

    def _is_other(self, name: str) -> bool:
        item = self._trusted.get(name)
        if item is None:
            return name not in self._made and _is_file(self._workspace / name)
        return listed_item(self._workspace, name, item.kind) != item


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_beside(name: str, folders: Iterable[str]) -> bool:
    folder = os.path.dirname(name)  # noqa: PTH120
    return folder in folders and not (folder in _HOLDING and name.endswith((".toml", ".md", ".json")))


def _run_paths(workspace: Path, texts: Iterable[str]) -> Iterator[Path]:
    top = repository_of(workspace) or workspace
    return named_paths(workspace, top, (part for text in texts for part in _without_targets(text)))


def _without_targets(line: str) -> Sequence[str]:
    """Give the words of a shell line but those that it only writes to; a line that is not plain stays whole."""
    try:
        commands = [one for pipeline in parse(line).pipelines for one in pipeline.commands]
    except (ShellSyntaxError, BudgetError):
        return (line,)
    words: list[str] = []
    for command in commands:
        if not isinstance(command, Simple):
            return (line,)
        if command.words and command.words[0].text not in _WRITERS:
            words += [word.text for word in command.words]
        words += [value.text for assignment in command.assignments for value in assignment.values]
        words += [one.target.text for one in command.redirects if ">" not in one.operator]
    return words
