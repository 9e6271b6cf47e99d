"""A session that worked without a model: its folder, and the checkpoints around what it and others changed."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.reviewing import FileChoice, SessionReview
from treadle.app.compose import open_store
from treadle.app.history.offline import closed_session
from treadle.app.history.restoring_turns import WentBack, go_back
from treadle.app.reports.session_review import open_review
from treadle.protocol.checkpoints import Moment
from treadle.protocol.events import SessionStarted
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.permissions import Mode
from treadle.store.sqlite import SessionRow, Store

ID = "20261123-120000-abcdef"


class Worked:
    """A session with a folder."""

    def __init__(self, store: Store, work: Path) -> None:
        self.store, self.work = store, work
        self._step = 0

    @property
    def row(self) -> SessionRow:
        return self.store.find(ID)

    async def step(self, change: Callable[[], object]) -> None:
        """Let the session change files in a step."""
        self._step += 1
        kept = opened_checkpoints(self.store, self.row)
        async with closed_session(self.store, ID, kept) as session:
            for moment in (Moment.BEFORE, Moment.AFTER):
                state = session.state.files
                taken = await kept.take(state.taken + 1, state.trees)
                if moment is Moment.AFTER or taken.trees != state.trees:
                    await session.post(replace(taken, step=self._step, moment=moment))
                if moment is Moment.BEFORE:
                    change()

    def review(self, old: int = 0, new: int | None = None) -> SessionReview:
        found = open_review(self.store, self.row, old=old, new=new)
        assert found is not None
        return found

    async def reject(self, review: SessionReview, *choices: FileChoice) -> WentBack:
        return await go_back(ID, review.take_back(choices))


@asynccontextmanager
async def worked() -> AsyncIterator[Worked]:
    """Begin a session in an empty folder."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREADLE_HOME", str(Path(folder, "home")))
        work = Path(folder, "work")
        work.mkdir()
        store = open_store()
        try:
            choice = ModelChoice(model="a/b", tool_protocol=ToolProtocol.NATIVE)
            row = SessionRow(id=ID, workspace=str(work), model="a/b", title="t", created_at=1, updated_at=1, events=0)
            await store.create(row)
            started = SessionStarted(session_id=ID, workspace=str(work), choice=choice, mode=Mode.ASK)
            kept = opened_checkpoints(store, row) if row.events else None
            async with closed_session(store, ID, kept) as session:  # type: ignore[arg-type]
                await session.post(started)
            yield Worked(store, work)
        finally:
            store.close()
