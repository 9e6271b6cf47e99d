"""A session of a run waits for the money of calls that go on, and of no others."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.app.subagents.families import ME, MODEL
from tests.e2e.running import PATIENCE
from tests.store.sessions import add, fill
from tests.store.test_spending import finished, log
from treadle.app.compose import Opening, open_session, open_store
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.security.trusting import session_trust
from treadle.app.session.left_calls import of_settings
from treadle.app.session.live import LiveSession
from treadle.app.session.parts import Brought, LoggedBudgets
from treadle.engine.runtime.feeds import Feed
from treadle.protocol.events import Interrupt, Prompt
from treadle.protocol.messages import Text
from treadle.protocol.models import Spent
from treadle.protocol.notifications import TurnEnded, TurnOutcome, TurnStop
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.leases import LEASE_SECONDS
from treadle.store.spent import Purpose, SharedSums
from treadle.store.sqlite import Store

MINE, OTHER = "run.mine", "run.other"
WORST = Spent(cost=0.6, tokens=10)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "w").mkdir()
    return tmp_path / "w"


class Meanwhile(Store):
    """A store where the other session ends its call right after what it reserves was counted."""

    ends: Store | None = None

    async def reserve(self, *given: Any, **named: Any) -> SharedSums:
        counted = await super().reserve(*given, **named)
        if (other := self.ends) is not None:
            self.ends = None
            await log(other, OTHER, finished(cost=0.1))
        return counted


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[tuple[Meanwhile, Store]]:
    """The store of a session, and that of another one of its run, which makes a call."""
    path = tmp_path / "db"
    await fill(path, events=1)
    mine, other = Meanwhile(path), Store(path)
    for store, session in ((mine, MINE), (other, OTHER)):
        await add(store, session, 1)
        await store.acquire(session)
    await other.reserve(OTHER, Purpose.STEP, 0, WORST, run="run")
    yield mine, other
    mine.close()
    other.close()


async def reserved(mine: Store) -> float:
    """What others have spent and reserved when this session goes on, of 1 dollar."""
    budgets = LoggedBudgets(mine, MINE, Brought(run="run", run_cost=1.0, clock=lambda: 0), of_settings)
    async with asyncio.timeout(PATIENCE):
        run = (await budgets.reserve(WORST)).run
    assert run is not None
    return run.cost


async def test_it_goes_on_where_a_call_ends_in_the_moment_in_which_it_looks(stores: tuple[Meanwhile, Store]) -> None:
    mine, mine.ends = stores[0], stores[1]
    assert await reserved(mine) == pytest.approx(0.1)


async def test_it_waits_for_no_call_of_a_process_that_was_halted(stores: tuple[Meanwhile, Store]) -> None:
    beats = time.time() - 2 * LEASE_SECONDS
    owner = f"{socket.gethostname()}:{os.getppid()}:1"  # a process that lives, by its number alone
    stores[1].write_now(
        lambda connection: connection.execute(
            "UPDATE leases SET owner = ?, beat = ? WHERE session_id = ?", (owner, beats, OTHER)
        )
    )
    assert await reserved(stores[0]) == pytest.approx(0.6)


@asynccontextmanager
async def session_of_run(
    folder: Path, *, resume: str = "", seconds: float | None = None
) -> AsyncIterator[tuple[LiveSession, Store]]:
    """A session of a run whose money another one of its calls has reserved, and the store of that one."""
    async with ScriptedServer(Script(turns=(), otherwise=Turn(items=(SayText(text="Done."),)))) as server:
        prices = ModelSettings(input_price=1.0, output_price=1.0, context_window=100_000)
        opening = Opening(
            workspace=folder,
            settings=Settings(model=MODEL, base_url=server.base_url, models={MODEL: prices}, max_seconds=seconds),
            user_present=False,
            one_task=True,
            trust=session_trust(folder, once=True),
            session_id=MINE,
            resume=resume,
            run="run",
            run_cost=1.0,
        )
        other = open_store()
        try:
            if not resume:
                await add(other, OTHER, 1)
            await other.acquire(OTHER)
            async with asyncio.timeout(PATIENCE), await open_session(opening) as live:
                await other.reserve(OTHER, Purpose.STEP, 0, Spent(cost=0.9999, tokens=10), run="run")
                yield live, other
            assert not reserved_by(other, MINE)
        finally:
            await other.release(OTHER)
            other.close()


def reserved_by(store: Store, session: str) -> list[object]:
    return list(store.query("SELECT cost FROM reservations WHERE session_id = ?", (session,)))


async def end_of_turn(feed: Feed) -> TurnOutcome:
    async for one in feed:
        if isinstance(one, TurnEnded):
            return one.outcome
    raise AssertionError("the session ended")


@pytest.mark.parametrize("ends", ["interrupt", "time", "close"])
async def test_a_session_that_waits_for_money_ends_as_any_other(folder: Path, ends: str) -> None:
    async with session_of_run(folder, seconds=1.0 if ends == "time" else None) as (live, _), live.follow() as feed:
        await live.post(Prompt(id="p", content=(Text(text="Go."),)), ME)
        if ends != "time":
            await asyncio.sleep(1)
            assert live.status.turn_active
        if ends == "interrupt":
            await live.post(Interrupt(), ME)
        if ends != "close":
            stop = TurnStop.CANCELLED if ends == "interrupt" else TurnStop.TIME
            assert (await end_of_turn(feed)).stop is stop
    if ends == "close":
        async with session_of_run(folder, resume=MINE) as (live, other), live.follow() as feed:
            await other.release(OTHER)
            outcome = await end_of_turn(feed)
            assert outcome.text == "Done.", outcome
