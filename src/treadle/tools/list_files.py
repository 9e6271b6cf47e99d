"""list_files: the entries of a directory, or the tree below it."""

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import (
    CallResult,
    Origin,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
)
from treadle.tools.declare import parameters, prompt, text
from treadle.tools.words import result_of
from treadle.workspace.files import missing
from treadle.workspace.judged import Judged, judge_path
from treadle.workspace.search import Listing
from treadle.workspace.names import shown_name
from treadle.workspace.workspace import Workspace

_LIMIT = 500

_SPEC = ToolSpec(
    name="list_files",
    description=prompt(__file__),
    parameters=parameters(
        {
            "path": text("The directory, relative to the workspace (`.` is its root) or absolute."),
            "recursive": {"type": "boolean", "description": "Whether to list the whole tree below it."},
        },
        optional=("recursive",),
    ),
    traits=ToolTraits(kind=ToolKind.SEARCH, effect=ToolEffect.PURE),
    risk=Risk.READ,
)


class ListFiles(Struct, frozen=True):
    """Lists directories."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the directory; it is looked at by the run, after it was judged."""
        place = judge_path(self.workspace.paths.locate(arguments["path"]))
        return Prepared(
            accesses=place.accesses(listing=True),
            preview=Preview(title=f"List {self.workspace.paths.display(place.asked)}"),
            run=partial(self._list, place, arguments.get("recursive", False)),
        )

    async def _list(self, place: Judged, recursive: bool, output: Output) -> CallResult:  # noqa: ARG002, FBT001
        name = self.workspace.paths.display(place.asked)
        with place.unchanged(name):
            flat = await asyncio.to_thread(_entries, place, name)
            listing = await self.workspace.search.files(place.resolved, _LIMIT) if recursive else flat
        if not listing.entries:
            hint = " but hidden or ignored files; list it without recursive" if flat.entries else ""
            return result_of(Origin.WORKSPACE, Outcome.OK, f"[{name} has no entries{hint}]")
        more = [f"[only the first {_LIMIT} entries; list a directory further down]"] if listing.more else []
        return result_of(Origin.WORKSPACE, Outcome.OK, "\n".join([*map(shown_name, listing.entries), *more]))


def _entries(place: Judged, name: str) -> Listing:
    """List one directory by name. Raises `ToolError`."""
    try:
        descriptor = place.open(name)
        try:
            with os.scandir(descriptor) as found:
                entries = sorted(found, key=lambda entry: entry.name)
                names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries[:_LIMIT]]
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
    return Listing(entries=tuple(names), more=len(entries) > _LIMIT)
