"""An old log of which a row is missing, doubled or damaged: what is before it can be read, and the error is ours."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.messages import read_transcript
from tests.golden.logs import Row, golden_logs, read_rows
from treadle.context.notified import notifications
from treadle.engine.core.past_history import read_past
from treadle.protocol.errors import DriftError, StoreError
from treadle.protocol.events import Event
from treadle.protocol.models import ToolProtocol

OLD = [log for log in golden_logs() if log.version == "0.1.0"]
OTHERS: Sequence[Any] = (
    None,
    0,
    -1,
    10**30,
    0.5,
    "",
    "other",
    [],
    {},
    True,
    [[]],
    {"type": "text"},
    "call_1",
    "assistant",
)


def read_on(rows: Sequence[Row]) -> list[Event]:
    """Read as far as it goes, in every way that there is; nothing but our own error may come of it."""
    events: list[Event] = []
    with suppress(StoreError):
        for event in read_rows(rows):
            events.append(event)  # noqa: PERF402 - what came before an error counts
    list(notifications(events))
    read_transcript(events).messages(ToolProtocol.XML)
    with suppress(DriftError):
        read_past(events)
    return events


@settings(max_examples=80)
@given(st.sampled_from(OLD), st.data())
def test_a_row_that_is_missing_doubled_or_moved_spoils_nothing_before_it(log: Any, data: st.DataObject) -> None:
    rows = list(log.rows)
    at = data.draw(st.integers(0, len(rows) - 1))
    to = data.draw(st.integers(at, len(rows) - 1))
    match data.draw(st.sampled_from(["missing", "doubled", "moved", "doubled under a new number"])):
        case "missing":
            del rows[at]
        case "doubled":
            rows.insert(at, rows[at])
        case "moved":
            rows.insert(to, rows.pop(at))
        case _:
            rows = [*rows[: at + 1], *(row._replace(seq=row.seq + 1) for row in rows[at:])]
    _check(rows, log.rows, log.rows[at].seq)


@settings(max_examples=160)
@given(st.sampled_from(OLD), st.data())
def test_a_damaged_row_spoils_nothing_before_it(log: Any, data: st.DataObject) -> None:
    rows = list(log.rows)
    at = data.draw(st.integers(0, len(rows) - 1))
    if data.draw(st.booleans()):
        cut = data.draw(st.integers(0, len(rows[at].data)))
        rows[at] = rows[at]._replace(
            data=rows[at].data[:cut] + data.draw(st.text(max_size=4)) + rows[at].data[cut + 1 :]
        )
    else:
        rows[at] = rows[at]._replace(data=json.dumps(_damaged(json.loads(rows[at].data), data)))
    _check(rows, log.rows, rows[at].seq)


def _check(rows: Sequence[Row], whole: Sequence[Row], seq: int) -> None:
    before = [event for event in read_rows(whole) if event.seq < seq]
    assert [event for event in read_on(rows) if event.seq < seq] == before


def _damaged(value: Any, data: st.DataObject) -> Any:
    """Put something else in the place of one value, at any depth, or leave it out."""
    inner = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    if not inner or data.draw(st.integers(0, 4)) == 0:
        return data.draw(st.sampled_from(OTHERS))
    at = data.draw(st.sampled_from(list(inner)))
    if isinstance(value, dict) and data.draw(st.integers(0, 4)) == 0:
        return {name: one for name, one in value.items() if name != at}
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[at] = _damaged(value[at], data)
    return changed


def test_the_error_names_the_row_and_what_is_wrong() -> None:
    rows = [row for row in OLD[0].rows if '"call_judged"' not in row.data]
    with pytest.raises(DriftError, match=r"Event \d+ of the session's log \(call_started\) does not fit") as raised:
        list(read_rows(rows))
    assert raised.value.why == "no such call is open"


def test_a_log_that_goes_back_to_an_older_schema_is_damaged() -> None:
    first, second = OLD[0].rows[:2]
    newer = next(log for log in golden_logs() if log.version == "2").rows[0]
    with pytest.raises(StoreError, match="cannot be read"):
        list(read_rows([newer, second]))
    with pytest.raises(StoreError, match="newer than this Treadle"):
        list(read_rows([first, second._replace(version=99)]))
