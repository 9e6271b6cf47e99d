"""What stands beside a conversation that goes on is what a page has that is loaded anew: changes, money, the column."""

import asyncio
from pathlib import Path

from playwright.async_api import Page

from tests.e2e.faults.driving import make, run
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import SayText, Turn

pytestmark = in_shared_browser

BESIDE = """() => ["#p-changes", "#review-words", "[data-count=changes]", ".ses .pm", "#today", "#cost"].map(
  (one) => document.querySelector(one)?.innerText.replace(/\\s+/g, " ").trim())"""

STEPS = {
    "an edit": make("write_to_file", path="data.txt", content="one\nTWO\nthree\n"),
    "the same line, to other words": make("write_to_file", path="data.txt", content="one\nZWEI\nthree\n"),
    "an empty file": run("touch empty.txt"),
    "a file that moves": run("mv empty.txt other.txt"),
    "a file that is no text": run("printf '\\0\\1' > other.txt"),
    "a mode": run("chmod +x data.txt"),
    "a file that goes": run("rm other.txt"),
}


async def _beside(page: Page) -> list[str | None]:
    found: list[str | None] = await page.evaluate(BESIDE)
    return found


async def test_it_shows_after_each_step_what_a_page_shows_that_is_loaded_anew(tmp_path: Path) -> None:
    turns = [turn for step in STEPS.values() for turn in (Turn(items=(step,)), Turn(items=(SayText(text="Done."),)))]
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "data.txt").write_text("one\ntwo\nthree\n")
    async with page_with_model(tmp_path, turns, "--mode", "full") as (served, seen):
        page = await seen.page(served)
        await start_session(page, "an edit")
        for number, name in enumerate(STEPS, 1):
            if number > 1:
                await page.fill("#text", name)
                await page.press("#text", "Enter")
            await becomes(page, "(n) => document.querySelectorAll('.item.end').length === n", number)
            other = await page.context.new_page()
            await other.goto(page.url)
            await other.wait_for_selector("#p-changes > *", state="attached")
            for _ in range(100):
                if await _beside(page) == await _beside(other):
                    break
                await asyncio.sleep(0.1)
            assert await _beside(page) == await _beside(other), name
            await other.close()
