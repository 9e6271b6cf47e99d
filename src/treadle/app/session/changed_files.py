"""Tells the model before each step which files that it knows were changed or deleted by someone else."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from treadle.protocol.events import CallFinished, Event, Noted
from treadle.protocol.sealed import Passage, PassageKind, ResultMade
from treadle.workspace.seen import FileNews
from treadle.workspace.workspace import Workspace

_MOST_NAMED = 50


class ChangedFiles(Struct, frozen=True):
    """Looks at the times of the files that the session read, wrote or was sent; only one that differs is read."""

    workspace: Workspace

    async def before_step(self) -> Noted | None:
        """Say what changed since the last step."""
        if self.workspace.seen.empty:
            return None
        news = await asyncio.to_thread(self.workspace.seen.news)
        if not news:
            return None
        return Noted(notes=(Passage(kind=PassageKind.FILES, text=self._told(news)),))

    async def observe(self, events: Sequence[Event], /) -> None:
        """Take note of what the result of a command said that it changed; an edit based on older text stays stale."""
        for event in events:
            match event.data:
                case CallFinished(result=result) | ResultMade(result=result):
                    for change in result.changes:
                        self.workspace.seen.tell(change.path, change.after)
                case _:
                    pass

    def _told(self, news: Sequence[FileNews]) -> str:
        changed = self._named(
            (one, f" ({datetime.fromtimestamp(one.at, UTC).astimezone():%H:%M:%S})") for one in news if one.at
        )
        gone = self._named((one, "") for one in news if one.at is None)
        told = []
        if changed:
            told.append(
                "Changed by a command or by someone else since you last read or wrote them (read again before "
                f"editing): {changed}"
            )
        if gone:
            told.append(f"Deleted by a command or by someone else: {gone}")
        return "\n".join(("<note>", *told, "</note>"))

    def _named(self, news: Iterable[tuple[FileNews, str]]) -> str:
        names = [f"{self.workspace.paths.display(one.path)}{note}" for one, note in news]
        more = len(names) - _MOST_NAMED
        return ", ".join([*names[:_MOST_NAMED], *([f"{more:,} more"] if more > 0 else [])])


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"
