"""When a schedule is due: what a person wrote, as a rule, and the moments that follow from it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from zoneinfo import ZoneInfo

from msgspec import Struct

from treadle.protocol.errors import ConfigError
from treadle.protocol.patterns import regex

WHEN_FORMS = (
    "every day 9:00",
    "every weekday 9:00, 17:30",
    "every monday and friday 8:15",
    "every 30 minutes",
    "every 2 hours",
    "2030-01-31 9:00",
)
"""What can be written, by examples."""

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_GROUPS: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "day": frozenset(range(7)),
        "weekday": frozenset(range(5)),
        "weekend": frozenset((5, 6)),
        **{name: frozenset((number,)) for number, name in enumerate(_DAYS)},
        **{name[:3]: frozenset((number,)) for number, name in enumerate(_DAYS)},
    }
)
_UNITS: Mapping[str, int] = MappingProxyType({"minute": 60, "hour": 3600})
_EVERY = regex(r"every (?:(\d{1,4}) )?(minute|hour)s?")
_ON_DAYS = regex(r"every ([a-z]+(?:(?:, ?| )[a-z]+)*) (\d.*)")
_ON_DATE = regex(r"(?:on )?(\d{4})-(\d\d)-(\d\d),? (\d.*)")
_TIME = regex(r"(\d{1,2}):(\d\d)")
_BETWEEN = regex(r",? and |, ?| ")
_YEARS = range(1970, 9999)
"""Of dates that each time zone has."""

_LONGEST = 366
"""Days that are looked at for the next moment; a rule of days has one each week."""


class ScheduleRule(Struct, frozen=True, kw_only=True):
    """Each so many `seconds`; or at these `times` (hour, minute), on these `days` (0 is Monday) or on one date."""

    seconds: int = 0
    days: frozenset[int] = frozenset()
    on: date | None = None
    times: tuple[tuple[int, int], ...] = ()


def schedule_rule(text: str) -> ScheduleRule:
    """Read what a person wrote. Raises `ConfigError`."""
    said = " ".join(text.lower().split()).replace(" at ", " ").replace("daily ", "every day ")
    if (found := _EVERY.fullmatch(said)) is not None:
        seconds = int(found[1] or 1) * _UNITS[found[2]]
        if seconds:
            return ScheduleRule(seconds=seconds)
    elif (found := _ON_DATE.fullmatch(said)) is not None:
        try:
            on = date(int(found[1]), int(found[2]), int(found[3]))
            if on.year in _YEARS:
                return ScheduleRule(on=on, times=_times(found[4]))
        except ValueError:
            pass  # such as the 31st of February
    elif (found := _ON_DAYS.fullmatch(said)) is not None:
        names = [name.removesuffix("s") for name in _BETWEEN.split(found[1])]
        times = _times(found[2])
        if times and all(name in _GROUPS for name in names):
            return ScheduleRule(days=frozenset().union(*(_GROUPS[name] for name in names)), times=times)
    raise ConfigError(
        "schedule-time",
        f"{text!r} is no time for a schedule.",
        why="It cannot be read.",
        fix=f"Write it like one of these: {'; '.join(WHEN_FORMS)}",
    )


def _times(text: str) -> tuple[tuple[int, int], ...]:
    """Read times of a day. Raises `ValueError` for one that there is not."""
    found = []
    for part in _BETWEEN.split(text):
        said = _TIME.fullmatch(part)
        if said is None or int(said[1]) > 23 or int(said[2]) > 59:
            return ()
        found.append((int(said[1]), int(said[2])))
    return tuple(sorted(set(found)))


def next_due(rule: ScheduleRule, zone: ZoneInfo, after: datetime, begun: datetime) -> datetime | None:
    """Give the first moment after another one; None where there is none any more. All are in UTC.

    Days and times are those of the zone. A time that its clock leaves out is as much later as the clock leaves out; of
    a time that it shows twice the first counts. Each so many seconds are counted from when the schedule was `begun`.
    """
    if rule.seconds:
        passed = max(0, int((after - begun).total_seconds()) // rule.seconds)
        return begun + timedelta(seconds=(passed + 1) * rule.seconds)
    return min((one for one in _moments(rule, zone, after) if one > after), default=None)


def _moments(rule: ScheduleRule, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Give the moments of the next days that there are, until some are later."""
    first = after.astimezone(zone).date() - timedelta(days=1)
    days: Sequence[date] = [first + timedelta(days=number) for number in range(_LONGEST)]
    later = 0
    for day in [rule.on] if rule.on is not None else days:
        if rule.on is None and day.weekday() not in rule.days:
            continue
        for hour, minute in rule.times:
            moment = datetime.combine(day, time(hour, minute), zone).astimezone(UTC)
            later += moment > after
            yield moment
        if later > len(rule.times):  # two days: the clock may have gone back by hours in between
            return
