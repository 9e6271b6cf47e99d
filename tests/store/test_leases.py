"""One writer for each session: who holds it, who may take it over, and what the others are told."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from treadle.protocol.errors import SessionError, StoreError
from treadle.protocol.events import ENGINE, Event, SetPresence
from treadle.store.sqlite import SessionRow, Store

ROW = SessionRow(id="s", workspace="/w", model="m/m", title="", created_at=1, updated_at=1, events=0)

HOLDER = """
import asyncio, sys
from pathlib import Path
from treadle.store.sqlite import Store

async def hold() -> None:
    store = Store(Path(sys.argv[1]))
    await store.acquire("s")
    print("held", flush=True)
    sys.stdin.read()

asyncio.run(hold())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
async def store(path: Path) -> Store:
    store = Store(path)
    await store.create(ROW)
    return store


@pytest.fixture
def holder(path: Path, store: Store) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the session."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


async def test_the_sessions_that_are_worked_in_are_named(store: Store, holder: subprocess.Popen[bytes]) -> None:
    assert store.leased() == frozenset({"s"})
    holder.kill()
    holder.wait()
    assert store.leased() == frozenset()


async def test_a_session_held_by_another_process_is_busy(store: Store, holder: subprocess.Popen[bytes]) -> None:
    with pytest.raises(SessionError) as caught:
        await store.acquire("s")
    store.close()
    assert (caught.value.code, caught.value.what) == ("session-busy", "Session s is busy.")
    assert caught.value.why == f"It is open in another process ({socket.gethostname()}:{holder.pid})."


async def test_the_lease_of_a_killed_process_is_taken_over(store: Store, holder: subprocess.Popen[bytes]) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    await store.acquire("s")
    store.close()


@pytest.mark.parametrize(("started", "holds"), [("7", False), ("", True), (None, True)])
async def test_a_number_that_another_process_has_now_holds_nothing(
    store: Store, holder: subprocess.Popen[bytes], started: str | None, holds: bool
) -> None:
    """The holder lives, but was started at another time than the owner of the lease; older versions do not say when."""
    opening = "1" if started is None else f"{started}-1"
    owner = f"{socket.gethostname()}:{holder.pid}:{opening}"
    await store.write(lambda connection: connection.execute("UPDATE leases SET owner = ?", (owner,)))
    assert store.leased() == (frozenset({"s"}) if holds else frozenset())
    store.close()


async def test_a_lease_that_was_given_back_is_free(path: Path, store: Store) -> None:
    other = Store(path)
    await store.acquire("s")
    with pytest.raises(SessionError):
        await other.acquire("s")
    await store.release("s")
    await other.acquire("s")
    with pytest.raises(SessionError):
        await store.acquire("s")
    for one in (store, other):
        one.close()


async def test_its_own_lease_can_be_taken_again(store: Store) -> None:
    await store.acquire("s")
    await store.acquire("s")
    store.close()


@pytest.mark.parametrize(("age", "busy"), [(0.0, True), (10_000.0, False)])
async def test_a_lease_of_another_machine_counts_as_long_as_it_beats(store: Store, age: float, busy: bool) -> None:
    await store.write(
        lambda connection: connection.execute(
            "INSERT INTO leases VALUES ('s', 'elsewhere:1:1', unixepoch() - ?)", (age,)
        )
    )
    if busy:
        with pytest.raises(SessionError):
            await store.acquire("s")
    else:
        await store.acquire("s")
    store.close()


async def test_two_stores_write_their_sessions_side_by_side(path: Path, store: Store) -> None:
    other = Store(path)
    await other.create(SessionRow(id="t", workspace="/w", model="m/m", title="", created_at=2, updated_at=2, events=0))

    async def write(one: Store, session: str) -> None:
        for number in range(1, 51):
            event = Event(seq=number, at=number, source=ENGINE, data=SetPresence(user_present=True))
            await one.append(session, [event], durable=False)

    await asyncio.gather(write(store, "s"), write(other, "t"))
    assert [len(list(store.read(session))) for session in ("s", "t")] == [50, 50]
    assert [(row.id, row.events) for row in other.sessions("/w")] == [("t", 50), ("s", 50)]
    for one in (store, other):
        one.close()


async def test_an_event_of_a_number_that_is_taken_is_not_written(store: Store) -> None:
    event = Event(seq=1, at=1, source=ENGINE, data=SetPresence(user_present=True))
    await store.append("s", [event], durable=True)
    with pytest.raises(StoreError):
        await store.append("s", [Event(seq=2, at=2, source=ENGINE, data=event.data), event], durable=True)
    assert list(store.read("s")) == [event]
    store.close()


async def test_a_killed_holder_that_nobody_has_reaped_yet_does_not_keep_the_session(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    store = Store(path)
    await store.create(ROW)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(SessionError):
        await store.acquire("s")
    holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    await store.acquire("s")
    await store.release("s")
    store.close()
    holder.wait()
    holder.stdin.close()
    holder.stdout.close()


async def test_a_lease_that_cannot_be_given_back_holds_nobody_up_and_no_other_session_is_let_go(
    store: Store, path: Path, tmp_path: Path
) -> None:
    for session in ("other", "third"):
        await store.create(replace(ROW, id=session))
    await store.acquire("s")
    await store.acquire("other")
    kept = "CREATE TRIGGER kept BEFORE DELETE ON leases BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    await store.write(lambda connection: connection.execute(kept))
    with pytest.raises(StoreError):
        await store.release("s")
    second = Store(path)  # the disk is still full
    assert second.leased() == {"other"}
    await second.acquire("s")
    await store.write(lambda connection: connection.execute("DROP TRIGGER kept"))
    await store.acquire("third")
    await store.write(lambda connection: connection.execute(kept))
    with pytest.raises(StoreError):
        await store.release("third")
    await store.write(lambda connection: connection.execute("DROP TRIGGER kept"))
    Store(tmp_path / "another.db").close()  # which has no such lease: it stays remembered
    Store(path).close()
    assert {session for (session,) in store.query("SELECT session_id FROM leases")} == {"s", "other"}
    third = Store(path)
    with pytest.raises(SessionError, match="busy"):
        await third.acquire("other")
    for one in (third, second, store):
        one.close()
