"""read_file: the lines of a text file, page by page."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

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
from treadle.tools.declare import PATH, number, parameters, prompt
from treadle.tools.diffs import numbered
from treadle.workspace.files import Page, PageLimits, read_page
from treadle.workspace.text import visible
from treadle.workspace.workspace import Workspace

_LIMITS = PageLimits()

_SPEC = ToolSpec(
    name="read_file",
    description=prompt(__file__),
    parameters=parameters(
        {
            "path": PATH,
            "start_line": number("The first line to read, from 1.", low=1),
            "end_line": number("The last line to read.", low=1),
        },
        optional=("start_line", "end_line"),
    ),
    traits=ToolTraits(kind=ToolKind.READ, effect=ToolEffect.PURE),
    risk=Risk.READ,
)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Reads a file of the workspace or, if policy lets it, elsewhere."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Check the range; the file is opened by the run, after it was judged."""
        path = self.workspace.paths.locate(arguments["path"])
        first, last = arguments.get("start_line", 1), arguments.get("end_line")
        if last is not None and last < first:
            raise ToolError(f"end_line {last} is before start_line {first}.", invalid=True)
        return Prepared(
            accesses=(ReadPath(path=path),),
            preview=Preview(title=f"Read {self.workspace.paths.display(path)}"),
            run=partial(self._read, path, first, last),
        )

    async def _read(self, path: str, first: int, last: int | None, output: Output) -> CallResult:  # noqa: ARG002
        name = self.workspace.paths.display(path)
        lines = _LIMITS.lines if last is None else min(_LIMITS.lines, last - first + 1)
        target = self.workspace.paths.resolve(path)
        page = await asyncio.to_thread(read_page, target, name, first=first, limits=replace(_LIMITS, lines=lines))
        if page.digest:
            self.workspace.seen.note(target, page.digest)
        return result_text(Outcome.OK, _show(page, name, wanted=last))


def _show(page: Page, name: str, *, wanted: int | None) -> str:
    if not page.lines:
        if page.total:
            raise ToolError(f"{name} has only {page.total} lines; start_line {page.first} is past its end.")
        return f"[{name} is empty]"
    shown = numbered([visible(line) for line in page.lines], page.first)
    notes = []
    if page.total is None or (page.last < page.total and wanted != page.last):
        total = "more" if page.total is None else f"{page.total}"
        notes.append(f"lines {page.first}-{page.last} of {total}; read on with start_line={page.last + 1}")
    if page.encoding != "utf-8":
        notes.append(f"the file's encoding is {page.encoding}")
    return "\n".join([*shown, *(f"[{note}]" for note in notes)])
