"""What the model is told about its surroundings with each step."""

import asyncio
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import PurePath

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.workspace.names import shown_name
from treadle.workspace.text import visible
from treadle.workspace.workspace import Workspace

_WIDTH = 80

LISTED = 200
"""Entries of the file list in the first message."""


def _short(line: str) -> str:
    return visible(line.replace("\n", " ") if len(line) <= _WIDTH else line[:_WIDTH].replace("\n", " ") + "...")


def _now() -> datetime:
    return datetime.now(UTC).astimezone()


class Surroundings(Struct, frozen=True, kw_only=True):
    """The environment block of one workspace."""

    workspace: Workspace
    now: Callable[[], datetime] = _now

    async def describe(self, *, first: bool) -> str:
        """Tell the time, what changed and what runs; the first time also the system and the file list."""
        now = self.now()
        parts = [f"Time: {now:%Y-%m-%d %H:%M} {now.tzname()} (UTC{now:%z})"]
        if first:
            parts = [*self._system(), *parts, *await self._files()]
        return "\n".join([*parts, *await self._changes(), *self._running()])

    def _system(self) -> list[str]:
        return [
            f"System: {platform.system()} {platform.machine()}, shell {PurePath(self.workspace.shell).name}",
            f"Workspace: {visible(self.workspace.root)}",
            *(f"Also of the workspace, by absolute paths: {visible(root)}" for root in self.workspace.roots),
        ]

    async def _files(self) -> list[str]:
        """List the files of each root; all of them share the entries that there are."""
        roots = self.workspace.roots
        share = LISTED // (1 + len(roots))
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

    def _running(self) -> list[str]:
        return [
            f"Command {number} in the background: {_short(command.line)} - {command.describe()}"
            f"{' It has new output.' if command.unread else ''}"
            for number, command in self.workspace.commands.all()
        ]

    async def _changes(self) -> list[str]:
        changed = await asyncio.to_thread(self.workspace.seen.changed)
        if not changed:
            return []
        names = ", ".join(map(self.workspace.paths.display, changed))
        return [f"Changed on disk since you last read or wrote them (read again before editing): {names}"]
