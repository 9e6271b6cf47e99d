"""The files of folders, to complete their names while a message is written."""

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
        async with self._listing:
            at, index = self._known.pop(root, (float("-inf"), Index(())))
            if time.monotonic() - at >= _GOOD_FOR:
                index = await asyncio.to_thread(_listed, root, trusted)
                at = time.monotonic()
            self._known[root] = (at, index)
            while len(self._known) > _MOST_FOLDERS:
                self._known.pop(next(iter(self._known)))
        return await asyncio.to_thread(_searched, index, typed)


def _listed(root: str, trusted: bool) -> Index:  # noqa: FBT001 - handed over to a thread
    return Index(mentionable_paths(root, trusted=trusted))


def _searched(index: Index, typed: str) -> Sequence[str]:
    search = PathSearch(typed, index)
    search.go_on(lambda: len(search.paths) >= _SHOWN)
    return search.paths[:_SHOWN]
