"""What happens between the drawing of a page and the running of its modules is on the page in the end."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Route

from tests.e2e.faults.driving import make
from tests.web.driving import becomes, close_session, in_shared_browser, page_with_model, read_questions, start_session
from treadle.providers.scripted.script import Turn

pytestmark = in_shared_browser

TURNS = (
    Turn(items=(make("write_to_file", path="a.txt", content="a\n"),)),
    Turn(items=(make("attempt_completion", result="Done."),)),
)
PLACES = {
    "sessions.js": ("/sessions", "document.querySelectorAll('#rows .chip.state.done').length === 1"),
    "inbox.js": ("/inbox", "!document.querySelector('#inbox .question:not(.closed-line)')"),
    "column.js": ("/usage", "document.querySelector('.ses').dataset.state === 'done'"),
}


@pytest.mark.parametrize("module", PLACES)
async def test_what_happened_before_the_modules_of_a_page_had_run_is_shown(tmp_path: Path, module: str) -> None:
    path, shown = PLACES[module]
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Push it.")
        await page.wait_for_selector(".question")
        gate = asyncio.Event()

        async def late(route: Route) -> None:
            await gate.wait()
            await route.continue_()

        other = await page.context.new_page()
        await other.route(f"**/static/*/{module}", late)
        await other.goto(served.address + path, wait_until="commit")
        await other.wait_for_selector("#column .ses", state="attached")
        await read_questions(page)
        await page.click(".question .answers [data-act=allow]")
        await page.wait_for_selector(".item.end")
        await close_session(page)
        await page.wait_for_selector("body:not([data-opened])")
        assert not await other.evaluate(shown)
        gate.set()
        await becomes(other, shown)


async def test_what_was_typed_before_the_modules_had_run_is_completed(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        (served.folder / "plan.md").write_text("The plan.\n")
        page = await seen.page(served)
        gate = asyncio.Event()

        async def late(route: Route) -> None:
            await gate.wait()
            await route.continue_()

        await page.route("**/static/*/start.js", late)
        await page.goto(f"{served.address}/", wait_until="commit")
        await page.focus("#text")
        await page.keyboard.type("Read @pl")
        gate.set()
        await page.wait_for_selector("#menu li:has-text('plan.md')")


@pytest.mark.parametrize(
    "module", ["palette.js", "notify.js", "commit.js", "files.js", "shell.js", "screen.js", "knocks.js"]
)
async def test_a_module_that_does_not_load_takes_only_its_part_of_the_page_with_it(tmp_path: Path, module: str) -> None:
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        page = await seen.page(served)
        await page.route(f"**/static/*/{module}", lambda route: route.abort())
        await start_session(page, "Write.")
        await page.wait_for_selector("#broken >> text=did not load")
        await page.wait_for_selector(".question")
        await page.wait_for_timeout(700)  # a question that has just come takes no answer
        await page.click(".question .answers [data-act=allow]")
        await page.wait_for_selector(".item.end")
        await page.fill("#text", "And then?")
        await page.press("#text", "Enter")
        await page.wait_for_selector("#items :text('And then?')")
        seen.complaints.clear()
