"""The page gives times of day in the zone of the browser, wherever the computer is on which Treadle runs."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import Page

from tests.e2e.faults.driving import make
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import Turn

pytestmark = in_shared_browser

WORK = Turn(items=(make("write_to_file", path="new.txt", content="1\n2\n"),))
DONE = Turn(items=(make("attempt_completion", result="Done."),))
SHOWN = """
() => [...document.querySelectorAll("[data-clock]")].map((one) => [one.dataset.clock, one.textContent, one.title])
"""
MORPHED = """
async ([first, second]) => {
  const { src } = document.querySelector("script[src$='/app.js']");
  const { morph, parsed } = await import(src.replace("/app.js", "/morph.js"));
  const written = (clock) => `<p id="m"><time data-clock="${clock}" title="2001-01-01 00:00:00">00:00</time></p>`;
  const shown = parsed(written(first));
  document.querySelector("main").append(shown);
  const time = shown.querySelector("time");
  morph(shown, parsed(written(second)));
  return [[time.dataset.clock, time.textContent, time.title]];
}
"""
MOMENT = re.compile(r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d(?::\d\d)?")


def of_zone(clock: str, words: str, zone: str) -> bool:
    """Whether words give a moment (milliseconds) as the clocks of a zone show it."""
    found = MOMENT.search(words)
    shown = found[0] if found else ""
    whole = f"{datetime.fromtimestamp(float(clock) / 1000, UTC).astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}"
    return shown in (whole, whole[:16], whole[11:], whole[11:16])


async def times(page: Page) -> list[Any]:
    """Give the times of a page that is there whole."""
    await becomes(page, "document.documentElement.dataset.ready")
    found: list[Any] = await page.evaluate(SHOWN)
    assert found, page.url
    return found


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/St_Johns"])
async def test_each_time_of_day_is_that_of_the_browser(tmp_path: Path, zone: str) -> None:
    async with page_with_model(tmp_path, [WORK, DONE, DONE], "--mode", "edits") as (served, seen):
        page = await seen.page(served, timezone_id=zone)
        session = await start_session(page, "Make new.txt.")
        await page.wait_for_selector(".end:has-text('Done')")
        await page.fill("#text", "And now?")
        await page.click("#send")
        await page.wait_for_selector(".items > li:has-text('And now?') time")
        met = await times(page)
        assert len(met) >= 2, "a message that was there at first, and one that came"
        for path in (
            f"/s/{session}",
            *(f"/s/{session}/{one}" for one in ("timeline", "timeline?view=events", "review")),
        ):
            await page.goto(served.address + path)
            met += await times(page)
        await page.goto(served.address + "/devices")
        met += await times(page)
        summer, winter = 1_782_820_800_000, 1_798_718_399_999  # 2026-06-30 12:00:00 and 2026-12-31 11:59:59.999 UTC
        morphed = await page.evaluate(MORPHED, [summer, winter]) + await page.evaluate(MORPHED, [winter, summer])
        assert [one[0] for one in morphed] == [str(winter), str(summer)], "the moment is another one"
        met += morphed
        await page.goto(served.address + "/policy")
        await becomes(page, "document.documentElement.dataset.ready")
        await page.locator("form:has(~ #decisions) button[type=submit]").click()
        await page.wait_for_selector("#decisions [data-clock]")
        met += await times(page)
        wrong = [one for one in met if not all(of_zone(one[0], words, zone) for words in one[1:] if words)]
        assert not wrong, (zone, wrong)
