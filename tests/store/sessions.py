"""Sessions in a database, for tests."""

import sqlite3
from pathlib import Path

from treadle.protocol.codec import encode
from treadle.protocol.events import ENGINE, SCHEMA_VERSION, Event, EventData, Prompt, SessionStarted
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.permissions import Mode
from treadle.store.appending import tag_of
from treadle.store.chain import LogRow, beginning, link
from treadle.store.schema import STEPS
from treadle.store.sqlite import SessionRow, Store

_TYPED = 7
"""The first schema whose rows name the type of their event."""


def event(session_id: str, seq: int) -> Event:
    """Give the event of that number: the start, then prompts."""
    data: EventData = Prompt(id=f"p{seq}", content=(Text(text=f"{session_id} {seq} " + "word " * 40),))
    if seq == 1:
        data = SessionStarted(
            choice=ModelChoice(model="p/m", tool_protocol=ToolProtocol.NATIVE),
            session_id=session_id,
            workspace="/w",
            mode=Mode.ASK,
        )
    return Event(seq=seq, at=1000 + seq, source=ENGINE, data=data)


async def add(store: Store, session_id: str, events: int) -> list[Event]:
    """Write a session of so many events, each in a transaction of its own."""
    await store.create(
        SessionRow(id=session_id, workspace="/w", model="p/m", title="t", created_at=1001, updated_at=1001, events=0)
    )
    written = [event(session_id, seq) for seq in range(1, events + 1)]
    for one in written:
        await store.append(session_id, [one], durable=False)
    return written


async def fill(path: Path, *, sessions: int = 3, events: int = 12) -> dict[str, list[Event]]:
    """Make a database of some sessions and close it."""
    store = Store(path)
    written = {f"s{number}": await add(store, f"s{number}", events) for number in range(sessions)}
    store.close()
    return written


def make_old(path: Path, steps: int, *, sessions: int = 2, events: int = 3, title: str = "t") -> dict[str, list[Event]]:
    """Make a database as a Treadle wrote it that knew so many steps of the schema."""
    connection = sqlite3.connect(path, isolation_level=None)
    for work in (work for step in STEPS[:steps] for work in step):
        if isinstance(work, str):
            connection.execute(work)
    connection.execute(f"PRAGMA user_version={steps}")
    written = {f"s{number}": [event(f"s{number}", seq) for seq in range(1, events + 1)] for number in range(sessions)}
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("BEGIN")
    for name, log in written.items():
        connection.execute(
            "INSERT INTO sessions (id, workspace, model, title, created_at, updated_at, last_seq) "
            "VALUES (?, '/w', 'p/m', ?, 0, 0, ?)",
            (name, title, len(log)),
        )
        chain = beginning(name)
        for one in log:
            row = LogRow(one.seq, one.at, encode(one.source), encode(one.data))
            chain = link(chain, row)
            values = (name, row.seq, row.at, row.source, SCHEMA_VERSION, row.data, *([chain] if steps >= 3 else []))
            if steps >= _TYPED:
                values = (None, *values[:3], tag_of(one.data), SCHEMA_VERSION, row.source, chain, row.data)
            connection.execute(f"INSERT INTO events VALUES ({', '.join('?' * len(values))})", values)
    connection.execute("COMMIT")
    connection.close()
    return written


def change(path: Path, statement: str) -> None:
    """Change the database behind Treadle's back."""
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
