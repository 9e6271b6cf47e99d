"""The disk is full while a page is open: what it says, that nothing typed is lost, and that the session goes on."""

import asyncio
import resource
from pathlib import Path

from tests.e2e.running import PATIENCE, model
from tests.web.driving import becomes, browser, in_shared_browser, serving, start_session
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

pytestmark = in_shared_browser

TURNS = tuple(Turn(items=(SayText(text=text),)) for text in ("The first answer.", "The second answer."))


def let_write(pid: int, most: int) -> None:
    """Let a process make no file longer than so many bytes."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, hard))


async def test_a_full_disk_is_said_and_the_message_goes_once_there_is_room_again(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "ws"
    async with ScriptedServer(Script(turns=TURNS)) as server, browser() as seen:
        async with serving(home, folder, *model(server)) as served:
            page = await seen.page(served)
            session = await start_session(page, "Say something.")
            await page.wait_for_selector(".item.end:has-text('Done')")
            store = Store(home / "sessions.db")
            ((owner,),) = store.query("SELECT owner FROM leases")
            pid = int(owner.split(":")[1])
            before = resource.prlimit(pid, resource.RLIMIT_FSIZE)[0]
            let_write(pid, (home / "sessions.db-wal").stat().st_size)  # as on a full disk
            await page.fill("#text", "Say more.")
            await page.press("#text", "Enter")
            await page.wait_for_selector(".item.problem:has-text('cannot be written')")
            await page.wait_for_selector(".closed:has-text('A message continues it.')")
            await becomes(page, "document.getElementById('text').value === 'Say more.'")
            await page.press("#text", "Enter")
            await page.wait_for_selector(".failed-here:has-text('cannot be written')")
            await becomes(page, "document.getElementById('text').value === 'Say more.'")
            let_write(pid, before)
            await page.press("#text", "Enter")
            await page.wait_for_selector(".item:has-text('The second answer.')")
            await page.wait_for_selector(".item.end >> nth=1")
            assert len(server.requests) == 2
            let_write(pid, (home / "sessions.db-wal").stat().st_size)  # as on a full disk
            await page.fill("#text", "And more.")
            await page.press("#text", "Enter")
            await page.wait_for_selector(".item.problem:has-text('cannot be written')")
            await becomes(
                page, "(({ value, readOnly }) => value === 'And more.' && !readOnly)(document.getElementById('text'))"
            )
            await page.close()  # else it sends the message again, and has the session
            let_write(pid, before)
            async with asyncio.timeout(PATIENCE):
                while session in store.leased():  # to other processes the one that could not give it back lives
                    await asyncio.sleep(0.2)
            await store.acquire(session)
            await store.release(session)
            store.close()
        assert all("Failed to load resource" in said for said in seen.complaints)
        seen.complaints.clear()  # of what was refused
