"""The screen of usage: the same sums as `treadle usage`, for a range of days."""

from datetime import date

from msgspec.structs import replace

from tests.web.recorded import MODEL, Visit
from treadle.app.reports.usage_report import UsageKey, usage_report
from treadle.present.spending_words import Spending
from treadle.web.charts import WIDTH, column_bars, stacked_bars
from treadle.web.screens.usage_screen import _left_words


def test_the_page_has_the_sums_of_the_report_and_a_row_for_each_session(visit: Visit) -> None:
    report = usage_report(UsageKey.SESSION, None, None)
    (row,) = report.rows
    assert row.name == visit.recorded.session
    page = visit.text("/usage?since=all")
    assert f'/s/{row.name}"' in page
    assert f"${row.cost:.2f}" in page
    assert MODEL in page
    assert "$3 in, $15 out" in page
    assert "Tokens of results" in page


def test_what_is_left_of_the_day_is_what_was_not_spent(visit: Visit) -> None:
    spent = usage_report(UsageKey.DAY, None, None).total.cost
    assert f"${2.0 - spent:.2f} left" in visit.text("/usage")


def test_an_open_session_has_what_is_left_of_its_budget(visit: Visit) -> None:
    visit.done("/settings/set", key="budget.session_cost", value="1.5")
    spent = usage_report(UsageKey.SESSION, None, None).total.cost
    with visit.opened():
        assert f"${1.5 - spent:.2f} left" in visit.text("/usage")
    assert f"${1.5 - spent:.2f} left" not in visit.text("/usage")


def test_a_range_without_use_says_so_and_one_that_is_none_is_refused(visit: Visit) -> None:
    assert "Nothing was used in this period." in visit.text(f"/usage?since={date.max.isoformat()}")
    refused = visit.get("/usage?since=<b>soon")
    assert refused.status_code == 400
    assert "is no day" in refused.text
    assert "<b>soon" not in refused.text


def test_bars_fill_the_chart_and_never_leave_it() -> None:
    bars = stacked_bars([("a", "", 1.0), ("b", "", 3.0), ("c", "", 99.0)], 4.0)
    assert [(bar.start, bar.length) for bar in bars] == [(0.0, 250.0), (250.0, 750.0), (1000.0, 0.0)]
    assert [bar.length for bar in stacked_bars([("a", "", 1.0)], 0.0)] == [0.0]
    columns = column_bars([("a", "", 1.0), ("b", "", 2.0)], 100.0)
    assert [(bar.start, bar.length) for bar in columns] == [(0.0, 50.0), (WIDTH / 2, 100.0)]
    assert [bar.length for bar in column_bars([("a", "", 0.0)], 100.0)] == [0.0]


def test_of_a_budget_no_more_is_left_than_what_is_known_of_the_cost_leaves() -> None:
    spent = Spending(ended=0.5)
    assert [_left_words(2.0, one) for one in (spent, replace(spent, unpriced=True), Spending(ended=9.0))] == [
        "$1.50",
        "at most $1.50",
        "$0.00",
    ]
