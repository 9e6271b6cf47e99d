"""The ledger of edits: what counts as a first try, what as a repair, and which tool follows from it."""

import asyncio
import json
from argparse import Namespace
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.store.sessions import change, make_old
from treadle.app.compose import open_store
from treadle.app.session.files.edit_ledger import (
    FirstTries,
    Ledger,
    LedgerObserver,
    LedgerRow,
    ReadingsRow,
    choose_edit_tool,
    first_tries,
    ledger_rows,
    readings_rows,
)
from treadle.cli import edits_command
from treadle.protocol.events import CallFinished, CallProposed, Event, EventData, ReplyFinished, SetModel, Source
from treadle.protocol.messages import Message, Role
from treadle.protocol.models import ModelChoice, ReplyStop, ToolProtocol
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.sealed import ModelReplaced, TurnSettled
from treadle.protocol.tools import CallResult, EditReport, Outcome, ToolCall, ToolTraits
from treadle.protocol.usage import Usage
from treadle.store.edit_counts import EditCount
from treadle.store.sqlite import Store

TODAY = date(2026, 3, 31)


def count(
    form: str, code: str, number: int, *, repair: bool = False, tokens: int = 0, age: int = 0, model: str = "p/m"
) -> EditCount:
    day = (TODAY - timedelta(days=age)).isoformat()
    return EditCount(model=model, format=form, code=code, repair=repair, day=day, count=number, tokens=tokens)


def chosen(*counts: EditCount, model: str = "p/m") -> str:
    return choose_edit_tool(model, counts, TODAY)


def event(data: EventData) -> Event:
    return Event(seq=1, at=1_774_958_400_000, source=Source(kind="engine"), data=data)


def edited(code: str, path: str = "a.py") -> Event:
    report = EditReport(path=path, format="search_replace", code=code)
    outcome = Outcome.OK if code == "ok" else Outcome.FAILED
    return event(CallFinished(call_id="c", result=CallResult(outcome=outcome, edits=(report,))))


def replied(tokens: int) -> Event:
    return event(
        ReplyFinished(
            step=1,
            attempt=1,
            message=Message(role=Role.ASSISTANT, content=()),
            stop=ReplyStop.TOOL_USE,
            usage=Usage(output_tokens=tokens),
        )
    )


def test_an_edit_after_a_refusal_of_the_same_file_is_a_repair_and_costs_its_reply() -> None:
    ledger = Ledger()
    model = event(SetModel(choice=ModelChoice(model="p/m", tool_protocol=ToolProtocol.NATIVE)))
    told = [model, replied(10), edited("not_found"), replied(25), edited("ok"), replied(5), edited("ok")]
    assert [one for each in told for one in ledger.take(each)] == [
        count("search_replace", "not_found", 1, tokens=10),
        count("search_replace", "ok", 1, repair=True, tokens=25),
        count("search_replace", "ok", 1, tokens=5),
    ]


def test_the_ledger_is_kept_per_model_and_format_and_summed_up(tmp_path: Path) -> None:
    async def write() -> None:
        await store.count_edits([count("search_replace", "ok", 1), count("search_replace", "not_found", 1)])
        await store.count_edits(
            [count("search_replace", "ok", 2), count("search_replace", "ok", 1, repair=True, tokens=9)]
        )

    store = Store(tmp_path / "sessions.db")
    try:
        asyncio.run(write())
        rows = ledger_rows(store.edit_counts("p/m"), TODAY)
    finally:
        store.close()
    assert rows == [
        LedgerRow(
            model="p/m",
            format="search_replace",
            first_tries=4,
            first_try_rate=0.75,
            refused={"not_found": 1},
            repairs=1,
            repair_tokens=9,
            recent_tries=4,
            recent_low=0.301,
            recent_high=0.954,
            chosen=True,
        )
    ]


MEDIOCRE = [count("search_replace", "ok", 60), count("search_replace", "not_found", 40)]


def test_a_model_is_offered_what_it_was_trained_on_until_the_ledger_speaks() -> None:
    assert chosen(model="openai/gpt-5") == "apply_patch"
    assert chosen(model="anthropic/claude-sonnet-4-5") == "replace_in_file"


@pytest.mark.parametrize(
    ("counts", "tool"),
    [
        # 23 tries, or a poor run that may be chance, are no evidence.
        ([count("search_replace", "ok", 15), count("search_replace", "not_found", 8)], "replace_in_file"),
        ([count("search_replace", "not_found", 29)], "replace_in_file"),
        ([count("search_replace", "ok", 75), count("search_replace", "not_found", 25)], "replace_in_file"),
        # Mediocre: only a format that is surely better is taken instead.
        (MEDIOCRE, "replace_in_file"),
        (
            [*MEDIOCRE, count("apply_patch", "ok", 29)],
            "replace_in_file",
        ),
        (
            [*MEDIOCRE, count("apply_patch", "ok", 40)],
            "apply_patch",
        ),
        (
            [
                *MEDIOCRE,
                *(count("apply_patch", "ok", 30), count("apply_patch", "malformed", 10)),
            ],
            "replace_in_file",
        ),
        # Bad: the other one gets its chance, and is given up when it is not better.
        ([count("search_replace", "ok", 10), count("search_replace", "not_found", 30)], "apply_patch"),
        (
            [
                *(count("search_replace", "ok", 10), count("search_replace", "not_found", 30)),
                *(count("apply_patch", "ok", 8), count("apply_patch", "malformed", 30)),
            ],
            "replace_in_file",
        ),
    ],
)  # fmt: skip
def test_a_format_gives_way_only_where_it_is_surely_worse(counts: list[EditCount], tool: str) -> None:
    assert chosen(*counts) == tool


