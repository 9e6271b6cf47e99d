"""list_files: the entries of a directory, or the tree below it."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import (
    CallResult,
    Outcome,
    Preview,
    ReadPath,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)
from treadle.tools.declare import parameters, prompt, text
from treadle.workspace.files import missing
from treadle.workspace.search import Listing
from treadle.workspace.text import visible
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
        path = self.workspace.paths.locate(arguments["path"])
        return Prepared(
            accesses=(ReadPath(path=path, listing=True),),
            preview=Preview(title=f"List {self.workspace.paths.display(path)}"),
            run=partial(self._list, path, arguments.get("recursive", False)),
        )

    async def _list(self, path: str, recursive: bool, output: Output) -> CallResult:  # noqa: ARG002, FBT001
        name = self.workspace.paths.display(path)
        target = self.workspace.paths.resolve(path)
        flat = await asyncio.to_thread(_entries, target, name)
        listing = await self.workspace.search.files(target, _LIMIT) if recursive else flat
        if not listing.entries:
            hint = " but hidden or ignored files; list it without recursive" if flat.entries else ""
            return result_text(Outcome.OK, f"[{name} has no entries{hint}]")
        more = [f"[only the first {_LIMIT} entries; list a directory further down]"] if listing.more else []
        return result_text(Outcome.OK, "\n".join([*map(visible, listing.entries), *more]))


def _entries(path: str, name: str) -> Listing:
    """List one directory by name. Raises `ToolError`."""
    try:
        entries = sorted(Path(path).iterdir())
        names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries[:_LIMIT]]
    except FileNotFoundError as error:
        raise ToolError(missing(path, name)) from error
    except NotADirectoryError as error:
        raise ToolError(f"{name} is a file, not a directory. Use read_file to read it.") from error
    except OSError as error:
        raise ToolError(f"{name} cannot be listed: {error.strerror}.") from error
    return Listing(entries=tuple(names), more=len(entries) > _LIMIT)
