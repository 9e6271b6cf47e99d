"""A replay from the timeline in a real browser: chosen, begun, followed to its end, taken and undone."""

from pathlib import Path

from playwright.async_api import Page

from tests.web.driving import becomes, in_shared_browser, page_with_model, require_accessible, start_session
from tests.web.test_copied_replays import TURNS

pytestmark = in_shared_browser


async def _right(page: Page) -> None:
    await require_accessible(page)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"


async def test_a_replay_is_begun_from_the_timeline_followed_taken_and_undone(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, TURNS, "--mode", "edits", "--trust") as (served, seen):
        page = await seen.page(served, bypass_csp=True)
        session = await start_session(page, "Write.")
        await page.wait_for_selector(".item.end")
        await page.goto(f"{served.address}/s/{session}/timeline")
        step = page.locator(".step", has=page.locator("b", has_text="Step 2"))
        await step.locator("summary").click()
        await step.get_by_role("link", name="Replay with another model…").click()
        assert await page.locator("select[name=step]").input_value() == "2"
        await _right(page)
        await page.click("form button:has-text('Replay')")
        await page.wait_for_url(lambda address: address.endswith("/replay") and session not in address)
        await becomes(page, "!document.querySelector('[data-post$=take] button').disabled")
        assert await page.locator("section.panel").count() == 2
        await _right(page)
        for width, height in ((390, 844), (1280, 800)):
            await page.set_viewport_size({"width": width, "height": height})
            await _right(page)
        await page.click("button:has-text('Take this one')")
        await page.wait_for_selector("#messages:has-text('3 files taken.')")
        assert (served.folder / "c.txt").read_text() == "c\n"
        await page.click("button:has-text('Undo taking it')")
        await page.wait_for_selector("#messages:has-text('2 files restored, 1 file deleted.')")
        assert sorted(one.name for one in served.folder.glob("*.txt")) == ["a.txt", "b.txt"]
        await page.goto(f"{served.address}/s/{session}/replay")
        await page.get_by_role("link", name="From step 2 with").click()
        await page.wait_for_selector("section.panel:has-text('Recorded')")
