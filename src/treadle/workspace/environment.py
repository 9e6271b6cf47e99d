"""What the model is told about its surroundings with each step."""

import asyncio
import platform
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import PurePath

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Situation
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.text import visible
from treadle.workspace.ignore.ignoring import access_files
from treadle.workspace.situation import situation_lines
from treadle.workspace.workspace import Workspace

_WIDTH = 80

_MOST_ENTRIES = 200
"""Entries of the file list in the first message."""


def _short(line: str) -> str:
    return visible(line.replace("\n", " ") if len(line) <= _WIDTH else line[:_WIDTH].replace("\n", " ") + "...")


def _now() -> datetime:
    return datetime.now(UTC).astimezone()


def _nothing() -> str:
    return ""


class EnvironmentBlock(Struct, frozen=True, kw_only=True):
    """The environment block of one workspace.

    `repository` says in a line how the workspace's repository stands; it may take some time. `approved` names classes
    of risk that the user lets run beyond the mode, `trusted` says whether they trust the folder, `try_first` whether
    commands are tried in a copy before anything is asked. `lacking` says, once it is known, what commands cannot do
    here that they do elsewhere. `gpu` says which GPUs they can use.
    """

    workspace: Workspace
    now: Callable[[], datetime] = _now
    repository: Callable[[], str] = _nothing
    approved: tuple[str, ...] = ()
    trusted: bool = True
    try_first: bool = True
    lacking: Callable[[], str] = _nothing
    gpu: Callable[[], str] = _nothing

    async def describe(self, *, first: bool, situation: Situation | None) -> str:
        """Tell the time and what runs; the first time also the system and the file list.

        `situation` is told where it is new.
        """
        now = self.now()
        parts = [f"Time: {now:%Y-%m-%d %H:%M} {now.tzname()} (UTC{now:%z})"]
        if first:
            files, repository = await asyncio.gather(self._files(), asyncio.to_thread(self.repository))
            parts = [*self._system(), *parts, *filter(None, [repository]), *files]
        lines: list[str] = []
        if situation is not None:
            lines = situation_lines(
                situation, first=first, approved=self.approved, trusted=self.trusted, try_first=self.try_first
            )
        lines += filter(None, [self.lacking()])
        return "\n".join([*lines, *parts, *[line async for line in self._running()]])

    def _system(self) -> list[str]:
        return [
            f"System: {platform.system()} {platform.machine()}, shell {PurePath(self.workspace.shell).name}",
            f"Workspace: {visible(self.workspace.root)}",
            *(f"Also in the workspace, by absolute paths: {visible(root)}" for root in self.workspace.roots),
            *self._listed(),
            *filter(None, [self.gpu()]),
        ]

    def _listed(self) -> list[str]:
        """Name the ignore files for agents that a model should know of."""
        roots = (self.workspace.root, *self.workspace.roots)
        names = dict.fromkeys(name for root in roots for name in access_files(root))
        return [f"Paths listed in {', '.join(names)} need approval to be read or changed."] if names else []

    async def _files(self) -> list[str]:
        """List the files of each root; all of them share the entries that there are."""
        roots = self.workspace.roots
        share = _MOST_ENTRIES // (1 + len(roots))
        lists = [await self._files_of(self.workspace.root, "Files", share)]
        return [*lists, *[await self._files_of(root, f"Files in {visible(root)}", share) for root in roots]]

    async def _files_of(self, root: str, title: str, limit: int) -> str:
        try:
            listing = await self.workspace.search.files(root, limit)
        except ToolError as error:
            return f"{title}: {error.text}"
        if not listing.entries:
            return f"{title}: none yet"
        more = [f"[first {limit} entries; list_files shows more]"] if listing.more else []
        return "\n".join([f"{title}:", *map(shown_name, listing.entries), *more])

    async def _running(self) -> AsyncIterator[str]:
        for number, command in self.workspace.commands.all():
            said = (command.describe(), await self.workspace.listens(command), "It has new output." * command.unread)
            yield f"Command {number} in the background: {_short(command.line)} - {' '.join(filter(None, said))}"
