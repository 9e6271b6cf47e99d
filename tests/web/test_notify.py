"""A browser calls its person: when they want that, while nobody looks, once for each session, and with no answer."""

import time
from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.e2e.faults.driving import run
from tests.web.driving import Seen, Served, becomes, in_shared_browser, page_with_model, read_questions, start_session
from tests.web.test_fleet_page import progress
from treadle.app.reports.known_batches import keep_progress
from treadle.door.opening import this_process
from treadle.providers.scripted.script import SayText, Turn, Wait

pytestmark = in_shared_browser

WATCHED = """
  window.away = false;
  window.later = 0;
  const now = Date.now.bind(Date);
  Date.now = () => now() + window.later;
  Object.defineProperty(document, "hidden", { get: () => window.away });
  window.goes = (yes) => { window.away = yes; document.dispatchEvent(new Event("visibilitychange")); };
  window.told = [];
  window.Notification = class {
    static permission = "default";
    static requestPermission = async () => (Notification.permission = window.refused ? "denied" : "granted");
    constructor(title, options) {
      Object.assign(this, { title, ...options, open: true, keys: Object.keys(options) });
      told.push(this);
    }
    close() { this.open = false; }
  };
"""
"""Headless Chromium shows no notifications and hides no tab: both are what this says, and a clock goes on by itself."""

ASKS = Turn(items=(SayText(text="I push."), Wait(seconds=1.5), run("git push origin main")))
DONE = Turn(items=(SayText(text="Done."),))


async def _page(served: Served, seen: Seen, path: str = "/") -> Page:
    page = await seen.page(served, "/")
    await page.add_init_script(WATCHED)
    await page.goto(f"{served.address}{path}")
    return page


async def _switch_on(page: Page, served: Served) -> None:
    await page.goto(f"{served.address}/inbox")
    await page.click(".nothing [data-notify]")
    await page.wait_for_selector(":text('This browser calls you now.')")


async def test_a_question_calls_who_is_away_and_the_click_leads_to_it(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [ASKS, DONE]) as (served, seen):
        page = await _page(served, seen)
        await _switch_on(page, served)
        await page.goto(f"{served.address}/")
        await page.evaluate("Notification.permission = 'granted'")
        session = await start_session(page, "Push it.")
        await page.evaluate("Notification.permission = 'granted'; goes(true)")
        await becomes(page, "told.length === 1")
        told = await page.evaluate("told.map(({ title, body, tag, keys }) => [title, body, tag, keys])")
        assert told == [["ws needs you", told[0][1], session, ["body", "tag", "icon"]]], "nobody answers there"
        assert "git push origin main" in told[0][1]
        await becomes(page, "document.title.startsWith('(1) Needs you · ')")
        await page.evaluate("goes(false)")
        await read_questions(page)
        await page.click(".question button:has-text('Allow once')")
        await becomes(page, "!told[0].open")
        await page.evaluate("told[0].onclick()")
        await page.wait_for_url(f"**/s/{session}#questions")


async def test_a_session_that_asks_at_once_calls_with_the_name_of_its_project(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [Turn(items=(run("git push origin main"),)), DONE]) as (served, seen):
        page = await _page(served, seen)
        await _switch_on(page, served)
        await page.evaluate("Notification.permission = 'granted'; goes(true)")
        # Its row comes into the column later than its question, or not at all.
        await page.evaluate("document.getElementById('sessions-column').remove()")
        other = await seen.page(served)
        await start_session(other, "Push it.")
        await becomes(page, "told.length === 1")
        assert await page.evaluate("told[0].title") == "ws needs you"


async def test_who_looks_or_has_not_asked_for_it_is_not_called(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [ASKS, ASKS, DONE, DONE]) as (served, seen):
        page = await _page(served, seen)
        await start_session(page, "Push it.")
        await page.evaluate("goes(true)")
        await page.wait_for_selector(".question")
        assert await page.evaluate("told.length") == 0, "it is off until it is wanted"
        other = await _page(served, seen, "/settings/notifications")
        await other.check("#notify [name=on]")
        await other.uncheck("#notify [name=details]")
        await becomes(other, "document.getElementById('notify-said').textContent === 'Saved.'")
        await page.goto(f"{served.address}/")
        await page.evaluate("goes(false)")
        await start_session(page, "Push it again.")
        await page.evaluate("goes(true)")
        await page.wait_for_selector(".question")
        await becomes(page, "document.title.startsWith('(2)')")
        assert await page.evaluate("told.length") == 0, "the other tab is seen"
        assert await other.evaluate("told.length") == 0
        await other.evaluate("goes(true)")
        await page.evaluate("goes(false)")


async def test_a_browser_that_refuses_says_so(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [DONE]) as (served, seen):
        page = await _page(served, seen, "/inbox")
        await page.evaluate("window.refused = true")
        await page.click(".nothing [data-notify]")
        await page.wait_for_selector(":text('Your browser does not allow this page to notify you.')")
        await page.goto(f"{served.address}/settings/notifications")
        assert not await page.is_checked("#notify [name=on]")


async def test_after_a_long_turn_that_nobody_saw_it_is_offered_once(tmp_path: Path) -> None:
    slow = Turn(items=(SayText(text="A"), Wait(seconds=1.5), SayText(text="nd done.")))
    async with page_with_model(tmp_path, [slow, slow, slow]) as (served, seen):
        page = await _page(served, seen)
        await start_session(page, "Work.")
        await page.wait_for_selector("#stop:not([hidden])")
        await page.evaluate("goes(true)")
        await page.wait_for_selector(".item.end", state="attached")
        await page.evaluate("goes(false)")
        assert await page.locator("#messages [data-notify]").count() == 0, "it was short"
        for offered in (1, 0):
            await page.fill("#text", "Go on.")
            await page.press("#text", "Enter")
            await page.wait_for_selector("#stop:not([hidden])")
            ended = await page.locator(".item.end").count()
            await page.evaluate("goes(true); window.later += 90_000")
            await becomes(page, f"document.querySelectorAll('.item.end').length > {ended}")
            await page.wait_for_timeout(300)
            await page.evaluate("goes(false)")
            assert await page.locator("#messages [data-notify]").count() == offered
            if offered:
                await page.click("#messages button:has-text('Close')")


async def test_the_end_of_a_batch_calls_once_also_where_its_program_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    async with page_with_model(tmp_path, [ASKS, DONE]) as (served, seen):
        keep_progress(progress("before", exit_code=0))
        page = await _page(served, seen)
        await _switch_on(page, served)
        await page.goto(f"{served.address}/")
        await page.evaluate("Notification.permission = 'granted'")
        await page.evaluate("goes(true)")
        now, killed = int(time.time() * 1000), f"{this_process().rsplit(':', 2)[0]}:1:1999999999-0"
        keep_progress(progress("works", exit_code=0, running={}, began_at=now))
        await becomes(page, "told.length === 1")
        told = await page.evaluate("told.map(({ title, body }) => [title, body])")
        assert told == [["Batch works: Done", "3 of 6 tasks · 1 passed · 1 broken off · 1 failed · $1.50 of $9.00"]]
        keep_progress(progress("other", process=killed, began_at=now))
        await becomes(page, "told.length === 2")
        assert await page.evaluate("told[1].title") == "Batch other: Paused, as its program ended"
        await page.evaluate("goes(false); told[0].onclick()")
        await page.wait_for_url("**/fleet/works")
