"""The files of folders: their names are completed while a message is written, and they can be looked at."""

import asyncio
import time
from collections.abc import Sequence

from treadle.door.message_parts import Index, PathSearch, mentionable_paths

_GOOD_FOR = 10.0
"""Seconds after which the files of a folder are listed again."""

_MOST_FOLDERS = 8
_SHOWN = 12


class FolderIndex:
    """The files of folders, listed when one is to be named."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Index]] = {}
        self._listing = asyncio.Lock()

    async def find(self, root: str, typed: str, *, trusted: bool) -> Sequence[str]:
        """Find files and folders by some of their characters, the best first."""
        return await asyncio.to_thread(_searched, await self._index(root, trusted=trusted), typed)

    async def inside(self, root: str, folder: str, *, trusted: bool) -> Sequence[str]:
        """List what is directly in a folder, which ends with a slash or is empty for the first one; folders first."""
        index = await self._index(root, trusted=trusted)
        inside = (path for path in index.paths if path.startswith(folder) and path != folder)
        here = {path for path in inside if "/" not in path.removeprefix(folder).rstrip("/")}
        return sorted(here, key=lambda path: (not path.endswith("/"), path.lower()))

    async def has(self, root: str, path: str, *, trusted: bool) -> bool:
        """Whether a file can be named."""
        return path in await self._index(root, trusted=trusted) and not path.endswith("/")

    async def _index(self, root: str, *, trusted: bool) -> Index:
        async with self._listing:
            at, index = self._known.pop(root, (float("-inf"), Index(())))
            if time.monotonic() - at >= _GOOD_FOR:
                index = await asyncio.to_thread(_listed, root, trusted)
                at = time.monotonic()
            self._known[root] = (at, index)
            while len(self._known) > _MOST_FOLDERS:
                self._known.pop(next(iter(self._known)))
            return index


def _listed(root: str, trusted: bool) -> Index:  # noqa: FBT001 - handed over to a thread
    return Index(mentionable_paths(root, trusted=trusted))


def _searched(index: Index, typed: str) -> Sequence[str]:
    search = PathSearch(typed, index)
    search.go_on(lambda: len(search.paths) >= _SHOWN)
    return search.paths[:_SHOWN]
