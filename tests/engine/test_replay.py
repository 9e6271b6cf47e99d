"""Replay: a log is rebuilt from its inputs byte for byte, and whatever was changed in it is found."""

from functools import cache

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.golden.logs import Golden, golden_logs
from treadle.app.compose import tool_specs
from treadle.app.history.replaying import ReplayReport, replay_rows
from treadle.context.focus import with_progress
from treadle.engine.replay.strict import Conditions
from treadle.protocol.base import StoredEvent
from treadle.protocol.codec import decode_data
from treadle.protocol.errors import StoreError
from treadle.protocol.models import ModelSpec
from treadle.protocol.sealed import Sealed
from treadle.store.kept_tape import chained

LOGS = golden_logs()
CORPUS = [log for log in LOGS if log.version == "2"]


@cache
def conditions() -> Conditions:
    """What the golden sessions ran under, as far as it is known."""
    return Conditions(
        model=lambda ref: ModelSpec(provider="golden", name=ref.partition("/")[2]),
        tools={spec.name: with_progress(spec) for spec in tool_specs()},
    )


def rows_in(log: Golden) -> list[StoredEvent]:
    """The rows of a golden log."""
    return [
        StoredEvent(seq=row.seq, at=row.at, source=row.source.encode(), version=row.version, data=row.data.encode())
        for row in log.rows
    ]


def replayed(session_id: str, rows: list[StoredEvent], chains: list[bytes]) -> ReplayReport:
    return replay_rows(session_id, rows, chains, conditions())


def recorded(log: Golden) -> tuple[list[StoredEvent], list[bytes]]:
    rows = rows_in(log)
    return rows, list(chained(log.id, iter(rows)))


@pytest.mark.parametrize("log", LOGS, ids=str)
def test_a_golden_log_of_any_version_is_rebuilt_byte_for_byte(log: Golden) -> None:
    rows, chains = recorded(log)
    report = replayed(log.id, rows, chains)
    assert (report.difference, report.chain) == (None, chains[-1].hex())


def changed(row: StoredEvent, at: int, byte: int) -> StoredEvent:
    data = bytearray(row.data)
    data[at % len(data)] = byte
    return msgspec.structs.replace(row, data=bytes(data))


@given(st.sampled_from(CORPUS), st.data())
def test_a_changed_byte_is_found_where_it_is_or_before(log: Golden, data: st.DataObject) -> None:
    rows, chains = recorded(log)
    number = data.draw(st.integers(0, len(rows) - 1))
    other = changed(rows[number], data.draw(st.integers(0, 10_000)), data.draw(st.integers(32, 126)))
    assume(other != rows[number])
    try:
        report = replayed(log.id, [*rows[:number], other, *rows[number + 1 :]], chains)
    except StoreError as error:
        assert error.code in ("log-damaged", "event-damaged")  # noqa: PT017 - it is one or the other
        return
    assert report.difference is not None
    assert report.difference.why


@given(st.sampled_from(CORPUS), st.data())
def test_what_the_machine_said_cannot_be_changed_even_with_all_hashes_made_anew(
    log: Golden, data: st.DataObject
) -> None:
    rows, _ = recorded(log)
    said = [number for number, row in enumerate(rows) if isinstance(decode_data(row.data), Sealed)]
    number = data.draw(st.sampled_from(said))
    other = changed(rows[number], data.draw(st.integers(0, 10_000)), data.draw(st.integers(32, 126)))
    assume(other != rows[number])
    forged = [*rows[:number], other, *rows[number + 1 :]]
    try:
        report = replayed(log.id, forged, list(chained(log.id, iter(forged))))
    except StoreError as error:
        assert error.code in ("log-damaged", "event-damaged")  # noqa: PT017 - it is one or the other
        return
    assert report.difference is not None
    assert report.difference.seq == rows[number].seq


@pytest.mark.parametrize("gone", ["the last", "one in the middle"])
def test_a_row_of_the_machine_that_is_missing_is_named(gone: str) -> None:
    log = next(log for log in CORPUS if log.name == "headless")
    rows, _ = recorded(log)
    said = [number for number, row in enumerate(rows) if isinstance(decode_data(row.data), Sealed)]
    number = said[-1] if gone == "the last" else said[0]
    kept = [*rows[:number], *rows[number + 1 :]]
    report = replayed(log.id, kept, [])
    assert report.difference is not None
    assert report.difference.seq in (rows[number].seq, rows[number].seq + 1)


def test_a_row_that_nothing_caused_is_named() -> None:
    log = next(log for log in CORPUS if log.name == "headless")
    rows, _ = recorded(log)
    extra = msgspec.structs.replace(
        rows[0], seq=rows[-1].seq + 1, at=rows[-1].at, data=b'{"type":"checklist_updated","text":"- [ ] forged"}'
    )
    report = replayed(log.id, [*rows, extra], [])
    assert report.difference is not None
    assert (report.difference.seq, report.difference.type) == (extra.seq, "checklist_updated")
    assert report.difference.why == "Nothing in the log is the cause of it."
