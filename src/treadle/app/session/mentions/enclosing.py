"""What a mention becomes: a text in a fence that names its origin, bounded, with a line for what is not shown."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from treadle.app.session.mentions.mention_text import Named
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Enclosure, EnclosureKind, Text, UserContent
from treadle.protocol.patterns import regex
from treadle.tools.images import described, image_of, is_image
from treadle.workspace.files.diffs import number_lines
from treadle.workspace.files.documents import document_text, is_document, is_text_itself
from treadle.workspace.files.judged import JudgedPath
from treadle.workspace.files.pages import Page, PageLimits, page_of, read_page
from treadle.workspace.files.text import HeadTail, size_of, visible
from treadle.workspace.files.text_files import MAX_WHOLE, TextFile, read_bytes, read_text

_FENCE = regex(r"<(/?)enclosed\b")
_TAIL = 4
"""The end of a file that is cut gets a fourth of the room."""

_LINES = 2000
_LEAST = 400


class NotEnclosedError(ToolError):
    """What was mentioned does not go along; the text says to a person why."""


class ReadFileText(Struct, frozen=True, kw_only=True):
    """What is sent of a file: its blocks, the digest of its bytes (empty if not known), and whether all of it is."""

    content: tuple[UserContent, ...]
    digest: str = ""
    whole: bool = False


def enclose(kind: EnclosureKind, origin: str, text: str) -> Enclosure:
    """Put a text between marks that name its origin; it cannot end them itself."""
    return Enclosure(kind=kind, origin=origin, content=(Text(text=enclosed_text(kind, origin, text)),))


def enclosed_text(kind: EnclosureKind, origin: str, text: str) -> str:
    """Write a text as what goes along with a message and is not the words of the user."""
    name = visible(origin).replace('"', "%22").replace("\n", " ")
    inner = _FENCE.sub(r"&lt;\1enclosed", text)
    return f'<enclosed kind="{kind}" from="{name}">\n{inner.rstrip()}\n</enclosed>'


def head_and_tail(text: str, room: int, hint: str = "") -> str:
    """Leave out the middle of a text of more than `room` bytes; `hint` says how to see it."""
    kept = HeadTail(2 * room)
    kept.add(text)
    return kept.take(f"; {hint}" if hint else "", room)


async def read_mentioned(place: JudgedPath, name: str, named: Named, room: int) -> ReadFileText:
    """Read a file that was judged, at most `room` bytes of its text. Raises `ToolError`."""
    if is_image(name):
        raw = await asyncio.to_thread(read_bytes, place, name)
        return ReadFileText(content=described(await asyncio.to_thread(image_of, raw, name)))
    if is_document(name):
        raw = await asyncio.to_thread(read_bytes, place, name)
        try:
            return _shown(TextFile(name=name, text=await document_text(raw, name), digest=""), named, room)
        except ToolError:
            if not is_text_itself(name):
                raise
    return await asyncio.to_thread(_read, place, name, named, room)


def _read(place: JudgedPath, name: str, named: Named, room: int) -> ReadFileText:
    try:
        large = Path(place.resolved).stat().st_size > MAX_WHOLE
    except OSError:
        large = False  # reading it says why
    if not large:
        return _shown(read_text(place, name), named, room)
    page = read_page(place, name, first=max(1, named.first), limits=PageLimits(lines=_LINES, size=room))
    lines = page.lines if named.last is None else page.lines[: named.last - page.first + 1]
    more = f"[the file has more than {MAX_WHOLE:,} bytes; read on with read_file, start_line={page.first + len(lines)}]"
    return ReadFileText(content=(_block(name, named, [*number_lines(lines, page.first), more]),))


def _shown(file: TextFile, named: Named, room: int) -> ReadFileText:
    text, name = file.text, file.name
    if named.first:
        return ReadFileText(content=(_block(name, named, _range(text, name, named, room)),), digest=file.digest)
    head = page_of(text, file.digest, limits=PageLimits(lines=_LINES, size=room))
    notes = [] if file.encoding == "utf-8" else [f"[the file's encoding is {file.encoding}]"]
    if not head.lines:
        return ReadFileText(content=(_block(name, named, ["[it is empty]"]),), digest=file.digest, whole=True)
    total = head.total or 0
    if head.last < total:
        rows = [*_both_ends(text, total, room), *notes]
        return ReadFileText(content=(_block(name, named, rows),), digest=file.digest)
    whole = max(map(len, text.split("\n"))) <= PageLimits().width
    rows = [*number_lines(head.lines, 1), *notes]
    return ReadFileText(content=(_block(name, named, rows),), digest=file.digest, whole=whole)


def _both_ends(text: str, total: int, room: int) -> list[str]:
    """Give the beginning and the end of a text, and between them a line that says how to see the rest."""
    tail_room = max(_LEAST, room // _TAIL)
    head = page_of(text, "", limits=PageLimits(lines=_LINES, size=max(_LEAST, room - tail_room)))
    tail = _last_page(text, total, head, tail_room)
    gap = (
        f"[lines {head.last + 1}-{tail.first - 1} of {total} are not shown; read_file with start_line={head.last + 1}]"
    )
    return [*number_lines(head.lines, 1), gap, *number_lines(tail.lines, tail.first)]


def _last_page(text: str, total: int, head: Page, room: int) -> Page:
    lines = text.removesuffix("\n").split("\n")
    width, first, used = PageLimits().width, total + 1, 0
    while first - 1 > head.last + 1 and used < room and total - first < _LINES // _TAIL:
        first -= 1
        used += size_of(lines[first - 1][:width]) + 1
    return page_of(text, "", first=first, limits=PageLimits(lines=_LINES, size=room * 2))


def _range(text: str, name: str, named: Named, room: int) -> Sequence[str]:
    last = named.last
    lines = _LINES if last is None else min(_LINES, last - named.first + 1)
    page = page_of(text, "", first=named.first, limits=PageLimits(lines=lines, size=room))
    total = page.total or 0
    if not page.lines:
        raise NotEnclosedError(f"{name} has only {total:,} lines.")
    rows = number_lines(page.lines, page.first)
    wanted = total if last is None else min(last, total)
    if page.last < wanted:
        rows.append(f"[lines {page.last + 1}-{wanted} are not shown; read_file with start_line={page.last + 1}]")
    return rows


def _block(name: str, named: Named, rows: Sequence[str]) -> Text:
    return Text(text=enclosed_text(EnclosureKind.FILE, f"{name}{named.lines}", "\n".join(rows)))
