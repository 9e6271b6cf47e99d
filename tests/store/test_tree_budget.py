"""The budget of a session with subagents: whatever they do at whatever moment, the sum stays within it."""

import asyncio
import random
from pathlib import Path

import pytest

from treadle.engine.core.budgets import Send, check_budgets
from treadle.engine.core.state import Money, State, TurnState, replace
from treadle.protocol.events import ENGINE, Event, ReplyFinished
from treadle.protocol.limits import Budget, Limits, Terms
from treadle.protocol.messages import Message, Role
from treadle.protocol.models import ReplyStop, Spent
from treadle.protocol.usage import Usage
from treadle.store.spent import Purpose
from treadle.store.sqlite import SessionRow, Store

CHILDREN = 5
PRICE = 10.0
"""Dollars for a million tokens of any kind."""


def row(name: str, root: str = "") -> SessionRow:
    return SessionRow(
        id=name, workspace="/w", model="p/m", title="t", created_at=0, updated_at=0, events=0,
        parent=root, root=root, agent="explore" if root else "",
    )  # fmt: skip


class Worker:
    """One session of the tree: asks for a call, may be killed before it ends, and goes on."""

    def __init__(self, store: Store, name: str, limits: Limits, chance: random.Random) -> None:
        self.store, self.name, self.chance, self.seq = store, name, chance, 0
        turn = TurnState(number=1, sources=())
        self.state = State(session_id=name, limits=limits, turn=turn, subagents=CHILDREN)

    async def call(self) -> bool:
        """Make one call; False where the budget has no room for it."""
        terms = Terms(
            input_tokens=self.chance.randint(100, 40_000), max_output=4_096, input_price=PRICE, output_price=PRICE
        )
        room = check_budgets(self.state, terms)
        if not isinstance(room, Send):
            return False
        others = await self.store.reserve(self.name, Purpose.STEP, 0, room.worst)
        await asyncio.sleep(0)
        room = check_budgets(self.state, replace(terms, tree=others.tree))
        if not isinstance(room, Send):
            return False
        if self.chance.random() < 0.15:  # killed: what it had reserved stays until it is taken up
            return True
        used = self.chance.randint(1, terms.input_tokens + (room.reply_tokens or 4_096))
        cost = used * PRICE / 1e6
        said = ReplyFinished(
            step=self.seq + 1,
            attempt=1,
            message=Message(role=Role.ASSISTANT, content=()),
            stop=ReplyStop.END_TURN,
            usage=Usage(input_tokens=used),
            cost=cost,
        )
        self.seq += 1
        await self.store.append(self.name, [Event(seq=self.seq, at=0, source=ENGINE, data=said)], durable=False)
        spent = self.state.money.spent + Spent(cost=cost, tokens=used)
        self.state = replace(self.state, money=Money(spent=spent))
        return True


async def grow(folder: Path, seed: int) -> tuple[float, float]:
    """Let a tree work until nobody has room left; gives what it spent and might have."""
    chance = random.Random(seed)
    cap = chance.uniform(0.2, 3.0)
    store = Store(folder / f"{seed}.db")
    await store.create(row("root"))
    workers = [Worker(store, "root", Limits(session=Budget(cost=cap)), chance)]
    for number in range(CHILDREN):
        await store.create(row(f"child{number}", "root"))
        own = Budget(cost=cap / CHILDREN) if chance.random() < 0.5 else Budget()
        workers.append(Worker(store, f"child{number}", Limits(session=own, tree=Budget(cost=cap)), chance))
    for _ in range(60):
        some = chance.sample(workers, chance.randint(1, len(workers)))
        if not any(await asyncio.gather(*(one.call() for one in some))):
            break
    spent = sum(one.state.money.spent.cost for one in workers)
    for one in workers:
        await store.acquire(one.name)
        await store.release(one.name)
    left = store.query("SELECT count(*) FROM reservations")[0][0]
    store.close()
    assert left == 0, "something stayed reserved"
    return spent, cap


@pytest.mark.parametrize(
    "seeds", [pytest.param(range(20)), pytest.param(range(20, 500), marks=pytest.mark.soak)], ids=["some", "all"]
)
async def test_the_sum_of_a_tree_never_passes_its_cap(tmp_path: Path, seeds: range) -> None:
    idle = 0
    for seed in seeds:
        spent, cap = await grow(tmp_path, seed)
        assert 0 <= spent <= cap + 1e-9, seed
        idle += spent == 0  # nobody of those whose turn it was had room for a call
    assert idle < len(seeds) / 10
