"""list_files: the entries of a directory, or the tree below it."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from heapq import nsmallest
from itertools import count
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import (
    CallResult,
    Origin,
    Outcome,
    Preview,
    ToolSpec,
)
from treadle.tools.declarations import LIST_FILES
from treadle.tools.quoted_words import result_of
from treadle.workspace.files.judged import JudgedPath, judge_path
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.text import size_of
from treadle.workspace.files.text_files import missing
from treadle.workspace.searching.search import Listing
from treadle.workspace.workspace import Workspace

_LIMIT = 500
_BYTES = 16_000
_UNREAD_SHOWN = 20


class ListFiles(Struct, frozen=True):
    """Lists directories."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return LIST_FILES

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the directory; it is looked at by the run, after it was judged."""
        place = judge_path(self.workspace.paths.locate(arguments["path"]))
        return Prepared(
            accesses=place.accesses(listing=True),
            preview=Preview(title=f"List {self.workspace.paths.display(place.asked)}"),
            run=partial(self._list, place, arguments.get("recursive", False)),
        )

    async def _list(self, place: JudgedPath, recursive: bool, output: Output) -> CallResult:  # noqa: ARG002, FBT001
        name = self.workspace.paths.display(place.asked)
        with place.unchanged(name):
            flat = await asyncio.to_thread(_entries, place, name)
            listing = await self.workspace.search.files(place.resolved, _LIMIT) if recursive else flat
        if not listing.entries and not listing.unread:
            hint = " except hidden or ignored files; list it without recursive" if flat.entries else ""
            return result_of(Origin.WORKSPACE, Outcome.OK, f"[{name} has no entries{hint}]")
        shown = _fitting(map(shown_name, listing.entries), min(_BYTES, self.workspace.conversation.room()))
        what = "files in all" if recursive else "entries in all"
        return result_of(Origin.WORKSPACE, Outcome.OK, "\n".join([*shown, *_notes(listing, len(shown), what)]))


def _fitting(names: Iterable[str], room: int) -> list[str]:
    """Take names from the front while they fit."""
    kept: list[str] = []
    for name in names:
        room -= size_of(name) + 1
        if room < 0 and kept:
            break
        kept.append(name)
    return kept


def _notes(listing: Listing, shown: int, what: str) -> Iterator[str]:
    if listing.more or shown < len(listing.entries):
        yield (
            f"[only the first {shown} entries; about {listing.count:,} {what}. "
            "List a directory further down, or use search_files.]"
        )
    if listing.unread:
        names = ", ".join(map(shown_name, listing.unread[:_UNREAD_SHOWN]))
        others = len(listing.unread) - _UNREAD_SHOWN
        yield f"[cannot be read: {names}{f' and {others:,} more' if others > 0 else ''}]"


def _entries(place: JudgedPath, name: str) -> Listing:
    """List one directory by name. Raises `ToolError`."""
    try:
        descriptor = place.open(name)
        try:
            with os.scandir(descriptor) as found:
                # Only the first are kept: a directory may have any number of entries.
                numbers = count(1)
                first = nsmallest(_LIMIT, ((entry.name, next(numbers), entry) for entry in found))
                names = [f"{each}/" if _is_directory(entry) else each for each, _, entry in first]
                total = next(numbers) - 1
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        raise ToolError(missing(place.resolved, name)) from error
    except NotADirectoryError as error:
        raise ToolError(f"{name} is a file, not a directory. Use read_file to read it.") from error
    except OSError as error:
        raise ToolError(
            f"{name} cannot be listed: {error.strerror}. Use another directory, or tell the user."
        ) from error
    return Listing(entries=tuple(names), more=total > _LIMIT, count=total)


def _is_directory(entry: os.DirEntry[str]) -> bool:
    """Whether it is a directory or a link to one; a loop of links is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False
