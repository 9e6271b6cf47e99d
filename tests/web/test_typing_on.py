"""A message leaves its field at once: a person types on, and each message arrives once, in order, or comes back."""

import asyncio
import json
from pathlib import Path

import pytest
from playwright.async_api import Page, Route

from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import SayText, Turn

pytestmark = in_shared_browser

ANSWERS = tuple(Turn(items=(SayText(text=f"Answer {n}."),)) for n in range(8))


async def _slowly(page: Page, seconds: float) -> list[str]:
    """Let what is said take its time on the way; gives what was said."""
    said: list[str] = []

    async def late(route: Route) -> None:
        await asyncio.sleep(seconds)
        said.append(json.loads(route.request.post_data or "{}")["text"])
        await route.continue_()

    await page.route("**/say", late)
    return said


async def _bubbles(page: Page) -> list[str]:
    return [words.split("\n")[1] for words in await page.locator(".item .bubble").all_inner_texts()]


@pytest.mark.parametrize(("seconds", "delay"), [(0.0, 0), (0.2, 0), (0.4, 30), (1.0, 5)])
async def test_what_is_typed_after_a_message_is_the_next_one(tmp_path: Path, seconds: float, delay: int) -> None:
    async with page_with_model(tmp_path, ANSWERS) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Begin.")
        await page.wait_for_selector(".item.end")
        said = await _slowly(page, seconds)
        await page.focus("#text")
        words = ["the first one", "the second one, at once", "and a third"]
        for one in words:
            await page.keyboard.type(one, delay=delay)
            await page.keyboard.press("Enter")
        await page.keyboard.type("what is not sent yet", delay=delay)
        await becomes(page, "(n) => document.querySelectorAll('.item .bubble').length === n", 4)
        assert said == words
        assert await page.input_value("#text") == "what is not sent yet"
        await becomes(page, "document.querySelectorAll('.item.end').length > 1")
        await page.reload()
        assert await page.input_value("#text") == "what is not sent yet"
        assert await _bubbles(page) == ["Begin.", *words]


async def test_a_message_that_is_not_taken_comes_back_before_what_was_typed_since(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, ANSWERS) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Begin.")
        await page.wait_for_selector(".item.end")
        await page.route("**/say", lambda route: route.abort())
        await page.fill("#text", "It is lost.")
        await page.press("#text", "Enter")
        await becomes(page, "document.getElementById('text').value === 'It is lost.'")
        again: list[str] = []
        await page.unroute("**/say")
        page.on("request", lambda asked: again.append(asked.post_data or "") if asked.url.endswith("/say") else None)
        await page.press("#text", "Enter")
        await becomes(page, "document.querySelectorAll('.item .bubble').length === 2")
        assert json.loads(again[0])["text"] == "It is lost."

        async def refuse(route: Route) -> None:
            await asyncio.sleep(0.3)
            await route.fulfill(status=422, json={"what": "No.", "why": "", "fix": ""})

        await page.route("**/say", refuse)
        await page.fill("#text", "/mode nonsense")
        await page.press("#text", "Enter")
        await page.keyboard.type("typed since")
        await becomes(page, r"document.getElementById('text').value === '/mode nonsense\ntyped since'")
        seen.complaints.clear()  # the browser notes what was refused


async def test_a_message_on_its_way_when_the_page_is_loaded_again_arrives_once(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, ANSWERS) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Begin.")
        await page.wait_for_selector(".item.end")
        await _slowly(page, 0.5)
        await page.focus("#text")
        await page.keyboard.type("one")
        await page.keyboard.press("Enter")
        await page.keyboard.type("two")
        await page.keyboard.press("Enter")
        await page.keyboard.type("three")
        await page.reload()
        await becomes(page, "document.querySelectorAll('.item .bubble').length === 3")
        assert await page.input_value("#text") == "three"
        await asyncio.sleep(1.5)
        assert await _bubbles(page) == ["Begin.", "one", "two"]
        seen.complaints.clear()
