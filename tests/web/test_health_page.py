"""The screen of health: checks as they are done, logs that were changed, what the data takes, and no key."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from typing import Any

from tests.web.recorded import Visit
from treadle.app.models.provider_keys import store_key
from treadle.app.reports.run_health import circuit_lines, disk_report
from treadle.protocol.models import ErrorKind, ModelError, StreamFailure
from treadle.providers.breaker import process_circuits
from treadle.web.screens.health_screen import size_words

KEY = "sk-none-of-your-business-4711"


def test_the_checks_come_one_by_one_and_stay_on_the_page_problems_first(visit: Visit) -> None:
    (visit.recorded.home / "policy.toml").write_text("broken")
    assert "Not checked since" in visit.text("/health")
    found = visit.post("/health/check", calls=False)
    checks = "".join(map(json.loads, found.text.splitlines()))
    assert {"sandbox", "git", "extras", "database", "settings"} <= set(re.findall("<strong>(.*?)</strong>", checks))
    page = visit.text("/health")
    assert "Last checked" in page
    assert page.count('data-status="fail"') == checks.count('data-status="fail"')
    assert page.index('data-status="fail"') < page.index('data-status="ok"')


def test_checks_that_run_are_not_started_a_second_time(visit: Visit) -> None:
    portal = visit.client.portal
    assert portal is not None
    visit.post("/health/check", calls=False)
    guard: Any = visit.client.app
    state = guard.application.state.health
    before = state.checked_at

    async def begin() -> None:
        state.running = asyncio.create_task(asyncio.sleep(60))

    portal.call(begin)
    assert visit.post("/health/check", calls=False).status_code == 409
    portal.call(state.running.cancel)
    assert visit.post("/health/check", calls=False).status_code == 200
    assert state.checked_at > before


def test_a_log_that_was_changed_is_a_problem_after_it_was_verified(visit: Visit) -> None:
    assert visit.done("/health/verify") == {"said": "All logs are intact."}
    assert "Problems now" not in visit.text("/health")
    with closing(sqlite3.connect(visit.recorded.home / "sessions.db")) as database, database:
        database.execute("UPDATE events SET at = at + 1 WHERE seq = 2")
    assert visit.done("/health/verify") == {"said": "1 log is damaged."}
    page = visit.text("/health")
    assert "Problems now" in page
    assert f"log of {visit.recorded.session}" in page


def test_keys_are_named_by_their_origin_and_never_shown(visit: Visit) -> None:
    store_key("anthropic", KEY)
    page = visit.text("/health")
    assert "auth.json" in page
    assert KEY not in page
    visit.post("/health/check", calls=False)
    assert KEY not in visit.text("/health")


def test_a_provider_that_keeps_failing_is_a_problem_until_it_answers(visit: Visit) -> None:
    circuits = process_circuits()
    place = "https://user:password@failing.example/v1"
    try:
        for _ in range(9):
            circuits.ask(place)
            circuits.record(place, StreamFailure(error=ModelError(kind=ErrorKind.SERVER, message="")))
        (line,) = (one for one in circuit_lines() if "failing" in one.address)
        assert line.address == "https://failing.example/v1"
        assert line.seconds is not None
        assert "keeps failing" in visit.text("/health")
    finally:
        circuits._known.pop(place)
    assert "keeps failing" not in visit.text("/health")


def test_the_data_folder_is_measured_by_kind(visit: Visit) -> None:
    home = visit.recorded.home
    (home / "output" / "x").mkdir(parents=True, exist_ok=True)
    (home / "output" / "x" / "big").write_bytes(b"x" * 1_000_000)
    (home / "output" / "loop").symlink_to(home)
    report = disk_report()
    assert report.lines[0].kind == "command output" or report.lines[0].bytes >= 1_000_000
    (output,) = (line for line in report.lines if line.kind == "command output")
    assert 1_000_000 <= output.bytes < 1_100_000
    assert "command output" in visit.text("/health")


def test_sizes_are_written_in_the_unit_that_fits() -> None:
    assert [size_words(count) for count in (0, 999, 1_000, 5 * 1_000**2, 3 * 1_000**4)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "5.0 MB",
        "3.0 TB",
    ]
