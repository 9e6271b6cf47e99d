"""The list of sessions says of each what was so when it was read, whatever happens meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.app.reports.known_sessions import (
    SessionState,
    how_it_ended,
    listed_runs,
    listed_sessions,
)
from treadle.app.reports.listed_words import state_words
from treadle.present.fold import fold_notification
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.events import ENGINE, Event, EventData, Prompt, SessionStarted
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.notifications import TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.permissions import Mode
from treadle.protocol.sealed import PromptsDelivered
from treadle.store.sqlite import SessionRow, Store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("closes", [True, False], ids=["closed", "opened"])
def test_a_session_that_works_is_not_called_stopped_while_it_is_closed_or_opened(
    closes: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = ModelChoice(model="p/a", tool_protocol=ToolProtocol.NATIVE)
    data: tuple[EventData, ...] = (
        SessionStarted(session_id="s", workspace="/w", choice=choice, mode=Mode.ASK),
        Prompt(id="p", content=(Text(text="go"),)),
        PromptsDelivered(turn=1, prompt_ids=("p",)),
    )
    events = [Event(seq=seq, at=seq, source=ENGINE, data=one) for seq, one in enumerate(data, 1)]
    row = SessionRow(id="s", workspace="/w", model="p/a", title="go", created_at=1, updated_at=1, events=0)
    owner = Store(home / "sessions.db")

    async def written() -> None:
        await owner.create(row)
        await owner.append("s", events, durable=False)

    def now(change: Callable[[str], Awaitable[None]]) -> None:
        async def changed() -> None:
            await change("s")

        asyncio.run(changed())

    asyncio.run(written())
    now(owner.release)
    if closes:
        now(owner.acquire)
    reading = Store.read

    def read(self: Store, session_id: str, **options: Any) -> Any:
        log = reading(self, session_id, **options)
        now(owner.release if closes else owner.acquire)
        return log

    monkeypatch.setattr(Store, "read", read)
    assert [one.state for one in listed_sessions(None)] == [SessionState.WORKING]
    owner.close()


def test_the_sessions_of_a_batch_stand_apart_from_the_others(home: Path) -> None:
    store = Store(home / "sessions.db")
    for number, name in enumerate(("mine", "batch-1.a", "batch-1.b-2", "batch-2.a"), 1):
        place = "/w" if name == "mine" else f"/out/{name}"
        row = SessionRow(id=name, workspace=place, model="p/a", title="go", created_at=1, updated_at=number, events=0)
        asyncio.run(store.create(row))
    store.close()
    assert [row.id for row in listed_sessions(None)] == ["mine"]
    assert [row.id for row in listed_sessions(Path("/out/batch-2.a"))] == ["batch-2.a"]
    assert listed_runs() == {"batch-1": (2, 3), "batch-2": (1, 4)}


@pytest.mark.parametrize(
    ("why", "ended", "words"),
    [("a hook: no more today", "hook", "stopped: a hook ended it"), ("", "cancelled", "stopped: interrupted")],
)
def test_a_turn_that_a_hook_ended_is_not_called_interrupted(why: str, ended: str, words: str) -> None:
    over = TurnEnded(outcome=TurnOutcome(stop=TurnStop.CANCELLED, why=why))
    view, _ = fold_notification(SessionView(), Stamped(notification=over))
    assert how_it_ended(view.stop) == (SessionState.STOPPED, ended)
    assert state_words(*how_it_ended(view.stop)) == words
