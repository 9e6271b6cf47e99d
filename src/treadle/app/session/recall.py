"""What a resumed session's model knows of the files, from its log: what changed since makes an edit stale again."""

import os
from collections.abc import Iterable, Mapping

from treadle.protocol.events import CallFinished, CallJudged, Event
from treadle.protocol.tools import Outcome, ReadPath
from treadle.workspace.names import logged_path
from treadle.workspace.seen import Seen


def recall(history: Iterable[Event], seen: Seen) -> None:
    """Note the files that were read or written; looks at the times of those that were read."""
    reads: dict[str, tuple[str, ...]] = {}
    known: dict[str, int | str] = {}
    for event in history:
        match event.data:
            case CallJudged(call_id=call_id, accesses=accesses):
                reads[call_id] = tuple(
                    access.path for access in accesses if isinstance(access, ReadPath) and not access.listing
                )
            case CallFinished(call_id=call_id, result=result):
                if result.outcome is Outcome.OK:
                    known.update((os.path.realpath(logged_path(path)), event.at) for path in reads.get(call_id, ()))
                known.update((logged_path(change.path), change.after) for change in result.changes)
            case _:
                pass
    _note(known, seen)


def _note(known: Mapping[str, int | str], seen: Seen) -> None:
    """Take for each file the time when it was read, or the hash that it was written with."""
    for path, last in known.items():
        if isinstance(last, str):
            seen.recall(path, last)
        elif _changed_after(path, last):
            seen.recall(path, None)


def _changed_after(path: str, at: int) -> bool:
    """Whether a file was changed after a time, in milliseconds since 1970; one that is gone can be made anew."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path per file costs more than the look
    except OSError:
        return False
    return status.st_mtime_ns // 1_000_000 > at
