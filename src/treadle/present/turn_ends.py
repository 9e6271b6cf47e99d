"""The end of a turn says what is left of what it changed, also after files were restored."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.present.canvas import Canvas
from treadle.present.items import TurnItem
from treadle.present.view import EndedTurn
from treadle.protocol.tools import FileChange

_MOST = 200
"""Ends of turns whose files are followed."""


def place_end(canvas: Canvas, item: TurnItem) -> None:
    """Put the end of a turn behind all else."""
    placed = canvas.add(item)
    if item.files:
        canvas.view = replace(canvas.view, ends=(*canvas.view.ends, EndedTurn(placed))[-_MOST:])


def mark_restored(canvas: Canvas, now: Sequence[FileChange]) -> None:
    """Leave out of the ends of turns what was restored, by what the session's own change of these files is `now`."""
    if not now:
        return
    known = {change.path: change for change in now}
    canvas.view = replace(canvas.view, ends=tuple(_marked(canvas, one, known) for one in canvas.view.ends))


def _marked(canvas: Canvas, ended: EndedTurn, now: dict[str, FileChange]) -> EndedTurn:
    item = ended.placed.item
    if not isinstance(item, TurnItem):
        return ended
    changes = item.outcome.changes
    told = {one.path: _is_gone(one, now[one.path]) for one in changes if one.path in now}
    gone = frozenset(one.path for one in changes if told.get(one.path, one.path in ended.gone))
    if gone != ended.gone:
        left = tuple(one for one in changes if one.path not in gone)
        files = tuple(seen for one, seen in zip(changes, item.files, strict=True) if one.path not in gone)
        outcome = replace(item.outcome, changes=left)
        canvas.change(ended.placed, replace(item, outcome=outcome, files=files, restored=len(gone)))
    return replace(ended, gone=gone)


def _is_gone(change: FileChange, now: FileChange) -> bool:
    """Whether nothing of a turn's change of a file is left: it is as before the session, or as before that turn."""
    return not (now.before or now.after) or (now.after == change.before and now.after != change.after)
