"""`treadle web` is killed while a question is open, and started again: what the open page and the old address show."""

import socket
from pathlib import Path

from tests.e2e.faults.driving import make, run
from tests.e2e.running import model
from tests.web.driving import (
    becomes,
    browser,
    in_shared_browser,
    read_questions,
    require_accessible,
    serving,
    start_session,
)
from treadle.providers.scripted.script import Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

pytestmark = in_shared_browser

TURNS = (Turn(items=(run("git push origin main"),)), Turn(items=(make("attempt_completion", result="Not pushed."),)))


async def test_a_question_outlives_the_server_and_an_old_page_says_how_to_come_back(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    place = (tmp_path / "home", tmp_path / "ws")
    async with ScriptedServer(Script(turns=TURNS)) as server, browser() as seen:
        async with serving(*place, "--port", port, *model(server)) as first:
            page = await seen.page(first)
            session = await start_session(page, "Push it.")
            await page.wait_for_selector(".question")
            first.process.kill()
            await page.wait_for_selector("#lost:has-text('No connection since')")
            await page.wait_for_selector("#chip:has-text('No connection')")
            await becomes(page, "document.title.includes('No connection · ')")  # behind how many questions wait
            await page.wait_for_selector(".question button[data-act=allow][disabled][title='No connection']")
            await page.wait_for_selector("#now:has-text('Was waiting for your answer')")
            await page.fill("#text", "Then look.")
            await page.press("#text", "Enter")
            await page.wait_for_selector("#hint:has-text('Sends when the connection is back.')")
            await page.click("#hint button")
            assert await page.input_value("#text") == "Then look."
            await page.fill("#text", "")
            await first.process.communicate()
        async with serving(*place, "--port", port, *model(server)) as again:
            await page.wait_for_selector("#enter:has-text('Open the link that Treadle printed')")
            assert "Push" not in await page.inner_text("body")
            assert await page.inner_text("h1") == "Treadle was started again"
            assert await page.inner_text(".fill") == "Try again"
            old = page.url
            await page.goto(again.link)
            await page.wait_for_selector("header.head")
            await page.goto(old)  # leads to the same screen below the new path
            await page.wait_for_url(f"**/s/{session}")
            await becomes(page, "document.title === '(1) Needs you · Push it.'")  # it waits as it did before
            await page.goto(f"{again.address}/inbox")
            await page.wait_for_selector(".card.on .question:has-text('It waited for your answer')")
            await becomes(page, "document.getElementById('how-many').textContent === '1 question of 1 session'")
            await require_accessible(page)
            await page.click(".card.on .question a.btn")
            await page.wait_for_url(f"**/s/{session}")
            await page.click("#continue")
            await page.wait_for_selector(".question:has-text('git push origin main')")
            await read_questions(page)
            await page.click(".question button[data-act=reject]")
            await page.keyboard.press("Enter")
            await page.wait_for_selector(".item.end:has-text('Done')")
            await page.close()
            seen.complaints.clear()  # of requests that no server took
