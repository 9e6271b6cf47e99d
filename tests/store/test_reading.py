"""A log that is missing events, has one twice or a damaged one: what is sound is read, and the rest is named."""

import asyncio
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.sessions import add, change, event, fill
from treadle.protocol.errors import SessionError, StoreError
from treadle.protocol.events import Event
from treadle.store.keeping import count_set_aside
from treadle.store.reading import AT_ONCE, Damage
from treadle.store.sqlite import SessionRow, Store
from treadle.store.summaries import keep_summaries, kept_summaries

EVENTS = 9

SHIFT = (
    "UPDATE events SET seq = -seq - 1 WHERE session_id = 's0' AND seq > {n}",
    "UPDATE events SET seq = -seq WHERE seq < 0",
)
DOUBLE = (
    "INSERT INTO events (session_id, seq, at, type, version, source, chain, data) SELECT session_id, {n} + 1, at, "
    "type, version, source, chain, data FROM events WHERE session_id = 's0' AND seq = {n}"
)
ONE = " WHERE session_id = 's0' AND seq = {n}"
FAULTS = {
    "removed": (f"DELETE FROM events{ONE}",),
    "doubled": (*SHIFT, DOUBLE),
    "not JSON": (f"UPDATE events SET data = x'7b22'{ONE}",),
    "no UTF-8": (f"UPDATE events SET data = x'22ff22'{ONE}",),
    "another type": ('UPDATE events SET data = CAST(\'{{"type":"unheard_of"}}\' AS BLOB)' + ONE,),
    "endless": (
        'UPDATE events SET data = CAST(\'{{"type":"prompt","z":\' '
        "|| replace(hex(zeroblob(90000)), '00', '[') AS BLOB)" + ONE,
    ),
    "empty": (f"UPDATE events SET data = x''{ONE}",),
    "no source": (f"UPDATE events SET source = x''{ONE}",),
    "no version": (f"UPDATE events SET version = 0{ONE}",),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Event]]]:
    path = tmp_path_factory.mktemp("sound") / "db"
    return path, asyncio.run(fill(path, sessions=2, events=EVENTS))


@settings(max_examples=120)
@given(st.sampled_from(sorted(FAULTS)), st.integers(1, EVENTS))
def test_one_fault_anywhere_shortens_one_session_and_is_named(
    sound: tuple[Path, dict[str, list[Event]]], fault: str, number: int
) -> None:
    pristine, written = sound
    path = pristine.with_name("copy")
    for leftover in path.parent.glob("copy*"):
        leftover.unlink() if leftover.is_file() else shutil.rmtree(leftover)
    shutil.copy(pristine, path)
    for statement in FAULTS[fault]:
        change(path, statement.format(n=number))
    store = Store(path)
    log = store.read("s0")
    found = list(log)
    # An event that is there twice moves those after it: that it is the same again only the chain says.
    sound_ones = written["s0"][: number - (fault != "doubled")]
    assert found[: len(sound_ones)] == sound_ones
    if fault != "doubled":
        assert len(found) == number - 1
        assert log.damage is not None
        assert (log.damage.first, log.damage.last, log.damage.session_id) == (number, number, "s0")
        kept = list(all_but := store.read("s0", go_on=True))
        assert kept == [one for one in written["s0"] if one.seq != number]
        assert len(all_but.damages) == 1
    assert store.verify("s0") == (number + 1 if fault == "doubled" else number if fault != "no version" else None)
    assert (list(store.read("s1")), store.verify("s1"), store.repaired) == (written["s1"], None, None)
    store.close()


@pytest.mark.parametrize("value", ["at = 'late'", "data = 17", "source = 1.5", "version = 'new'", "data = NULL"])
async def test_a_column_of_another_kind_is_damage_too(tmp_path: Path, value: str) -> None:
    path = tmp_path / "db"
    written = await fill(path, sessions=1, events=6)
    change(path, "CREATE TABLE loose AS SELECT * FROM events")
    change(path, "DROP TABLE events")
    change(path, "ALTER TABLE loose RENAME TO events")
    change(path, f"UPDATE events SET {value} WHERE seq = 4")
    store = Store(path)
    log = store.read("s0")
    assert list(log) == written["s0"][:3]
    assert log.damage is not None
    assert log.damage.what == "Event 4"
    await store.set_aside("s0", 3)
    assert (list(store.read("s0")), count_set_aside(store, "s0")) == (written["s0"][:3], 3)
    store.close()


async def test_a_log_is_read_from_any_event_to_any_other(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    await store.create(SessionRow(id="s", workspace="/w", model="p/m", title="t", created_at=1, updated_at=1, events=0))
    count = 2 * AT_ONCE + 3
    written = [event("s", seq) for seq in range(1, count + 1)]
    await store.append("s", written, durable=False)
    jitter = random.Random(1)
    for after, before in [
        (0, count + 9),
        (count, count + 1),
        (5, 3),
        *((jitter.randrange(count), jitter.randrange(count)) for _ in range(30)),
    ]:
        log = store.read("s", after=after, before=before)
        assert list(log) == written[after : max(after, before - 1)]
        assert log.damage is None
    assert list(store.read("s")) == written
    store.close()


async def test_a_reader_sees_what_is_appended_while_it_reads_and_keeps_nobody_from_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    written = await add(store, "s", 3)
    log = store.read("s")
    reading = iter(log)
    assert next(reading) == written[0]
    other = Store(tmp_path / "db")
    await other.append("s", [event("s", 4)], durable=True)
    assert list(reading) == written[1:]
    assert log.damage is None
    assert len(list(store.read("s"))) == 4
    store.close()
    other.close()


async def test_an_event_of_a_newer_treadle_is_not_damage(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await fill(path, sessions=1)
    change(path, "UPDATE events SET version = 99 WHERE seq = 3")
    store = Store(path)
    with pytest.raises(StoreError, match="log schema 99"):
        list(store.read("s0"))
    store.close()


async def test_a_session_goes_on_before_the_damage_and_what_is_set_aside_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written = (await fill(path, sessions=2, events=8))["s0"]
    change(path, "UPDATE events SET data = x'7b' WHERE session_id = 's0' AND seq = 5")
    store, other = Store(path), Store(path)
    keep_summaries(store, {"s0": (8, b"old")})
    await other.acquire("s0")
    with pytest.raises(SessionError):
        await store.set_aside("s0", 4)
    await other.release("s0")
    await store.set_aside("s0", 4)
    log = store.read("s0")
    assert (list(log), log.damage, store.verify("s0")) == (written[:4], None, None)
    assert (count_set_aside(store, "s0"), count_set_aside(store, "s1"), kept_summaries(store)) == (4, 0, {})
    assert (store.find("s0").events, len(list(store.read("s1")))) == (4, 8)
    await store.append("s0", [event("s0", 5)], durable=True)
    assert (list(store.read("s0")), store.verify("s0")) == ([*written[:4], event("s0", 5)], None)
    # The end that was noted outside of the database is not missing: it was set aside.
    assert store.missing("s0") == (None, True)
    other.close()
    store.close()


def test_damage_is_explained_by_what_can_be_done() -> None:
    first = Damage(session_id="s", first=1, last=1, why="It is not in the log.").error()
    later = Damage(session_id="s", first=4, last=6, why="It is not in the log.").error()
    assert (first.code, first.what) == ("event-damaged", "Event 1 of session s cannot be read.")
    assert "new session" in first.fix
    assert later.what == "Events 4 to 6 of session s cannot be read."
    assert "Resume" in later.fix
