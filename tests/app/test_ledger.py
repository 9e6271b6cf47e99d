"""The ledger of edits: what counts as a first try, what as a repair, and which tool follows from it."""

import asyncio
from pathlib import Path

from treadle.app.session.ledger import Ledger, LedgerRow, choose_edit_tool, first_try_rates, ledger_rows
from treadle.protocol.events import CallFinished, Event, EventData, ReplyFinished, SetModel, Source
from treadle.protocol.messages import Message, Role
from treadle.protocol.models import ReplyStop, ToolProtocol, Usage
from treadle.protocol.tools import CallResult, EditReport, Outcome
from treadle.store.sqlite import EditCount, Store


def count(form: str, code: str, number: int, *, repair: bool = False, tokens: int = 0) -> EditCount:
    return EditCount(model="p/m", format=form, code=code, repair=repair, count=number, tokens=tokens)


def event(data: EventData) -> Event:
    return Event(seq=1, at=0, source=Source(kind="engine"), data=data)


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
    model = event(SetModel(model="p/m", tool_protocol=ToolProtocol.NATIVE))
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
        rows = ledger_rows(store.edit_counts("p/m"))
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
        )
    ]


def test_a_model_is_offered_what_it_was_trained_on_until_the_ledger_speaks() -> None:
    assert choose_edit_tool("openai/gpt-5", []) == "apply_patch"
    assert choose_edit_tool("anthropic/claude-sonnet-4-5", []) == "replace_in_file"


def test_a_few_bad_edits_are_no_evidence() -> None:
    few = [count("search_replace", "not_found", 5)]
    assert first_try_rates(few) == {}
    assert choose_edit_tool("p/m", few) == "replace_in_file"


def test_a_format_that_a_model_writes_badly_gives_way_to_the_other_one() -> None:
    bad = [count("search_replace", "ok", 10), count("search_replace", "not_found", 15)]
    assert choose_edit_tool("p/m", bad) == "apply_patch"
    worse = [*bad, count("apply_patch", "ok", 2), count("apply_patch", "malformed", 30)]
    assert choose_edit_tool("p/m", worse) == "replace_in_file"
    better = [*bad, count("apply_patch", "ok", 30)]
    assert choose_edit_tool("p/m", better) == "apply_patch"
