"""Anchors: a log that was cut, replaced by an older copy or written anew is recognised by what was noted beside it."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.sessions import add, change, event, fill
from treadle.store.anchors import Anchor, Anchors
from treadle.store.sqlite import Store

CUT = (
    "DELETE FROM events WHERE session_id = 's0' AND seq > 9",
    "UPDATE sessions SET last_seq = 9 WHERE id = 's0'",
)


def missing(path: Path, name: str = "s0") -> tuple[int | None, bool]:
    store = Store(path)
    try:
        return store.missing(name)
    finally:
        store.close()


async def test_a_log_whose_end_was_cut_off_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await fill(path, sessions=2, events=12)
    assert (missing(path), missing(path, "s1")) == ((None, True), (None, True))
    for statement in CUT:
        change(path, statement)
    store = Store(path)
    assert (store.verify("s0"), store.missing("s0"), store.missing("s1")) == (None, (12, True), (None, True))
    store.close()


async def test_an_older_copy_in_place_of_the_file_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await fill(path, sessions=1, events=4)
    shutil.copy(path, tmp_path / "copy")
    store = Store(path)
    await store.append("s0", [event("s0", 5)], durable=False)
    await add(store, "new", 3)
    store.close()
    shutil.copy(tmp_path / "copy", path)
    store = Store(path)
    assert (store.missing("s0"), store.missing("new"), store.anchored()) == ((5, True), (3, True), ["new", "s0"])
    store.close()


async def test_a_log_that_was_written_anew_with_a_right_chain_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await fill(path, sessions=1, events=4)
    path.unlink()
    store = Store(path)
    await add(store, "s0", 2)
    await store.append("s0", [event("other", 3), event("s0", 4)], durable=False)
    assert (store.verify("s0"), store.missing("s0")) == (None, (4, True))
    store.close()


async def test_what_was_missing_once_stays_known_when_the_session_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await fill(path, sessions=1, events=12)
    for statement in CUT:
        change(path, statement)
    store = Store(path)
    for seq in range(10, 20):
        await store.append("s0", [event(f"other {seq}", seq)], durable=True)
    store.close()
    assert missing(path) == (12, True)
    kept = Anchors(path).read("s0")
    assert kept is not None
    assert [one.seq for one in kept] == [19, 12]


async def test_the_anchor_is_never_ahead_of_what_is_on_the_disk(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    await add(store, "s", 3)
    assert (Anchors(tmp_path / "db").read("s"), store.missing("s")) == (None, (None, False))
    await store.append("s", [event("s", 4)], durable=True)
    await store.append("s", [event("s", 5)], durable=False)
    kept = Anchors(tmp_path / "db").read("s")
    assert kept is not None
    assert [one.seq for one in kept] == [4]
    store.close()
    kept = Anchors(tmp_path / "db").read("s")
    assert kept is not None
    assert [one.seq for one in kept] == [5]


async def test_anchors_are_private_and_no_link_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await fill(path, sessions=1, events=2)
    folder = tmp_path / "db-anchors"
    assert (folder.stat().st_mode & 0o777, (folder / "s0").stat().st_mode & 0o777) == (0o700, 0o600)
    (folder / "s0").unlink()
    (tmp_path / "target").write_text("mine")
    (folder / "s0").symlink_to(tmp_path / "target")
    store = Store(path)
    await store.append("s0", [event("s0", 3)], durable=True)
    store.close()
    assert (tmp_path / "target").read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"\xff\0", b"000000000012 " + b"0" * 64 + b" 00000000\n", b"12 ab\n"])
async def test_an_anchor_that_cannot_be_read_is_none_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "db"
    await fill(path, sessions=1, events=2)
    (tmp_path / "db-anchors" / "s0").write_bytes(content)
    store = Store(path)
    assert store.missing("s0") == (None, False)
    await store.append("s0", [event("s0", 3)], durable=True)
    assert store.missing("s0") == (None, True)
    store.close()


async def test_a_place_that_takes_no_anchors_keeps_nobody_from_working(tmp_path: Path) -> None:
    (tmp_path / "db-anchors").write_text("in the way")
    store = Store(tmp_path / "db")
    await add(store, "s", 2)
    await store.append("s", [event("s", 3)], durable=True)
    await add(store, "../../../escape", 1)
    assert (store.missing("s"), store.anchored(), len(list(store.read("s")))) == ((None, False), [], 3)
    store.close()


async def test_a_name_that_is_a_path_gets_no_anchor(tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "db")
    for name in ("../escape", "a/b", ".", "..", "", "x" * 300):
        await add(store, name, 1)
        await store.append(name, [event(name, 2)], durable=True)
        assert store.missing(name) == (None, False)
    store.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


async def test_an_anchor_that_was_deleted_while_the_session_works_is_there_when_it_is_closed(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    await add(store, "s", 1)
    await store.append("s", [event("s", 2)], durable=True)
    shutil.rmtree(tmp_path / "db-anchors")
    await store.append("s", [event("s", 3)], durable=True)
    store.close()
    assert missing(tmp_path / "db", "s") == (None, True)


async def test_a_session_that_is_not_kept_leaves_no_anchor(tmp_path: Path) -> None:
    path = tmp_path / "db"
    store = Store(path)
    await add(store, "s", 1)
    await store.append("s", [event("s", 2)], durable=True)
    change(path, "UPDATE sessions SET title = '' WHERE id = 's'")
    await store.discard_empty("s")
    store.close()
    assert Anchors(path).names() == []


@given(st.lists(st.tuples(st.integers(0, 10**12 - 2), st.binary(min_size=32, max_size=32)), max_size=4), st.data())
def test_a_torn_line_is_never_taken_for_an_anchor(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    anchors = Anchors(tmp_path_factory.getbasetemp() / "torn")
    first, second = [Anchor(*line) for line in lines], [Anchor(seq + 1, chain[::-1]) for seq, chain in lines[:-1]]
    anchors.write("s", first)
    assert anchors.read("s") == tuple(first)
    file = tmp_path_factory.getbasetemp() / "torn-anchors" / "s"
    old = file.read_bytes()
    anchors.close()  # as another process
    anchors.write("s", second)
    assert anchors.read("s") == tuple(second)
    anchors.close()
    new = file.read_bytes()
    cut = data.draw(st.integers(0, len(new)))
    file.write_bytes(new[:cut] + old[cut:])
    assert set(anchors.read("s") or ()) <= {*first, *second}


async def test_two_processes_that_work_in_two_sessions_keep_both_anchors(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "db"), Store(tmp_path / "db")
    await add(first, "a", 1)
    await add(second, "b", 1)
    for seq in range(2, 12):
        await first.append("a", [event("a", seq)], durable=True)
        await second.append("b", [event("b", seq)], durable=True)
    for store in (first, second):
        assert [store.missing(name) for name in ("a", "b")] == [(None, True)] * 2
        store.close()
    with sqlite3.connect(tmp_path / "db") as look:
        assert look.execute("SELECT count(*) FROM events").fetchone() == (22,)
    look.close()


def test_anchors_that_are_fewer_than_before_leave_nothing_of_those(tmp_path: Path) -> None:
    many = [Anchor(seq, bytes([seq]) * 32) for seq in (9, 7, 3)]
    for kept in (many, many[:1], many[:2], []):
        anchors = Anchors(tmp_path / "db")
        anchors.write("s0", kept)
        anchors.close()
        assert anchors.read("s0") == tuple(kept)
