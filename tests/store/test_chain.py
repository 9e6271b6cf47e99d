"""The hash chain: every change of a log shows, and old databases get one."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.sessions import add, change, event, fill, make_old
from treadle.store.chain import LogRow, beginning, first_break, link
from treadle.store.sqlite import Store

CONTENTS = st.lists(st.tuples(st.integers(0, 2**40), st.binary(max_size=20), st.binary(max_size=20)), max_size=8)


def chained(contents: list[tuple[int, bytes, bytes]]) -> list[LogRow]:
    previous, rows = beginning("s"), []
    for seq, (at, source, data) in enumerate(contents, start=1):
        previous = link(previous, LogRow(seq, at, source, data))
        rows.append(LogRow(seq, at, source, data, previous))
    return rows


@settings(max_examples=150)
@given(CONTENTS, st.data())
def test_a_changed_row_is_the_first_break(contents: list[tuple[int, bytes, bytes]], data: st.DataObject) -> None:
    rows = chained(contents)
    assert first_break("s", rows, len(rows)) is None
    assert first_break("other", rows, len(rows)) == (1 if rows else None)
    if not rows:
        return
    index = data.draw(st.integers(0, len(rows) - 1))
    old = rows[index]
    changed = data.draw(
        st.sampled_from(
            [
                LogRow(old.seq, old.at + 1, old.source, old.data, old.chain),
                LogRow(old.seq, old.at, old.source + b"x", old.data, old.chain),
                LogRow(old.seq, old.at, old.source, old.data + b"x", old.chain),
                LogRow(old.seq, old.at, old.source, old.data, b""),
            ]
        )
    )
    assert first_break("s", [*rows[:index], changed, *rows[index + 1 :]], len(rows)) == index + 1
    assert first_break("s", [*rows[:index], *rows[index + 1 :]], len(rows)) == index + 1


def test_bytes_cannot_move_from_the_source_to_the_data() -> None:
    assert link(b"", LogRow(1, 0, b"ab", b"c")) != link(b"", LogRow(1, 0, b"a", b"bc"))


async def test_a_log_that_nobody_changed_is_right(tmp_path: Path) -> None:
    await fill(tmp_path / "db")
    store = Store(tmp_path / "db")
    await store.append("s1", [event("s1", 13), event("s1", 14)], durable=True)
    assert [store.verify(name) for name in ("s0", "s1", "s2", "unknown")] == [None] * 4
    assert len(set(store.chains("s1"))) == 14
    store.close()


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE events SET at = at + 1 WHERE session_id = 's1' AND seq = 5", 5),
        ("UPDATE events SET data = replace(data, 'word', 'WORD') WHERE session_id = 's1' AND seq = 12", 12),
        ("DELETE FROM events WHERE session_id = 's1' AND seq = 1", 1),
        ("DELETE FROM events WHERE session_id = 's1' AND seq = 7", 7),
        ("DELETE FROM events WHERE session_id = 's1' AND seq > 9", 10),
        ("UPDATE events SET session_id = 's9' WHERE session_id = 's1' AND seq = 3", 3),
        ("UPDATE events SET chain = x'00' WHERE session_id = 's1' AND seq = 2", 2),
    ],
)
async def test_a_change_behind_treadles_back_is_found(tmp_path: Path, statement: str, found: int) -> None:
    await fill(tmp_path / "db")
    change(
        tmp_path / "db",
        statement.replace("replace(data, 'word', 'WORD')", "CAST(replace(CAST(data AS TEXT), 'word', 'WORD') AS BLOB)"),
    )
    store = Store(tmp_path / "db")
    assert (store.verify("s0"), store.verify("s1")) == (None, found)
    store.close()


async def test_two_stores_that_take_turns_keep_one_chain(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "db"), Store(tmp_path / "db")
    await add(first, "s", 2)
    await second.append("s", [event("s", 3)], durable=False)
    await first.append("s", [event("s", 4)], durable=False)
    assert (first.verify("s"), second.verify("s")) == (None, None)
    first.close()
    second.close()


async def test_a_database_from_before_the_chain_gets_one(tmp_path: Path) -> None:
    written = make_old(tmp_path / "db", 1)
    store = Store(tmp_path / "db")
    assert list(store.read("s1")) == written["s1"]
    await store.append("s1", [event("s1", 4)], durable=False)
    assert (store.verify("s0"), store.verify("s1"), store.repaired) == (None, None, None)
    store.close()
    change(tmp_path / "db", "UPDATE events SET at = 0 WHERE session_id = 's0' AND seq = 2")
    store = Store(tmp_path / "db")
    assert (store.verify("s0"), store.verify("s1")) == (2, None)
    store.close()
