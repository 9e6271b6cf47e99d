"""A card that moved takes no press for a moment, whatever moved it. A note moves nothing and covers nothing."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from tests.e2e.faults.driving import make, run
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
OLD = "".join(f"def f{n}():\n    return {n}\n\n" for n in range(12))
BLOCKS = "\n".join(
    f"------- SEARCH\ndef f{n}():\n    return {n}\n=======\ndef f{n}(x):\n    return x * {n}\n+++++++ REPLACE"
    for n in (0, 4, 8)
)
LONG = "\n\n".join(f"Paragraph {n}: {'many words ' * 20}" for n in range(12))
WRITES = [
    Turn(items=(SayText(text=LONG), make("write_to_file", path="src/a.py", content=OLD))),
    Turn(items=(make("write_to_file", path="b.py", content=OLD),)),
    Turn(items=(SayText(text=LONG), run("git push origin main"))),
]
EDITS = [
    Turn(items=(make("read_file", path="a.py"),)),
    Turn(items=(SayText(text=LONG), make("replace_in_file", path="a.py", diff=BLOCKS))),
]
SEEN = """() => {
  const { top, bottom } = document.querySelector(".question").getBoundingClientRect();
  const field = document.getElementById("say").getBoundingClientRect().top;
  return [top > 40 && bottom <= field, top < field - 44, !document.getElementById("waits").hidden];
}"""
"""Whether all of the question is in sight, whether its title is, and whether a line says that it waits."""

SHEET = """() => {
  const part = (selector) => document.querySelector(`.question ${selector}`).getBoundingClientRect();
  const [sheet, title, diff] = [part("> header").top - 14, part("h2"), part(".scrolls-in")];
  const end = document.getElementById("line").getBoundingClientRect().bottom;
  return [sheet > 0 && title.top > sheet, diff.height >= 60, end <= sheet + 1 && sheet - end < 48];
}"""
"""Whether the title and some of the diff of a sheet are seen, and whether the conversation ends right above it."""

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


async def test_a_question_stays_in_sight_or_is_named_whatever_becomes_of_the_window(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, WRITES, "--trust", "--mode", "edits") as (served, seen):
        page = await seen.page(served, **DESK)
        await start_session(page, "Write them, and push.")
        await page.wait_for_selector(ALLOW)
        await becomes(page, f"({SEEN})().join() === 'true,true,false'")
        assert await page.locator("#items .item.call:visible").count() == 2, "the question says all of its call"
        for width, height in ((1900, 900), (1440, 900), (1440, 500), (1440, 900)):
            await page.set_viewport_size({"width": width, "height": height})
            await page.wait_for_timeout(300)
            await page.evaluate("document.getElementById('fold').click()")
            await page.wait_for_timeout(300)
            assert await page.evaluate(SEEN) == [True, True, False], (width, height)
        await page.focus(".skip")
        for _ in range(18):
            await page.keyboard.press("Tab")
            if await page.evaluate("document.activeElement.closest('.side, .head') !== null"):
                assert await page.evaluate(SEEN) == [True, True, False], "what stays where it is scrolls nothing"
        await page.keyboard.press("End")
        await page.evaluate("document.activeElement.blur(), scrollTo(0, document.documentElement.scrollHeight)")
        await page.mouse.move(700, 300)
        await page.mouse.wheel(0, -800)
        await becomes(page, f"({SEEN})().join() === 'false,false,true'")
        await page.click("#waits")
        await becomes(page, f"({SEEN})().join() === 'true,true,false'")
        await page.click(".flist a:has-text('a.py')")
        await becomes(page, "location.hash === '#changes=src/a.py'")
        await page.reload()
        await page.wait_for_selector(".flist a[aria-current]:has-text('src/a.py')")
        await page.set_viewport_size({"width": 1000, "height": 900})
        await page.click("#show-panel")
        await becomes(page, "document.activeElement.id === 'panel'")
        await page.keyboard.press("Escape")
        await becomes(page, "document.activeElement.id === 'show-panel' && !document.body.matches('.with-panel')")


async def test_the_sheet_of_a_question_keeps_its_title_and_its_diff_and_covers_nothing(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.py").write_text(OLD)
    async with page_with_model(tmp_path, EDITS, "--trust") as (served, seen):
        page = await seen.page(served, **PHONE)
        await start_session(page, "Change it.")
        await page.wait_for_selector(ALLOW)
        await becomes(page, f"({SHEET})().join() === 'true,true,true'")
        await page.tap(".question [data-act=blocks]")
        await page.wait_for_selector(".question [data-panel=blocks]")
        assert (await page.evaluate(SHEET))[:2] == [True, True]
