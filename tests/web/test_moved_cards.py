"""A card that moved takes no press for a moment, whatever moved it. A note moves nothing and covers nothing."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from tests.e2e.faults.driving import run
from tests.web.driving import becomes, in_shared_browser, page_with_model, read_questions, start_session
from treadle.providers.scripted.script import SayText, Turn

pytestmark = in_shared_browser

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
TURNS = [Turn(items=(run("git push origin main"),)), Turn(items=(SayText(text="As you like."),))]
ALLOW = "#questions .question button[data-act=allow]"
MOVES = {
    "a line in the sheet": (PHONE, "document.querySelector('.question footer').before(document.createElement('pre'))"),
    "a smaller screen": (PHONE, ""),
    "a line above the card": (DESK, "document.getElementById('items').append(document.createElement('pre'))"),
}
COVERED = """() => {
  const box = document.getElementById("messages").getBoundingClientRect();
  const all = [...document.querySelectorAll("a, button, input, textarea, summary, .question")];
  return all.filter((one) => !one.closest("#messages")).filter((one) => {
    const { left, right, top, bottom, width } = one.getBoundingClientRect();
    return width && left < box.right && right > box.left && top < box.bottom && bottom > box.top;
  }).map((one) => one.outerHTML.slice(0, 60));
}"""


async def _press(page: Page) -> None:
    """Press where the button stands, without waiting for it to stand still."""
    x, y = await page.evaluate(
        f"(() => {{ const one = document.querySelector('{ALLOW}').getBoundingClientRect(); "
        "return [one.left + 20, one.top + 15]; })()"
    )
    await page.mouse.click(x, y)


async def _top(page: Page) -> float:
    return float(await page.evaluate("document.querySelector('.question').getBoundingClientRect().top"))


@pytest.mark.parametrize("move", MOVES)
async def test_a_card_that_moved_by_any_cause_takes_no_press_for_a_moment(tmp_path: Path, move: str) -> None:
    context, how = MOVES[move]
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        page = await seen.page(served, **context)
        await start_session(page, "Push it.")
        await page.wait_for_selector(ALLOW)
        await page.wait_for_timeout(900)
        await read_questions(page)
        before = await _top(page)
        if how:
            await page.evaluate(how)
        else:
            await page.set_viewport_size({"width": 390, "height": 700})
        await becomes(page, "(top) => document.querySelector('.question').getBoundingClientRect().top !== top", before)
        await _press(page)
        await page.wait_for_selector("#messages:has-text('This question has just moved.')")
        assert await page.locator(ALLOW).is_visible(), "it was not answered"
        await page.wait_for_timeout(900)
        await _press(page)
        await page.wait_for_selector("text=As you like.")


@pytest.mark.parametrize("context", [PHONE, DESK], ids=["phone", "desk"])
async def test_the_note_that_a_question_is_new_moves_nothing_and_covers_nothing(
    tmp_path: Path, context: dict[str, Any]
) -> None:
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        page = await seen.page(served, **context)
        await start_session(page, "Push it.")
        await page.wait_for_selector(ALLOW)
        await page.wait_for_timeout(900)
        await page.evaluate("document.querySelector('.question').dataset.came = performance.now()")
        before = await _top(page)
        await _press(page)
        await page.wait_for_selector("#messages:has-text('This question has just appeared.')")
        assert await _top(page) == before
        assert await page.evaluate(COVERED) == []
