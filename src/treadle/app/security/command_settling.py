"""What is looked at when a command has run in the sandbox, and what is said of it once."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treadle.app.security.command_folders import CommandFolders
from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.workspace.commands.confinement import Remark, Settle
from treadle.workspace.copies.caches import git_ignores
from treadle.workspace.sandbox import MadeFiles
from treadle.workspace.sandbox.index_entries import IndexEntries
from treadle.workspace.sandbox.profile import is_within
from treadle.workspace.sandbox.unseen_repository import unseen_repository

_NAMED = 5
_NOT_ADDED = ("can only add regular files", "unsupported file type", "ignored by one of your .gitignore files")
"""What git says of a file that it is to add and sees only a stand-in of."""

_REFUSED = regex(r"(?m)^error: ([^\n]*): (?:can only add regular files|unsupported file type)")
_KEPT_MODE = regex(r"(?i)\b(?:permissions|mode)\b[^\n]{0,300}(?:operation not permitted|EPERM)")
_MODES_KEPT = (
    "In the sandbox no file gets a set-user-ID or set-group-ID bit, with which another user could run it as its owner, "
    "and none of another user gets another mode."
)


def settle_with_index(
    settle: Settle, entries: Sequence[IndexEntries], output: str, *, ended: bool
) -> tuple[Remark, ...]:
    """Look also at what a command put into the index of each repository, once it has ended."""
    remarks = settle(output, ended=ended)
    try:
        said = [text for one in entries for text in one.take_out()] if ended else []
        return (*remarks, *(Remark(text, undone=True) for text in said))
    except ToolError as error:
        return (*remarks, Remark(error.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettling:
    """Looks at what one command did: the control files that it made, and the secrets that read as `empty`.

    `unlisted` are folders that it did not see, and `opened` paths that were made for it. What it `commits` has none of
    the secrets; of the `replaced` folders git saw what the last commit has, as far as that is kept.
    """

    line: str
    opened: Sequence[str]
    hidden: Sequence[str]
    place: CommandFolders
    empty: Sequence[str]
    unlisted: Sequence[str]
    replaced: Sequence[str] = ()
    commits: bool = False
    made: MadeFiles | None = None

    def __call__(self, output: str, *, ended: bool) -> tuple[Remark, ...]:
        """Move away what was made, and say once what the command did not see as it is."""
        known = self.place.known
        notes, known.notes = known.notes, []
        made: Sequence[str] = ()
        if self.made is not None:
            made = self.made.end() if ended else self.made.check()
            if ended:
                known.note_running(self.made, ended=True)
            if ended and self.made.remaining():
                known.made.append(self.made)
        if ended:
            notes += known.opened(self.place.data).take_away(self.opened)
        seen = (*notes, *self._not_seen(), *self._reading_empty(f"{self.line}\n{output}"), *self._left_out(output))
        seen += unseen_repository(self.place.root, self.hidden, output)
        seen += (_MODES_KEPT,) if _KEPT_MODE.search(output) else ()
        return (*map(Remark, seen), *(Remark(text, undone=True) for text in made))

    def _not_seen(self) -> Iterator[str]:
        said = self.place.known.said_unlisted
        new = [path for path in self.unlisted if path not in said]
        said.update(new)
        names = [os.path.relpath(path, self.place.root) for path in new]
        if names:
            yield f"Commands do not see what is in {_listed(names)}: Treadle cannot list it."

    def _left_out(self, output: str) -> Iterator[str]:
        """Say which files git left out that it would have taken along, or was told to take along and did not."""
        said, root = self.place.known.said_left_out, self.place.root
        was_told = any(words in output for words in _NOT_ADDED)
        if not (self.empty or self.replaced) or not (self.commits or was_told):
            return
        ignores, names = git_ignores(root), [os.path.relpath(path, root) for path in self.empty]
        new = [one for one in names if self.commits and one not in said and not ignores(os.fsencode(one), False)]
        refused = [found[1] for found in _REFUSED.finditer(output)]
        inside = [one for one in refused if any(is_within(f"{root}/{one}", each) for each in self.replaced)]
        names = [*inside, *(one for one in names if one in new or (was_told and _has_path(output, one)))]
        said.update(names)
        if names:
            yield f"Git adds {_listed(names)} to no commit in the sandbox: secrets may be there."

    def _reading_empty(self, text: str) -> Iterator[str]:
        said = self.place.known.said_empty
        for path in map(Path, self.empty):
            if path.name in text and str(path) not in said:
                said.add(str(path))
                name = os.path.relpath(path, self.place.root)
                yield f"{name} reads as empty for commands, because it may hold secrets."


def _has_path(text: str, path: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w./-])", text) is not None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
