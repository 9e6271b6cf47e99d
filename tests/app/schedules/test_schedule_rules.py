"""When schedules are due, over all time zones and their summer times."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as some

from treadle.app.schedules.schedule_rules import WHEN_FORMS, ScheduleRule, next_due, schedule_rule
from treadle.protocol.errors import ConfigError

ZONES = sorted(available_timezones())
MOMENTS = some.integers(631_152_000, 2_114_380_800).map(lambda one: datetime.fromtimestamp(one, UTC))  # 1990 to 2037
TIMES = some.tuples(some.integers(0, 23), some.integers(0, 59))
RULES = some.builds(
    lambda days, times: ScheduleRule(days=days, times=tuple(sorted(times))),
    some.frozensets(some.integers(0, 6), min_size=1),
    some.sets(TIMES, min_size=1, max_size=3),
)


def test_each_form_that_an_error_names_can_be_read() -> None:
    assert [schedule_rule(form) for form in WHEN_FORMS] == [
        ScheduleRule(days=frozenset(range(7)), times=((9, 0),)),
        ScheduleRule(days=frozenset(range(5)), times=((9, 0), (17, 30))),
        ScheduleRule(days=frozenset((0, 4)), times=((8, 15),)),
        ScheduleRule(seconds=1800),
        ScheduleRule(seconds=7200),
        ScheduleRule(on=date(2030, 1, 31), times=((9, 0),)),
    ]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Daily 9:00", "every day 9:00"),
        ("every  Weekday at 09:00 and 17:30", "every weekday 9:00, 17:30"),
        ("every mon, wed and sundays 8:15", "every monday wednesday sunday 8:15"),
        ("every hour", "every 60 minutes"),
        ("on 2030-01-31 at 9:00", "2030-01-31 9:00"),
    ],
)
def test_other_words_mean_the_same(text: str, same: str) -> None:
    assert schedule_rule(text) == schedule_rule(same)


@pytest.mark.parametrize(
    "text",
    [
        *("", "every", "every day", "9:00", "every day 24:00", "every day 9:60", "every blue 9:00", "every 0 minutes"),
        *(
            "2030-02-30 9:00",
            "9999-12-31 23:59",
            "0001-01-01 0:00",
            "every day 9:00 or so",
            "every day 9",
            "every -5 minutes",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        schedule_rule(text)
    assert all(form in refused.value.fix for form in WHEN_FORMS)


@given(RULES, some.sampled_from(ZONES), MOMENTS)
def test_the_next_moment_is_later_and_none_lies_between(rule: ScheduleRule, name: str, after: datetime) -> None:
    zone = ZoneInfo(name)
    due = next_due(rule, zone, after, after)
    assert due is not None
    assert due > after
    assert next_due(rule, zone, due - timedelta(seconds=1), after) == due
    middle = after + (due - after) / 2
    assert next_due(rule, zone, min(middle, due - timedelta(microseconds=1)), after) == due


@given(RULES, some.sampled_from(ZONES), MOMENTS)
def test_a_moment_has_the_time_that_was_wanted_or_its_clock_leaves_that_out(
    rule: ScheduleRule, name: str, after: datetime
) -> None:
    zone = ZoneInfo(name)
    due = next_due(rule, zone, after, after)
    assert due is not None
    local = due.astimezone(zone)
    if (local.hour, local.minute) in rule.times and local.second == 0 and local.weekday() in rule.days:
        assert local.fold == 0  # of a time that comes twice the first
        return
    wanted = [
        datetime.combine(local.date() - timedelta(days=back), time(*one), zone) for back in (0, 1) for one in rule.times
    ]
    moments = [one.astimezone(UTC) for one in wanted]
    left_out = [
        there for there, one in zip(moments, wanted, strict=True) if f"{there.astimezone(zone):%c}" != f"{one:%c}"
    ]
    assert due in left_out


@given(RULES, some.sampled_from(ZONES), MOMENTS)
def test_each_day_of_the_calendar_has_each_of_its_times_once(rule: ScheduleRule, name: str, after: datetime) -> None:
    zone = ZoneInfo(name)
    end = after + timedelta(days=9)
    found = []
    due = next_due(rule, zone, after, after)
    while due is not None and due <= end:
        found.append(due)
        due = next_due(rule, zone, due, after)
    first = after.astimezone(zone).date() - timedelta(days=2)
    wanted = {
        moment
        for number in range(14)
        if (day := first + timedelta(days=number)).weekday() in rule.days
        for one in rule.times
        if after < (moment := datetime.combine(day, time(*one), zone).astimezone(UTC)) <= end
    }
    assert found == sorted(wanted)


@pytest.mark.parametrize(
    ("zone", "when", "after", "due"),
    [
        ("Europe/Berlin", "every day 2:30", "2026-03-28T12:00", "2026-03-29T01:30"),  # 2:30 is left out: it is 3:30
        ("Europe/Berlin", "every day 2:30", "2026-10-24T12:00", "2026-10-25T00:30"),  # the first of two
        ("Europe/Berlin", "every day 2:30", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("America/New_York", "every weekday 9:00", "2026-03-06T20:00", "2026-03-09T13:00"),  # summer time began
        ("Pacific/Apia", "every day 9:00", "2011-12-29T20:00", "2011-12-30T19:00"),  # a day that there was not
        ("Asia/Kathmandu", "every sunday 0:00", "2026-11-28T00:00", "2026-11-28T18:15"),
        ("Europe/Berlin", "every 90 minutes", "2026-03-29T00:10", "2026-03-29T01:30"),  # the clock does not matter
    ],
)
def test_known_moments(zone: str, when: str, after: str, due: str) -> None:
    moment = datetime.fromisoformat(f"{after}:00+00:00")
    begun = datetime(2026, 3, 29, tzinfo=UTC)
    assert next_due(schedule_rule(when), ZoneInfo(zone), moment, begun) == datetime.fromisoformat(f"{due}:00+00:00")


def test_a_date_comes_once() -> None:
    rule, zone = schedule_rule("2030-01-31 9:00"), ZoneInfo("UTC")
    due = datetime(2030, 1, 31, 9, tzinfo=UTC)
    assert next_due(rule, zone, due - timedelta(days=900), due) == due
    assert next_due(rule, zone, due, due) is None
