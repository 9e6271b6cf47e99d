"""What a person does quickly, and what happens when a part of the page is missing."""

import json
import struct
from base64 import b64decode
from pathlib import Path

from playwright.async_api import Route

from tests.e2e.faults.driving import make
from tests.web.driving import becomes, in_shared_browser, page_with_model, read_questions, start_session
from treadle.providers.scripted.script import SayText, Turn

pytestmark = in_shared_browser


def asks(folder: Path) -> tuple[Turn, ...]:
    """Two questions at once: about files that are not in the project."""
    for name in ("one.txt", "two.txt"):
        (folder / name).write_text("text\n")
    both = tuple(make("read_file", path=str(folder / name)) for name in ("one.txt", "two.txt"))
    return (Turn(items=both), Turn(items=(SayText(text="Read."),)))


PASTES = """async () => {
  const canvas = new OffscreenCanvas(3000, 1500);
  canvas.getContext("2d").fillRect(0, 0, 10, 10);
  const files = new DataTransfer();
  files.items.add(new File([await canvas.convertToBlob()], "shot.png", { type: "image/png" }));
  const field = document.getElementById("text");
  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: files, bubbles: true, cancelable: true }));
}"""


async def test_the_next_question_takes_no_answer_that_was_meant_for_the_one_before(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, asks(tmp_path)) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Read both.")
        await becomes(page, "document.querySelectorAll('#questions .question').length === 2")
        assert await page.locator("#questions .question:not(.behind) .of").inner_text() == "1 of 2 ›"
        await page.click("#questions .question:not(.behind) .of")
        await page.wait_for_selector("#questions .question:not(.behind):has-text('two.txt')")
        await read_questions(page)
        await page.click("#questions .question:not(.behind):has-text('two.txt') button[data-act=allow]")
        await becomes(page, "document.querySelectorAll('#questions .question').length === 1")
        came = await page.locator("#questions .question").get_attribute("data-came")
        assert float(came or 0) > 0, "it stands where the other one stood, so it takes no answer for a moment"
        await read_questions(page)
        await page.click("#questions .question button[data-act=allow]")
        await page.wait_for_selector(".item.end")


async def test_a_part_that_did_not_load_is_said_and_the_rest_works(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, asks(tmp_path)) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Read both.")
        await page.wait_for_selector("#questions .question")

        async def gone(route: Route) -> None:
            await route.abort()

        await page.route("**/static/*/live.js", gone)
        await page.reload()
        await page.wait_for_selector("#messages a:has-text('Reload')")
        await page.click("#fold")
        await becomes(page, "document.documentElement.classList.contains('folded-column')")
        await page.unroute("**/static/*/live.js")
        await page.click("#messages a:has-text('Reload')")
        await page.wait_for_selector("#questions .question")
        await becomes(page, "!document.getElementById('broken')")
        seen.complaints.clear()  # that it was not loaded


async def test_a_draft_is_there_in_another_tab_too_and_grows_as_it_wraps(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, asks(tmp_path)) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Read both.")
        await page.wait_for_selector("#questions .question")
        before = await page.evaluate("document.getElementById('text').clientHeight")
        await page.fill("#text", "One long sentence that has no end. " * 12)
        assert await page.evaluate("document.getElementById('text').clientHeight") > before * 1.5
        other = await page.context.new_page()
        await other.goto(page.url)
        await becomes(other, "document.getElementById('text').value.startsWith('One long sentence')")


async def test_a_picture_is_made_as_small_as_models_read_it(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, asks(tmp_path)) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Read both.")
        await page.wait_for_selector("#questions .question")
        await page.evaluate(PASTES)
        await page.wait_for_selector("#images li:has-text('shot.png')")
        await page.fill("#text", "Look.")
        async with page.expect_request("**/say") as sent:
            await page.keyboard.press("Enter")
        (file,) = json.loads((await sent.value).post_data or "")["files"]
        assert struct.unpack(">II", b64decode(file["data"])[16:24]) == (2000, 1000)
