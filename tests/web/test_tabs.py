"""Ten tabs of one browser, behind each other or side by side: each follows, and one connection is left."""

import asyncio
from pathlib import Path

from playwright.async_api import BrowserContext, Page, Request

from tests.web.driving import (
    PATIENCE,
    Served,
    becomes,
    in_shared_browser,
    page_with_model,
    read_questions,
    start_session,
)
from tests.web.test_notify import ASKS, DONE, WATCHED

pytestmark = in_shared_browser

TABS = 10
BEHIND = f"{WATCHED}; window.away = true; Notification.permission = 'granted';"


class Reading:
    """Which tabs read the stream of news now."""

    def __init__(self, context: BrowserContext) -> None:
        self._open: list[Request] = []
        context.on("request", lambda request: self._open.append(request) if "/events?" in request.url else None)
        for ended in ("requestfailed", "requestfinished"):
            context.on(ended, lambda request: self._open.remove(request) if request in self._open else None)

    def tabs(self) -> list[Page]:
        return [page for page in (request.frame.page for request in self._open) if not page.is_closed()]

    async def only(self) -> Page:
        """Wait until one tab reads, and give it."""
        async with asyncio.timeout(PATIENCE):
            while len(self.tabs()) != 1:
                await asyncio.sleep(0.05)
        return self.tabs()[0]


async def _tab(context: BrowserContext, served: Served, path: str) -> Page:
    """Open a tab behind the others, as a middle click does."""
    page = await context.new_page()
    await page.add_init_script(BEHIND)
    await page.goto(f"{served.address}{path}")
    await becomes(page, "document.readyState === 'complete'")
    return page


async def test_ten_tabs_have_one_stream_right_titles_and_one_call(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [ASKS, DONE, ASKS, DONE]) as (served, seen):
        first = await seen.page(served)
        context = seen.contexts[0]
        await first.goto(f"{served.address}/inbox")
        await first.add_init_script(WATCHED)
        await first.evaluate(f"{WATCHED}; Notification.permission = 'granted'")
        await first.click(".nothing [data-notify]")
        await first.wait_for_selector(":text('This browser calls you now.')")
        await first.goto(f"{served.address}/")
        reading = Reading(context)
        session = await start_session(first, "Push it.")
        await first.wait_for_selector(".question")
        views = [f"/s/{session}{view}" for view in ("", "/timeline", "/review")]
        paths = [*views, "/", "/sessions", "/inbox", "/usage"]
        tabs = [await _tab(context, served, paths[number % len(paths)]) for number in range(TABS - 1)]
        assert reading.tabs() == [first], "more would take all connections of the browser"
        for tab in tabs:
            await becomes(tab, "document.title.startsWith('(1)')")

        await first.evaluate("goes(true)")
        await first.close()
        leader = await reading.only()
        later = next(tab for tab in tabs if tab is not leader)
        await later.goto(f"{served.address}/s/{session}")
        await later.evaluate("goes(false)")
        await read_questions(later)
        await later.click(".question button:has-text('Allow once')")
        await later.wait_for_selector(".item.end")
        for tab in tabs:
            await becomes(tab, "!document.title.startsWith('(')")

        await later.fill("#text", "Once more.")
        await later.press("#text", "Enter")
        await later.wait_for_selector("#stop:not([hidden])")
        await later.evaluate("goes(true)")
        for tab in tabs:
            await becomes(tab, "document.title.startsWith('(1)')")
        await becomes(leader, "told.length === 1")
        assert sum([await tab.evaluate("told.length") for tab in tabs]) == 1


async def test_ten_windows_that_are_all_seen_follow_and_can_be_answered(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [ASKS, ASKS, DONE]) as (served, seen):
        first = await seen.page(served)
        session = await start_session(first, "Push it twice.")
        await first.wait_for_selector(".question")
        windows = [first]
        for _ in range(TABS - 1):
            windows.append(await seen.contexts[0].new_page())
            await windows[-1].goto(f"{served.address}/s/{session}")
        for window in (windows[-1], windows[0]):
            await window.wait_for_selector(".question")
            asked = await window.get_attribute(".question", "data-question")
            await read_questions(window)
            await window.click(".question button:has-text('Allow once')")
            for other in windows:
                await becomes(other, f"document.querySelector('.question')?.dataset.question !== '{asked}'")
        for window in windows:
            await window.wait_for_selector(".item.end")
            assert not await window.is_visible("#lost")