def test_what_was_not_the_formats_fault_is_no_evidence() -> None:
    idle = [count("search_replace", code, 90) for code in ("no_change", "already_applied", "changed_since")]
    assert first_tries([*idle, count("search_replace", "ok", 3)], "search_replace", TODAY) == FirstTries(3, 3)
    assert chosen(*idle) == "replace_in_file"


def test_a_format_that_was_given_up_is_tried_again_after_thirty_days() -> None:
    bad = [("ok", 5), ("not_found", 60)]
    assert chosen(*(count("search_replace", code, number, age=29) for code, number in bad)) == "apply_patch"
    assert chosen(*(count("search_replace", code, number, age=30) for code, number in bad)) == "replace_in_file"


def test_an_edit_after_one_that_changed_nothing_is_no_repair() -> None:
    ledger = Ledger()
    codes = [one for each in (edited("no_change"), edited("ok")) for one in ledger.take(each)]
    assert [(one.code, one.repair) for one in codes if isinstance(one, EditCount)] == [
        ("no_change", False),
        ("ok", False),
    ]


def test_bounds_are_those_of_wilson() -> None:
    assert (FirstTries().low, FirstTries().high) == (0.0, 1.0)
    assert round(FirstTries(50, 40).low, 3) == 0.67
    assert round(FirstTries(50, 40).high, 3) == 0.888
    assert FirstTries(30, 30).high == pytest.approx(1.0)


def test_a_ledger_from_before_days_were_kept_is_forgotten_in_time(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    make_old(path, 5)
    change(path, "INSERT INTO edits VALUES ('p/m', 'search_replace', 'ok', 0, 7, 9)")
    store = Store(path)
    try:
        (one,) = store.edit_counts()
    finally:
        store.close()
    assert (one.model, one.code, one.count, one.tokens) == ("p/m", "ok", 7, 9)
    assert date.fromisoformat(one.day) >= date(2026, 1, 1)


def proposed(*readings: str) -> Event:
    call = ToolCall(id="c", name="replace_in_file", arguments={})
    return event(CallProposed(step=1, attempt=1, call=call, traits=ToolTraits(), readings=readings))


def chose(model: str) -> Event:
    return event(SetModel(choice=ModelChoice(model=model, tool_protocol=ToolProtocol.NATIVE)))


def test_readings_are_counted_by_model_and_are_no_refusals(tmp_path: Path) -> None:
    told = [
        *(chose("p/m"), proposed("parameter_name", "edit_notation"), edited("ok"), proposed(), edited("ok")),
        *(proposed("edit_notation"), edited("not_found"), chose("p/n"), proposed("json_call")),
    ]
    store = Store(tmp_path / "sessions.db")
    try:
        asyncio.run(LedgerObserver(store, Ledger())(told))
        (row,), readings = ledger_rows(store.edit_counts(), TODAY), readings_rows(store.reading_counts())
    finally:
        store.close()
    assert (row.first_tries, round(row.first_try_rate, 2), row.refused, row.repairs) == (3, 0.67, {"not_found": 1}, 0)
    assert readings == [
        ReadingsRow(model="p/m", readings={"edit_notation": 2, "parameter_name": 1}),
        ReadingsRow(model="p/n", readings={"json_call": 1}),
    ]


def test_a_model_is_one_whatever_key_it_is_called_with_and_the_one_that_stood_in_is_another() -> None:
    ledger = Ledger()
    told = [
        *(chose("p@work/m"), edited("ok"), chose("p@/m"), proposed("not_given")),
        *(event(ModelReplaced(model="q@work/n", why="it failed")), edited("ok")),
        *(event(TurnSettled(turn=1, outcome=TurnOutcome(stop=TurnStop.END_TURN), state={})), edited("ok")),
    ]
    models = [one.model for each in told for one in ledger.take(each)]
    assert models == ["p/m", "p/m", "q/n", "p/m"]


def test_a_ledger_that_told_keys_apart_is_summed_up_by_model(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    make_old(path, 9)
    for model, number in (("p/m", 1), ("p@a/m", 2), ("p@/m", 4), ("p@b/m@x", 8), ("q/m@x", 16)):
        change(path, f"INSERT INTO edits VALUES ('{model}', 'search_replace', 'ok', 0, '2026-03-01', {number}, 10)")
    store = Store(path)
    try:
        found = [(one.model, one.count, one.tokens) for one in store.edit_counts()]
    finally:
        store.close()
    assert found == [("p/m", 7, 30), ("p/m@x", 8, 10), ("q/m@x", 16, 10)]


def test_the_command_shows_readings_beside_the_edits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    store = open_store()
    told = [chose("p/m"), *[proposed("milliseconds", "of_tomorrow")] * 12, proposed("milliseconds"), edited("ok")]
    asyncio.run(LedgerObserver(store, Ledger())(told))
    store.close()
    for as_json in (False, True):
        edits_command.execute(Namespace(verb=None, json=as_json))
    edit, head, *rows, edit_json, readings_json = capsys.readouterr().out.splitlines()
    assert edit.startswith("p/m  search_replace: 100% of 1 first tries applied; refused: none;")
    assert head == "p/m  calls in which something was read for the model (none of them is a refusal):"
    assert rows == [
        "  13  milliseconds: A time limit was in milliseconds instead of seconds.",
        "  12  of_tomorrow: A newer Treadle knows it.",
    ]
    assert json.loads(edit_json)["first_tries"] == 1
    assert json.loads(readings_json) == {"model": "p/m", "readings": {"milliseconds": 13, "of_tomorrow": 12}}
