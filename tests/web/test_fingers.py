"""A phone is used with fingers: across from view to view, and down to put a question away. Each has a button, too."""

from pathlib import Path
from typing import Any

from playwright.async_api import CDPSession, Page

from tests.e2e.faults.driving import make, run
from tests.web.driving import (
    becomes,
    in_shared_browser,
    page_with_model,
    read_questions,
    require_accessible,
    start_session,
)
from treadle.providers.scripted.script import Expectation, SayText, Texts, Turn

pytestmark = in_shared_browser

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LONG = "\n".join(f"    print('a line of code that is wider than the phone, number {n}')" for n in range(6))
WRITES = Turn(items=(SayText(text=f"Like this:\n\n```python\n{LONG}\n```\n\nand then it is pushed."),))
PUSHES = Turn(items=(run("git push origin main"),))


async def _finger(cdp: CDPSession, page: Page, selector: str, right: int, down: int) -> None:
    """Put a finger in the middle of an element, move it in steps, and lift it."""
    await page.locator(selector).first.evaluate("(one) => one.scrollIntoView({ block: 'center', behavior: 'instant' })")
    box = await page.locator(selector).first.bounding_box()
    assert box is not None
    x, y = box["x"] + min(box["width"], 390) / 2, box["y"] + min(box["height"], 40) / 2

    async def touch(kind: str, part: float) -> None:
        points = [{"x": x + right * part, "y": y + down * part}] if kind != "touchEnd" else []
        await cdp.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    await touch("touchStart", 0)
    for step in range(1, 9):
        await touch("touchMove", step / 8)
    await touch("touchEnd", 1)


async def _view(page: Page) -> str:
    return str(await page.evaluate("document.body.dataset.view"))


async def test_a_finger_moves_between_the_views_and_scrolls_code_where_it_begins_there(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [WRITES]) as (served, seen):
        page = await seen.page(served, **PHONE)
        await start_session(page, "Show me.")
        await page.wait_for_selector(".item.end", state="attached")
        cdp = await page.context.new_cdp_session(page)
        await _finger(cdp, page, "#items .answer pre, #items pre", -150, 4)
        assert await _view(page) == "conversation", "it began in the code"
        await _finger(cdp, page, "#items .bubble", -150, 4)
        await becomes(page, "document.body.dataset.view === 'changes'")
        await page.wait_for_selector("#p-changes:not([hidden])")
        await _finger(cdp, page, "#p-changes", 150, 4)
        await becomes(page, "document.body.dataset.view === 'conversation'")
        await page.keyboard.press("Control+k")
        await page.wait_for_selector("#palette .session")
        assert not await page.locator("#palette .pkeys >> visible=true").count(), "there is no keyboard"
        sizes = "[...document.querySelectorAll('#palette :is([role=option], button)')].map((one) => one.offsetHeight)"
        assert min(await page.evaluate(sizes)) >= 40
        await require_accessible(page)
        await page.click("#palette button")
        assert await page.locator("#palette").is_hidden()
        await _finger(cdp, page, "#items .bubble", 150, 4)
        await _finger(cdp, page, "#items .bubble", -40, 0)
        assert await _view(page) == "conversation", "there is nothing before it, and that was short"


async def test_a_question_is_dragged_away_and_its_line_brings_it_back(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [PUSHES, WRITES]) as (served, seen):
        page = await seen.page(served, **PHONE)
        await start_session(page, "Push it.")
        card = page.locator("#questions .question")
        await card.wait_for()
        cdp = await page.context.new_cdp_session(page)
        await _finger(cdp, page, ".question > header", 120, 10)
        assert (await _view(page), await card.is_visible()) == ("conversation", True), (
            "across answers and moves nothing"
        )
        await _finger(cdp, page, ".question > header", 6, 140)
        await page.wait_for_selector("#questions.away", state="attached")
        assert not await card.is_visible()
        await page.click("#waits:has-text('1 question')")
        await card.wait_for()
        assert await card.locator("button[data-act=allow]").is_visible()


async def test_several_answers_are_ticked_and_sent_together(tmp_path: Path) -> None:
    asks = make("ask_followup_question", question="Which?", options=["red", "blue", "green"], multiple=True)
    heard = Expectation(conversation=Texts(contains=("red\ngreen",)))
    turns = [Turn(items=(asks,)), Turn(items=(SayText(text="As you like."),), when=heard)]
    async with page_with_model(tmp_path, turns) as (served, seen):
        page = await seen.page(served, **PHONE)
        await start_session(page, "Ask me.")
        card = page.locator("#questions .question")
        await card.wait_for()
        await require_accessible(page)
        await read_questions(page)
        await card.locator("button[data-act=chosen]").tap()
        await page.wait_for_selector("text=Choose at least one of the answers.")
        for name in ("green", "red", "blue", "blue"):
            await card.locator(f"label:has-text('{name}')").tap()
        await read_questions(page)
        await card.locator("button[data-act=chosen]").tap()
        await page.wait_for_selector("text=As you like.")


async def test_a_short_session_fits_on_the_phone_with_its_first_message_in_sight(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [Turn(items=(SayText(text="Hello."),))]) as (served, seen):
        page = await seen.page(served, **PHONE)
        await start_session(page, "Say hello.")
        await page.wait_for_selector(".item.end", state="attached")
        await page.reload()
        await page.wait_for_selector(".item.end", state="attached")
        await becomes(page, "document.documentElement.scrollHeight <= innerHeight && scrollY === 0")
