"""The screen of what was used, by day, model, project, profile, tool, mode and session, and what budgets have left."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from treadle.door.open_session import Reach
from treadle.door.opening import list_sessions
from treadle.door.reports import (
    BudgetLine,
    UsageKey,
    UsageReport,
    UsageRow,
    budget_report,
    since_day,
    usage_reports,
    usage_weight,
)
from treadle.present.spending_words import Spending
from treadle.present.words import tokens
from treadle.protocol.models import money
from treadle.web.book import SessionBook
from treadle.web.charts import WIDTH, column_bars, length_of
from treadle.web.page_requests import book_of, page
from treadle.web.rights import PageRoute

RANGES = (("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"), ("all", "All"))
_USUAL = "30d"
_MOST_DAYS = 366
_MOST_ROWS = 50
_HEIGHT = 200.0
_TITLES = {
    UsageKey.MODEL: "Models",
    UsageKey.PROJECT: "Projects",
    UsageKey.PROFILE: "Profiles",
    UsageKey.TOOL: "Tools",
    UsageKey.MODE: "Modes",
    UsageKey.SESSION: "Sessions",
}


async def _show(request: Request) -> Response:
    since = request.query_params.get("since", "").strip() or _USUAL
    folder = request.query_params.get("folder", "").strip()
    found = await asyncio.to_thread(_sums, since, folder, book_of(request).flags)
    most = next((line.limit for line in found["spent"].lines if line.key == "budget.session_cost"), None)
    return await page(request, "usage.html", **found, open_sessions=_left(book_of(request), most))


def _left(book: SessionBook, most: float | None) -> list[tuple[str, str, str, float]]:
    """Say for each open session what is left of the budget of a session in the settings."""
    if most is None:
        return []
    return [
        (
            id_,
            one.session.title or id_,
            _left_words(most, one.content.view.spending),
            length_of(one.content.view.spending.total, most),
        )
        for id_, one in book.opened.items()
    ]


def _left_words(most: float, spending: Spending) -> str:
    left = money(max(0.0, most - spending.total), estimated=spending.estimated)
    return f"at most {left}" if spending.unpriced else left


def _sums(chosen: str, folder: str, flags: Mapping[str, Any]) -> Mapping[str, Any]:
    today = datetime.now().astimezone().date()
    since = None if chosen == "all" else since_day(chosen, today)
    reports = usage_reports(UsageKey, since, Path(folder) if folder else None)
    rows = list_sessions(None)
    budgets = budget_report(int(time.time() * 1_000), flags)
    days = reports[UsageKey.DAY]
    columns = _columns(days, since, today)
    return {
        "chosen": chosen,
        "ranges": RANGES,
        "folder": folder,
        "folders": sorted({row.workspace for row in rows}),
        "total": days.total,
        "days": days,
        "columns": columns,
        "width": WIDTH / max(1, len(columns)),
        "height": _HEIGHT,
        "keys": [_key(by, title, reports[by]) for by, title in _TITLES.items()],
        "titles": {row.id: row.title or row.id for row in rows},
        "most_rows": _MOST_ROWS,
        "unread": days.unread,
        "prices_of": days.prices_of,
        "budgets": [(line, length_of(line.used or 0.0, line.limit), *_of_budget(line)) for line in budgets.lines],
        "spent": budgets,
    }


def _of_budget(line: BudgetLine) -> tuple[str, str]:
    """Say how much may be spent, and how much of it is left where that is known."""

    def amount(value: float, *, estimated: bool = False) -> str:
        about = "about " if estimated else ""
        return money(value, estimated=estimated) if line.money else f"{about}{tokens(int(value))} tokens"

    return amount(line.limit), "" if line.left is None else f"{amount(line.left, estimated=line.estimated)} left"


def _key(by: UsageKey, title: str, report: UsageReport) -> Mapping[str, Any]:
    of_tools = by is UsageKey.TOOL  # these cost by what the model reads of their results
    ordered = sorted(report.rows, key=lambda row: -row.result_tokens) if of_tools else report.rows
    weigh = _results if of_tools else usage_weight(report)
    most = max(map(weigh, report.rows), default=0.0)
    rows = [(row, length_of(weigh(row), most)) for row in ordered[:_MOST_ROWS]]
    return {"by": by, "title": title, "rows": rows, "more": len(report.rows) - len(rows)}


def _results(row: UsageRow) -> float:
    return row.result_tokens


def _columns(days: UsageReport, since: date | None, today: date) -> Any:
    """Give each day of the range a column, also those without use."""
    weigh = usage_weight(days)
    known = {row.name: row for row in days.rows}
    values = [
        (day, _said(known.get(day)), weigh(known[day]) if day in known else 0.0) for day in _days(known, since, today)
    ]
    return column_bars(values, _HEIGHT)


def _said(row: UsageRow | None) -> str:
    return "nothing" if row is None else money(row.cost, unpriced=bool(row.unpriced), estimated=row.estimated)


def _days(known: Mapping[str, UsageRow], since: date | None, today: date) -> Iterator[str]:
    first = since or min((date.fromisoformat(name) for name in known if name[:1].isdecimal()), default=today)
    first = max(first, today - timedelta(days=_MOST_DAYS - 1))
    for number in range((today - first).days + 1):
        yield (first + timedelta(days=number)).isoformat()


ROUTES = (PageRoute("/usage", _show, Reach.SEE),)
