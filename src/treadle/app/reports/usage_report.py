"""What all sessions used, by day, model, project, profile, tool, mode or session: `treadle usage`, `/usage`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.layers import load_settings
from treadle.app.models.known import known_models
from treadle.app.models.model_choice import Models
from treadle.app.models.model_notes import PROGRAM_REF
from treadle.app.reports.known_sessions import sessions_usage
from treadle.app.reports.line_wrapping import columns, harmless, shortened, shortened_front, wrapped
from treadle.app.reports.usage_sums import SLOT, Amounts, SessionUsage, UsageSlot, sum_amounts
from treadle.present.words import counted, tokens
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import Prices, money

UNKNOWN_DAY = "(unknown day)"
_MOST_ROWS = 20
_LONGEST_LABEL = 40
_SHORTEST_BAR = 8
_LONGEST_BAR = 60


class UsageKey(StrEnum):
    """What usage is summed up by."""

    DAY = "day"
    MODEL = "model"
    PROJECT = "project"
    PROFILE = "profile"
    TOOL = "tool"
    MODE = "mode"
    SESSION = "session"


class UsageRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The sum of one day, model, project, profile, tool, mode or session.

    A profile is `provider@name`, or `provider` for its usual key. `cost` is US dollars as far as it is known,
    `estimated`: a part of the cost and tokens is our own estimate. `sessions` are those that had any of it; `prices`
    are those of a model today, None where they are not known.
    """

    name: str
    cost: float
    unpriced: int
    estimated: bool
    requests: int
    uncounted: int
    sessions: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    searches: int
    calls: int
    failed: int
    denied: int
    result_tokens: int
    prices: Prices | None = None


class UsageReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The rows, and their `total`. `since` is the first local day, empty for all.

    `unread` are sessions of whose log a part is missing: what it said is not in the sums. `prices_of` is the day (ISO)
    of the price table.
    """

    by: UsageKey
    since: str
    rows: tuple[UsageRow, ...]
    total: UsageRow
    unread: tuple[str, ...]
    prices_of: str


class _Part(Struct, frozen=True):
    """A sum of one session, under the name that it is grouped by."""

    name: str
    session: str
    amounts: Amounts


def usage_report(by: UsageKey, since: date | None, workspace: Path | None) -> UsageReport:
    """Sum up what the logs say, of the sessions of one workspace if given; reads what is new in them."""
    return usage_reports((by,), since, workspace)[by]


def usage_reports(
    keys: Iterable[UsageKey], since: date | None, workspace: Path | None
) -> Mapping[UsageKey, UsageReport]:
    """Sum the same up by several keys."""
    found = sessions_usage(workspace)
    reports = {by: summed_usage(found, by, since) for by in keys}
    if (report := reports.get(UsageKey.MODEL)) is not None:
        models = Models(load_settings({}))
        rows = tuple(replace(row, prices=_prices(models, row.name)) for row in report.rows)
        reports[UsageKey.MODEL] = replace(report, rows=rows)
    return reports


def summed_usage(sessions: Sequence[SessionUsage], by: UsageKey, since: date | None) -> UsageReport:
    """Sum up what sessions used; days first to last, everything else by what it cost, the most first."""
    parts = [part for session in sessions for part in _parts(session, by, since)]
    groups: dict[str, list[_Part]] = {}
    for part in parts:
        groups.setdefault(part.name, []).append(part)
    rows = [_row(name, group) for name, group in groups.items()]
    rows.sort(key=lambda row: row.name if by is UsageKey.DAY else (-row.cost, -_tokens(row), -row.calls, row.name))
    return UsageReport(
        by=by,
        since="" if since is None else since.isoformat(),
        rows=tuple(rows),
        total=_row("total", parts),
        unread=tuple(session.id for session in sessions if not session.whole),
        prices_of=known_models().data.date,
    )


def _parts(session: SessionUsage, by: UsageKey, since: date | None) -> Iterator[_Part]:
    for one in session.usage.slots:
        day = _day_of(one.slot)
        if since is None or (day is not None and day >= since):
            yield _Part(_name(one, by, day, session), session.id, one.amounts)


def _name(one: UsageSlot, by: UsageKey, day: date | None, session: SessionUsage) -> str:
    match by:
        case UsageKey.DAY:
            return UNKNOWN_DAY if day is None else day.isoformat()
        case UsageKey.MODEL:
            return one.model
        case UsageKey.PROFILE:
            return one.model.partition("/")[0]
        case UsageKey.PROJECT:
            return session.project
        case UsageKey.SESSION:
            return session.id
        case UsageKey.TOOL:
            return one.tool
        case UsageKey.MODE:
            return one.mode


def _day_of(slot: int) -> date | None:
    """Give the local day of a slot; None where a log has a time that no calendar has."""
    try:
        return datetime.fromtimestamp(slot * SLOT // 1000).date()  # noqa: DTZ006 - the local day is wanted
    except (OverflowError, OSError, ValueError):
        return None


def _row(name: str, parts: Iterable[_Part]) -> UsageRow:
    found = list(parts)
    total = sum_amounts(part.amounts for part in found)
    return UsageRow(
        name=name,
        cost=round(total.cost, 10),
        unpriced=total.unpriced,
        estimated=total.usage.estimated,
        requests=total.requests,
        uncounted=total.uncounted,
        sessions=len({part.session for part in found}),
        input_tokens=total.usage.input_tokens,
        output_tokens=total.usage.output_tokens,
        cache_read_tokens=total.usage.cache_read_tokens,
        cache_write_tokens=total.usage.cache_write_tokens,
        searches=total.usage.searches,
        calls=total.calls,
        failed=total.failed,
        denied=total.denied,
        result_tokens=total.result_tokens,
    )


def _tokens(row: UsageRow) -> int:
    return row.input_tokens + row.output_tokens + row.cache_read_tokens + row.cache_write_tokens


def _prices(models: Models, model: str) -> Prices | None:
    try:
        return models.spec(model).prices
    except ConfigError:
        return None


def since_day(text: str, today: date) -> date:
    """Read `2026-11-01`, or `7d` for the last seven days with today. Raises `ConfigError`."""
    days = text.removesuffix("d")
    try:
        if days != text and days.isascii() and days.isdecimal() and int(days):
            return today - timedelta(days=int(days) - 1)
        return date.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            "usage-option",
            f"{text!r} is no day.",
            why="It is neither a date nor a number of days.",
            fix="Write a date such as 2026-11-01, or 7d for the last seven days.",
        ) from error


def usage_text(key: str) -> str:
    """Give the report as a slash command shows it, by model unless another key is named. Raises `ConfigError`."""
    if key and key not in list(UsageKey):
        raise ConfigError(
            "usage-option",
            f"Usage cannot be summed up by {key!r}.",
            why=f"It is summed up by {', '.join(UsageKey)}.",
            fix="For example /usage day.",
        )
    report = usage_report(UsageKey(key or UsageKey.MODEL), None, None)
    return "\n".join(usage_lines(report, None))


def usage_lines(report: UsageReport, width: int | None, *, every: bool = False, colour: bool = False) -> Iterator[str]:
    """Put a report into words, with bars where there is a screen of that width; harmless to show."""
    since = f" since {report.since}" if report.since else ""
    if not report.rows:
        yield f"Nothing was used{since} yet."
    else:
        yield wrapped(f"Usage{since} by {report.by}: {_figures(report.total, cost=True)}", width)
    rows = list(report.rows)
    if not every and len(rows) > _MOST_ROWS:
        rows = rows[-_MOST_ROWS:] if report.by is UsageKey.DAY else rows[:_MOST_ROWS]
    label = shortened_front if report.by is UsageKey.PROJECT else shortened
    names = {row.name: label(harmless(row.name), _LONGEST_LABEL) for row in rows}
    spent = {row.name: money(row.cost, unpriced=bool(row.unpriced), estimated=row.estimated) for row in rows}
    broad = max(map(columns, names.values()), default=0)
    costly = max(map(len, spent.values()), default=0)
    weigh = usage_weight(report)
    most = max(map(weigh, rows), default=0)
    for row in rows:
        named = names[row.name] + " " * (broad - columns(names[row.name]))
        room = 0 if width is None else min(width - broad - costly - 4, _LONGEST_BAR)
        bar = "" if room < _SHORTEST_BAR or not most else "#" * round(room * weigh(row) / most)
        drawn = f"\x1b[36m{bar}\x1b[0m" if colour and bar else bar
        yield f"{named}  {spent[row.name]:>{costly}}  {drawn}".rstrip()
        yield wrapped(f"  {_figures(row, cost=False)}", width)
        if report.by is UsageKey.MODEL:
            price = "It is a program, which costs nothing." if row.name == PROGRAM_REF else _priced(row.prices)
            yield wrapped(f"  {price}", width)
    yield from (wrapped(line, width) for line in _ends(report, len(report.rows) - len(rows)))


def usage_weight(report: UsageReport) -> Callable[[UsageRow], float]:
    """Give what a bar of a row is as long as: its cost, or its tokens where nothing has a known price."""
    return _by_cost if report.total.cost else _tokens if _tokens(report.total) else _by_results


def _by_cost(row: UsageRow) -> float:
    return row.cost


def _by_results(row: UsageRow) -> float:
    return row.result_tokens


def _figures(row: UsageRow, *, cost: bool) -> str:
    """Give all figures that there are, in one sentence."""
    parts = [
        money(row.cost, unpriced=bool(row.unpriced), estimated=row.estimated) if cost else "",
        counted(row.requests, "model call") if row.requests else "",
        f"{tokens(row.input_tokens)} tokens in" if row.input_tokens else "",
        f"{tokens(row.output_tokens)} out" if row.output_tokens else "",
        f"{tokens(row.cache_read_tokens)} read from the cache" if row.cache_read_tokens else "",
        f"{tokens(row.cache_write_tokens)} written to it" if row.cache_write_tokens else "",
        f"{row.searches:,} web search{'es' if row.searches > 1 else ''}" if row.searches else "",
    ]
    if row.calls:
        parts.append(f"{counted(row.calls, 'tool call')} ({row.failed:,} failed, {row.denied:,} denied)")
        parts.append(f"about {tokens(row.result_tokens)} tokens of results")
    parts.append(counted(row.sessions, "session"))
    if row.unpriced:
        parts.append(f"the cost of {row.unpriced:,} is unknown and not in the sum")
    if row.uncounted:
        parts.append(f"the provider did not say what {row.uncounted:,} used")
    return f"{', '.join(filter(None, parts))}."


def _priced(prices: Prices | None) -> str:
    if prices is None:
        return "Its price is unknown."
    kinds = {
        "cache read": prices.cache_read,
        "cache written": prices.cache_write,
        "written for an hour": prices.cache_write_hour,
    }
    cached = [f"{what} {price:g}" for what, price in kinds.items() if price is not None]
    return f"US dollars for a million tokens: {', '.join([f'in {prices.input:g}', f'out {prices.output:g}', *cached])}."


def _ends(report: UsageReport, hidden: int) -> Iterator[str]:
    if hidden:
        yield f"{counted(hidden, 'more row')}: --all shows all."
    if any(row.prices is not None for row in report.rows):
        yield f"Sums are as of when the calls were made; the prices are of {report.prices_of} or of your settings."
    if report.unread:
        yield (
            f"Of {counted(len(report.unread), 'session')} a part of the log cannot be read and is not in the sums "
            "(`treadle audit verify` names them)."
        )
