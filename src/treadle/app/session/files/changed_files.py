"""Tells the model before each step which files that it knows were changed or deleted by someone else."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from treadle.protocol.checkpoints import Restored
from treadle.protocol.events import CallFinished, Event, Noted
from treadle.protocol.sealed import Passage, PassageKind, ResultMade
from treadle.workspace.files.names import logged_path
from treadle.workspace.files.seen import FileNews, SeenFiles
from treadle.workspace.workspace import Workspace

_MOST_NAMED = 50


async def note_named_changes(seen: SeenFiles, events: Sequence[Event], /) -> None:
    """Remember which changes the results of commands named: an edit that is based on older text stays stale."""
    for event in events:
        match event.data:
            case CallFinished(result=result) | ResultMade(result=result):
                for change in result.changes:
                    seen.tell(change.path, change.after)
            case Restored(removed=removed):
                for path in removed:
                    seen.forget(logged_path(path))
            case _:
                pass


async def changed_files(workspace: Workspace) -> Noted | None:
    """Say what changed since the last time; looks at the times of files, and reads only one that differs."""
    news = () if workspace.seen.unchanged() else await asyncio.to_thread(workspace.seen.news)
    if not news:
        return None
    changed = _named(workspace, ((one, f" ({_clock(one.at)})") for one in news if one.at is not None))
    gone = _named(workspace, ((one, "") for one in news if one.at is None))
    lines = []
    if changed:
        lines.append(
            "Changed by a command or by someone else since you last read or wrote them (read again before "
            f"editing): {changed}"
        )
    if gone:
        lines.append(f"Deleted by a command or by someone else: {gone}")
    text = "\n".join(("<note>", *lines, "</note>"))
    return Noted(notes=(Passage(kind=PassageKind.FILES, text=text),))


def _named(workspace: Workspace, news: Iterable[tuple[FileNews, str]]) -> str:
    names = [f"{workspace.paths.display(one.path)}{note}" for one, note in news]
    more = len(names) - _MOST_NAMED
    return ", ".join([*names[:_MOST_NAMED], *([f"{more:,} more"] if more > 0 else [])])


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"
