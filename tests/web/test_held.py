"""Messages that wait for the session: their order, their time, and what a stop makes of them, in a real browser."""

import signal
from contextlib import AsyncExitStack
from pathlib import Path

from playwright.async_api import Page

from tests.e2e.faults.driving import make
from tests.e2e.running import model
from tests.web.driving import (
    becomes,
    browser,
    in_shared_browser,
    page_with_model,
    require_accessible,
    serving,
    start_session,
)
from treadle.providers.scripted.script import SayText, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

pytestmark = in_shared_browser

TURNS = (
    Turn(items=(SayText(text="Thinking about it."), Wait(seconds=600))),
    Turn(items=(make("attempt_completion", result="That is done."),)),
    Turn(items=(make("attempt_completion", result="The other one, too."),)),
)
_ROWS = """() => [...document.querySelectorAll("#queue li")].map(
    (row) => row.querySelector(".when").textContent + ": " + row.querySelector(".words").textContent
)"""


async def _rows(page: Page, *wanted: str) -> None:
    await becomes(page, f"(wanted) => JSON.stringify(({_ROWS})()) === JSON.stringify(wanted)", [*wanted])


async def _say(page: Page, text: str) -> None:
    await page.fill("#text", text)
    await page.keyboard.press("Enter")


async def test_what_waits_is_put_in_order_held_by_a_stop_kept_through_a_kill_and_sent(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ScriptedServer(Script(turns=TURNS)))
        served = await stack.enter_async_context(serving(tmp_path / "home", tmp_path / "ws", *model(server)))
        seen = await stack.enter_async_context(browser())
        page = await seen.page(served)
        session = await start_session(page, "Work.")
        await page.wait_for_selector(".item >> text=Thinking about it.")
        for text in ("one", "two", "three"):
            await _say(page, text)
        await _rows(page, "after this turn: one", "after this turn: two", "after this turn: three")
        await page.click("#queue li:nth-child(3) [aria-label^='Send before']")
        await _rows(page, "after this turn: one", "after this turn: three", "after this turn: two")
        await page.click("#queue li:nth-child(1) [title='Send at the next step']")
        await _rows(page, "next step: one", "after this turn: three", "after this turn: two")
        await page.click("#queue li:nth-child(1) [title='Send after this turn']")
        await _rows(page, "after this turn: one", "after this turn: three", "after this turn: two")
        await page.click("#queue li:nth-child(1) [aria-label^='Remove']")
        await page.focus("#text")
        await page.keyboard.press("ArrowUp")
        await page.wait_for_selector("#queue textarea:focus")
        await page.keyboard.press("End")
        await page.keyboard.type(" and a half")
        await page.click("#queue [aria-label^='Save']")
        await _rows(page, "after this turn: three", "after this turn: two and a half")
        await page.click("#stop")
        await _rows(page, "held: three", "held: two and a half")
        assert await page.input_value("#text") == ""
        served.process.send_signal(signal.SIGKILL)
        await served.process.wait()
        await page.close()
        async with serving(served.program.home, served.folder, *model(server)) as again:
            page = await seen.page(again, f"/s/{session}")
            await page.click(".closed summary:has-text('2 messages wait in it.')")
            assert "three\n\ntwo and a half" in await page.inner_text(".closed details")
            await require_accessible(page)
            await page.click("#continue")
            await _rows(page, "held: three", "held: two and a half")
            await page.click("#queue li:nth-child(2) [aria-label^='Send now']")
            await page.wait_for_selector(".item.said:has-text('two and a half')")
            await page.wait_for_selector(".item >> text=That is done.")
            await _rows(page, "held: three")
            await page.click("#queue [aria-label^='Remove']")
            await page.wait_for_selector("#queue", state="hidden")
        seen.complaints[:] = [one for one in seen.complaints if "net::ERR" not in one]  # of the server that was killed


async def test_a_message_that_is_changed_while_it_waits_is_kept_and_the_list_follows(tmp_path: Path) -> None:
    slow = Turn(items=(SayText(text="Thinking about it."), Wait(seconds=60), SayText(text="That is done.")))
    async with page_with_model(tmp_path, [slow]) as (served, seen):
        page = await seen.page(served)
        session = await start_session(page, "Work.")
        await page.wait_for_selector(".item >> text=Thinking about it.")
        for text in ("one", "two"):
            await _say(page, text)
        await _rows(page, "after this turn: one", "after this turn: two")
        await page.click("#queue li:nth-child(2) [aria-label^='Change']")
        await page.fill("#queue textarea", "two and a half")
        await page.keyboard.press("Home")
        other = await page.context.new_page()
        await other.goto(f"{served.address}/s/{session}")
        await other.wait_for_selector("#queue textarea")
        assert await other.input_value("#queue textarea") == "two and a half", "in another tab, too"
        await other.click("#queue li:nth-child(1) [aria-label^='Remove']")
        await becomes(page, "document.querySelectorAll('#queue li').length === 1")
        await page.keyboard.type("at ")
        assert await page.input_value("#queue textarea") == "at two and a half", "the field keeps its place"
        await page.reload()
        await page.focus("#queue textarea")
        assert await page.input_value("#queue textarea") == "at two and a half"
        await other.click("#queue [aria-label^='Cancel']")
        await other.click("#queue [aria-label^='Remove']")
        await page.wait_for_selector("#messages >> text=does not wait any more")
        await page.keyboard.type(" now")
        assert await page.input_value("#text") == "at two and a half now", "no key that is typed on is a shortcut"
