"""Files that go along with a message, in a real browser: none is lost while the session is opened or closed."""

import socket
from pathlib import Path

from playwright.async_api import FilePayload

from tests.e2e.running import model
from tests.web.driving import (
    becomes,
    browser,
    close_session,
    in_shared_browser,
    page_with_model,
    serving,
    start_session,
)
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

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
        await page.wait_for_selector("#continue")
        await page.wait_for_selector("#images li:has-text('note.txt')")
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
        await page.wait_for_selector(
            "#images li:has-text('a.heic') [role=alert]:has-text('It is not a picture that models read')"
        )
        await page.click("#images button")
        await start_session(page, "Say hello.")
        await page.wait_for_selector(".item >> text=Hello.")
        await page.set_input_files("#files", files=[NOTE, HEIC])
        await page.wait_for_selector("#images li:has-text('a.heic') [role=alert]")
        assert await page.locator("#images [role=alert]").count() == 1
        assert await page.locator("#images button").count() == 2, "each goes by itself"
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


async def test_a_file_of_a_message_that_waits_for_the_connection_goes_along_once_treadle_is_started_again(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    place = (tmp_path / "home", tmp_path / "ws", "--trust", "--port", port)
    async with ScriptedServer(Script(turns=(HELLO, SEEN))) as server, browser() as seen:
        async with serving(*place, *model(server)) as first:
            page = await seen.page(first)
            session = await start_session(page, "Say hello.")
            await page.wait_for_selector(".item >> text=Hello.")
            await page.set_input_files("#files", files=[NOTE])
            await page.wait_for_selector("#images li")
            await page.reload()
            await page.wait_for_selector("#images li:has-text('note.txt')")  # without a text, too
            await page.click("#images button")
            await page.reload()
            await page.wait_for_selector("html[data-ready]")
            assert await page.locator("#images li").count() == 0
            await page.set_input_files("#files", files=[NOTE])
            await page.wait_for_selector("#images li")
            first.process.kill()
            await first.process.communicate()
            await page.wait_for_selector("#lost:has-text('No connection since')")
            await page.fill("#text", "Look at it.")
            await page.press("#text", "Enter")
            await page.wait_for_selector("#hint:has-text('Sends when the connection is back.')")
        async with serving(*place, *model(server)) as again:
            await page.wait_for_selector("#enter:has-text('Open the link that Treadle printed')")
            await page.goto(again.link)
            await page.wait_for_selector("header.head")
            await page.goto(f"{again.origin}{again.at or page.url.removeprefix(again.origin).rstrip('/')}/s/{session}")
            await page.wait_for_selector(".item >> text=That is seen.")
            assert "note.txt" in await page.inner_text(".item.said >> nth=-1")
            assert await page.locator(".item.said").count() == 2, "it arrived once"
            await becomes(page, "document.documentElement.dataset.ready && !document.getElementById('text').readOnly")
            assert await page.locator("#images li").count() == 0
            assert await page.evaluate("caches.open('drafts').then((box) => box.keys()).then((all) => all.length)") == 0
            await page.set_input_files("#files", files=[NOTE])
            await page.wait_for_selector("#images li")
            await page.fill("#text", "And this.")
            await page.evaluate("caches.delete('drafts')")
            await page.reload()
            await page.wait_for_selector("text=This browser has not kept the files of your draft. Attach them again.")
            assert await page.input_value("#text") == "And this."
            await page.evaluate("void (caches.open = () => Promise.reject(new Error('none')))")  # as over plain HTTP
            await page.set_input_files("#files", files=[NOTE])
            await page.wait_for_selector("#images li")
            other = await page.context.new_page()
            await other.goto(page.url)
            await close_session(other)
            await page.wait_for_selector("#lost-words:text('when your files are sent or removed')")
            assert "note.txt" in await page.inner_text("#images")
            await page.click("#images button")
            await page.wait_for_selector("#continue")
            seen.complaints.clear()  # of requests that no server took
