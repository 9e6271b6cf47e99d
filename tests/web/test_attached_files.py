"""Files that go along with a message, in a real browser: none is lost while the session is opened or closed."""

from pathlib import Path

from playwright.async_api import FilePayload

from tests.web.driving import becomes, close_session, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import SayText, Turn

pytestmark = in_shared_browser

HELLO, SEEN = Turn(items=(SayText(text="Hello."),)), Turn(items=(SayText(text="That is seen."),))
NOTE: FilePayload = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"attached\n"}


async def test_a_file_goes_along_to_a_closed_session_and_stays_while_another_tab_closes_one(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [HELLO, SEEN], "--trust") as (served, seen):
        page = await seen.page(served)
        session = await start_session(page, "Say hello.")
        await page.wait_for_selector(".item >> text=Hello.")
        await page.set_input_files("#files", files=[NOTE])
        await page.wait_for_selector("#images li")
        other = await page.context.new_page()
        await other.goto(f"{served.address}/s/{session}")
        await close_session(other)
        await other.wait_for_selector("#continue")
        await page.wait_for_selector("#lost-words:text('when your files are sent or removed')")
        assert "note.txt" in await page.inner_text("#images")
        await page.click("#images button")
        await page.wait_for_selector("#continue")
        await page.set_input_files("#files", files=[NOTE])
        await page.wait_for_selector("#images li")
        await page.fill("#text", "Look at it.")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".item >> text=That is seen.")
        assert "note.txt" in await page.inner_text(".item.said >> nth=-1")
        await becomes(page, "document.documentElement.dataset.ready && !document.getElementById('text').readOnly")
        assert await page.input_value("#text") == "", "what was sent is in the field no more"
        assert await page.locator(".item.said").count() == 2


HEIC: FilePayload = {"name": "a.heic", "mimeType": "image/heic", "buffer": bytes(range(256))}


async def test_a_file_says_itself_that_it_cannot_go_along_and_commands_leave_files_alone(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [HELLO, SEEN], "--trust") as (served, seen):
        page = await seen.page(served)
        await page.set_input_files("#files", files=[HEIC])
        await page.wait_for_selector("#images li:has-text('a.heic') [role=alert]:has-text('It is not a text in UTF-8')")
        await page.click("#images button")
        await start_session(page, "Say hello.")
        await page.wait_for_selector(".item >> text=Hello.")
        await page.set_input_files("#files", files=[NOTE, HEIC])
        await page.wait_for_selector("#images li:has-text('a.heic') [role=alert]")
        assert await page.locator("#images [role=alert]").count() == 1
        for command, done in (
            ("/rename Other", "#title:has-text('Other')"),
            ("!echo mine", ".item >> text=mine"),
            ("/help", "#shown >> text=/rename"),
        ):
            await page.fill("#text", command)
            await page.keyboard.press("Enter")
            await page.wait_for_selector(done)
            await becomes(page, "document.getElementById('text').value === ''")
            assert await page.locator("#images li").count() == 2, "a command takes none along"
        await page.fill("#text", "Look at it.")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".failed-here:has-text('a.heic cannot be attached.')")
        await page.click("#images li:has-text('a.heic') button")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".item >> text=That is seen.")
        assert await page.locator("#images li").count() == 0
        assert "note.txt" in await page.inner_text(".item.said >> nth=-1")
        seen.complaints = [said for said in seen.complaints if "400" not in said]  # the message that was refused
