"""read_file: the lines of a text file, page by page."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import ResultContent, Text
from treadle.protocol.tools import (
    CallResult,
    Origin,
    Outcome,
    Preview,
    ToolSpec,
)
from treadle.tools.declarations import READ_FILE
from treadle.tools.images import described, image_of, is_image
from treadle.workspace.files.diffs import number_lines
from treadle.workspace.files.documents import document_text, is_document, is_text_itself
from treadle.workspace.files.judged import JudgedPath, judge_path
from treadle.workspace.files.pages import Page, PageLimits, page_of
from treadle.workspace.files.text import size_of
from treadle.workspace.files.text_files import sha256
from treadle.workspace.workspace import Workspace

_LIMITS = PageLimits()
_EXTRACTED = "this is the text extracted from the document"
_NO_ROOM = (Text(text="[not read: this result is full. Read it in a separate call.]"),)
_LEAST = 400
_NOTES = 200
"""Bytes that are kept for what is said below the lines."""
_LAST_LINE = 10**12
"""No file has more."""


class _Wanted(Struct, frozen=True):
    """A file and the lines of it that are wanted; `last` is None for as many as fit a page."""

    place: JudgedPath
    first: int = 1
    last: int | None = None


class ReadFile(Struct, frozen=True):
    """Reads files of the workspace or, if policy lets it, elsewhere."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return READ_FILE

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Check the range; what it notes of the files is judged before the run opens them."""
        paths = self.workspace.paths
        first, last = min(arguments.get("start_line", 1), _LAST_LINE), arguments.get("end_line")
        if last is not None and last < first:
            raise ToolError(f"end_line {last} is before start_line {first}. Swap them.", invalid=True)
        path = paths.locate(arguments["path"])
        others = dict.fromkeys(paths.locate(other) for other in arguments.get("other_paths", ()))
        others.pop(path, None)
        wanted = (_Wanted(judge_path(path), first, last), *(_Wanted(judge_path(other)) for other in others))
        return Prepared(
            accesses=tuple(access for each in wanted for access in each.place.accesses()),
            preview=Preview(title=f"Read {', '.join(paths.display(each.place.asked) for each in wanted)}"),
            run=partial(self._run, wanted),
        )

    async def _run(self, wanted: Sequence[_Wanted], output: Output) -> CallResult:  # noqa: ARG002 - the port's shape
        room = min(_LIMITS.size, self.workspace.conversation.room())
        if len(wanted) == 1:
            return CallResult(outcome=Outcome.OK, origin=Origin.WORKSPACE, content=await self._read(wanted[0], room))
        content: list[ResultContent] = []
        failed = 0
        for each in wanted:
            gap = "\n\n" if content else ""
            content.append(Text(text=f"{gap}=== {self.workspace.paths.display(each.place.asked)}\n"))
            try:
                section = await self._read(each, room) if room >= _LIMITS.width or each is wanted[0] else _NO_ROOM
            except ToolError as error:
                section = (Text(text=f"[{error.text}]"),)
                failed += 1
            room -= sum(size_of(block.text) for block in (content[-1], *section) if isinstance(block, Text))
            content += section
        outcome = Outcome.FAILED if failed == len(wanted) else Outcome.OK
        return CallResult(outcome=outcome, origin=Origin.WORKSPACE, content=tuple(content))

    async def _read(self, wanted: _Wanted, room: int) -> tuple[ResultContent, ...]:
        """Read a page or an image for the model, and remember that it knows the file. Raises `ToolError`."""
        place, name = wanted.place, self.workspace.paths.display(wanted.place.asked)
        if is_image(name):
            raw = await asyncio.to_thread(self.workspace.files.read_bytes, place, name)
            return described(await asyncio.to_thread(image_of, raw, name))
        lines = _LIMITS.lines if wanted.last is None else min(_LIMITS.lines, wanted.last - wanted.first + 1)
        limits = replace(_LIMITS, lines=lines, size=max(room - _NOTES, _LEAST))
        page, note = None, ""
        if is_document(name):
            raw = await asyncio.to_thread(self.workspace.files.read_bytes, place, name)
            page, note = await _document_page(raw, name, wanted.first, limits), _EXTRACTED
        if page is None:
            read = partial(self.workspace.files.read_page, place, name, first=wanted.first, limits=limits)
            page, note = await asyncio.to_thread(read), ""
        text = _show(page, name, note, last=wanted.last)
        return (Text(text=self._unless_known(page, place.resolved, name, text)),)

    def _unless_known(self, page: Page, path: str, name: str, text: str) -> str:
        """Say in a line that the conversation has this page already; else remember that it will."""
        seen = self.workspace.seen
        short = f"[{name}, lines {page.first}-{page.last}: unchanged since you read them, see above]"
        known = seen.had_page(path, text) and self.workspace.conversation.holds(text)
        if page.digest:
            seen.note(path, page.digest)
        seen.note_page(path, text)
        return short if known and len(text) > len(short) else text


async def _document_page(raw: bytes, name: str, first: int, limits: PageLimits) -> Page | None:
    """Give a page of a document's text; None for one that is text itself and cannot be read as a document."""
    try:
        return page_of(await document_text(raw, name), sha256(raw), first=first, limits=limits)
    except ToolError:
        if is_text_itself(name):
            return None
        raise


def _show(page: Page, name: str, note: str, *, last: int | None) -> str:
    if not page.lines:
        if page.total:
            raise ToolError(
                f"{name} has only {page.total} lines; start_line {page.first} is past its end. Give a smaller one."
            )
        return f"[{name} is empty]"
    shown = number_lines(page.lines, page.first)
    notes = []
    if page.total is None or (page.last < page.total and last != page.last):
        total = "more" if page.total is None else f"{page.total}"
        notes.append(f"lines {page.first}-{page.last} of {total}; read on with start_line={page.last + 1}")
    if note:
        notes.append(note)
    if page.escape:
        notes.append(f"control characters are shown as escapes, such as {page.escape}; edits can copy them so")
    if page.encoding != "utf-8":
        notes.append(f"the file's encoding is {page.encoding}")
    return "\n".join([*shown, *(f"[{note}]" for note in notes)])
