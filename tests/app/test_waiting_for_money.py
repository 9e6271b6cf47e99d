"""A session of a run waits for the money of calls that go on, and of no others."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import PATIENCE
from tests.store.sessions import add, fill
from tests.store.test_spending import finished, log
from treadle.app.session.left_calls import of_settings
from treadle.app.session.parts import Brought, LoggedBudgets
from treadle.protocol.models import Spent
from treadle.store.leases import LEASE_SECONDS
from treadle.store.spent import Purpose, SharedSums
from treadle.store.sqlite import Store

MINE, OTHER = "run.mine", "run.other"
WORST = Spent(cost=0.6, tokens=10)


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
