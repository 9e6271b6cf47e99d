"""The ports of a session's commands beside its conversation: seen, opened on this computer, gone with the server."""

import asyncio
import http.client
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make, run
from tests.web.driving import becomes, needs_chromium, page_with_model, start_session
from tests.web.in_process import idle, page_here
from tests.web.test_rights import phone
from tests.workspace.sandbox.running import bubblewrap
from treadle.providers.scripted.script import Turn

SERVES = make("execute_command", command="exec python3 -m http.server 8179", background=True)
WAITS = run("for i in $(seq 100); do curl -sf localhost:8179 >/dev/null && break; sleep 0.1; done")
DONE = Turn(items=(make("attempt_completion", result="It serves."),))
TURNS = (Turn(items=(SERVES,)), Turn(items=(WAITS,)), DONE)
ROW = "#ports li.port"


def fetch(url: str) -> str:
    """Read what is served there; empty where nothing is, or what is no text: another program may have the port then."""
    with (
        suppress(OSError, http.client.HTTPException, UnicodeDecodeError),
        urllib.request.urlopen(url, timeout=10) as got,
    ):
        return str(got.read().decode())
    return ""


@needs_chromium
async def test_a_port_is_seen_opened_closed_and_gone_with_its_server(tmp_path: Path) -> None:
    bubblewrap()
    async with page_with_model(tmp_path, TURNS, "--mode", "auto", own=True) as (served, seen):
        (served.folder / "index.html").write_text("made here")
        page = await seen.page(served)
        await start_session(page, "Serve it.")
        await page.click("#tab-terminal")
        await page.wait_for_selector(ROW)
        assert " ".join((await page.inner_text(ROW)).split()).startswith("Port 8179 python3")
        await page.click(f"{ROW} button[data-act=open]")
        await page.wait_for_selector(f"{ROW} a")
        url = await page.get_attribute(f"{ROW} a", "href")
        assert url is not None
        assert await asyncio.to_thread(fetch, url) == "made here"
        async with page.context.expect_page() as opening:
            await page.click(f"{ROW} a")
        other = await opening.value
        await other.wait_for_selector("text=made here")
        assert await other.evaluate("window.opener") is None
        await other.close()
        async with page.context.expect_page() as opening:
            await page.click(f"{ROW} button[data-act=preview]")
        other = await opening.value
        await other.wait_for_selector("text=made here")
        assert await other.evaluate("window.opener") is None, "what the session serves does not reach the page"
        await other.close()
        await page.focus(f"{ROW} button[data-act=close]")
        async with page.expect_response("**/jobs"):
            pass  # the list is read anew, and what had the focus keeps it
        await becomes(page, "document.activeElement.dataset.act === 'close'")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(f"{ROW} button[data-act=open]")
        assert await asyncio.to_thread(fetch, url) != "made here"
        await page.click("#tab-plan")
        await page.click("#jobs button[data-printed]")
        await page.wait_for_selector("#printed summary:has-text('http.server')")
        await page.wait_for_selector(".call .spin")
        await page.click(".call button[data-job]")
        await page.wait_for_selector(ROW, state="detached")
        await page.wait_for_selector(".call .spin", state="detached")
        assert await page.inner_text(".call.interrupted .state") == "stopped, in the background"


async def test_a_paired_device_sees_ports_and_opens_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bubblewrap()
    async with page_here(tmp_path, monkeypatch, TURNS, mode="auto") as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        path, device = f"/s/{page.session.id}", phone(here)
        assert "It can be opened only on the computer that runs Treadle." in await device.get(f"{path}/jobs")
        status, _ = await device.post(f"{path}/ports/open", port=8179)
        assert status == 403
        shown = await visit.get(f"{path}/jobs")
        assert 'data-act="open"' in shown
        assert "python3" in shown
        status, said = await visit.post(f"{path}/ports/open", port=9)
        assert (status, said["code"], "listens on port 9" in str(said)) == (404, "port-unknown", True)
        await visit.done(f"{path}/ports/open", port=8179)
        assert "http://127.0.0.1:" in await device.get(f"{path}/jobs")
        await visit.done(f"{path}/ports/close", port=8179)
        assert "http://127.0.0.1:" not in await device.get(f"{path}/jobs")
        await visit.done(f"{path}/close")
        assert "8179" not in (await visit.get(f"{path}/jobs")).partition('class="port')[2]
