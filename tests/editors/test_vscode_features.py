"""What else the extension does in real VS Code: problems, images, terminals, subagents, sessions of other folders."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.async_api import Error

from tests.acp.driving import editor
from tests.e2e.faults.driving import make, run
from tests.e2e.running import model
from tests.editors.scripted_tasks import Tasks, turn
from tests.editors.test_vscode import repository
from tests.editors.vscode_driving import LONG, Studio, sent, studio
from tests.needed import needs

pytestmark = [needs("code-server", "browser"), pytest.mark.soak, pytest.mark.timeout(3600)]

LIGHT = {"workbench.colorTheme": "Default Light Modern", "treadle.commandsInTerminal": True}
_PASTE = """async () => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 40, height: 20 });
  canvas.getContext('2d').fillRect(0, 0, 20, 20);
  const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File([blob], 'a.png', { type: 'image/png' }));
  document.querySelector('#text').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true }));
}"""

TURNS = {
    "EXPLAIN": [turn("It adds two numbers.")],
    "FIX": [turn("A value is missing.")],
    "IMAGE": [turn("I see a picture.")],
    "RUN": [turn("I run it.", run("echo seen in the terminal")), turn("It ran.")],
    "PARENT": [
        turn("I send somebody.", make("use_subagents", tasks=[{"prompt": "Task CHILD: look at a.txt."}])),
        turn("They looked."),
    ],
    "CHILD": [turn("I look.", make("read_file", path="a.txt")), turn("It has 30 lines.")],
    "CHANGE": [turn("A file.", make("write_to_file", path="new.txt", content="new\n")), turn("Made.")],
    "ELSEWHERE": [turn("Elsewhere.", make("write_to_file", path="there.txt", content="there\n")), turn("Made there.")],
}


async def test_what_an_editor_offers_beside_the_chat(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    (folder / "calc.py").write_text("def add(a, b):  # Task EXPLAIN\n    return a + b\n")
    (folder / "broken.json").write_text('{\n  "a": Task FIX\n}\n')
    async with studio(tmp_path, Tasks(TURNS), LIGHT) as seen:
        await _explained(seen)
        await _fixed(seen)
        await _image(seen)
        await _terminal(seen)
        await _subagents(seen)
        await _compared(seen)
        await _elsewhere(seen, tmp_path)
        assert await seen.faults() == []


async def _explained(seen: Studio) -> None:
    await seen.open("calc.py")
    await seen.page.locator(".editor-instance .view-lines").first.click()
    await seen.page.keyboard.press("Control+A")
    await seen.command("Treadle: Explain with Treadle")
    await seen.answer("Do you trust", "Yes, for this session only")
    await seen.shown("It adds two numbers.")
    await seen.idle()
    assert "calc.py:1-2" in sent(seen.server)[-1]
    await seen.picture("explained")


async def _fixed(seen: Studio) -> None:
    await seen.open("broken.json")
    await seen.page.locator(".squiggly-error").first.wait_for()
    await seen.page.locator(".editor-instance .view-line", has_text="Task FIX").first.click()
    for key in ("F8", "Escape"):  # to the problem, without its box
        await seen.page.keyboard.press(key)
    row = seen.page.locator(".action-widget .monaco-list-row", has_text="Fix with Treadle").first
    async with asyncio.timeout(LONG):
        while not await row.is_visible():  # its fixes are looked for anew, and a list that was open closes by the key
            await seen.page.keyboard.press("Control+.")
            with suppress(Error):
                await row.wait_for(timeout=3_000)
    await seen.picture("quick fix")
    await row.click()
    await seen.shown("A value is missing.")
    await seen.idle()
    assert "Value expected" in sent(seen.server)[-1]


async def _image(seen: Studio) -> None:
    await seen.chat.evaluate(_PASTE)
    await seen.chat.locator("#attached .chip", has_text="Image 1").wait_for()
    await seen.say("Task IMAGE")
    await seen.shown("I see a picture.")
    await seen.idle()
    assert await seen.chat.locator("#log .user img").count() == 1
    assert '"media_type": "image/png"' in sent(seen.server)[-1]
    await seen.picture("image")


async def _terminal(seen: Studio) -> None:
    await seen.say("Task RUN")
    await seen.page.locator(".xterm-rows", has_text="seen in the terminal").first.wait_for()
    await seen.shown("It ran.")
    await seen.idle()
    await seen.picture("terminal")
    await seen.command("View: Hide Panel")


async def _subagents(seen: Studio) -> None:
    header = seen.page.locator(".pane-header", has_text="Subagents")
    await header.click()
    pane = seen.page.locator(".pane", has=header)
    await pane.get_by_text("The session has no subagents.").wait_for()
    await seen.say("Task PARENT")
    async with asyncio.timeout(LONG):
        while not await pane.locator(".monaco-list-row", has_text="Task CHILD").count():
            yes = seen.chat.locator(".question").get_by_role("button", name="Yes", exact=True)
            if await yes.count():
                await yes.first.click()
            await asyncio.sleep(0.2)
    await seen.idle()
    await pane.locator(".monaco-list-row", has_text="completed").first.wait_for()
    await seen.picture("subagents")
    await header.click()


async def _compared(seen: Studio) -> None:
    await seen.say("Task CHANGE")
    await seen.answer("Create new.txt?", "Yes")
    await seen.shown("Made.")
    await seen.idle()
    header = seen.page.locator(".pane-header", has_text="Checkpoints")
    await header.click()
    pane = seen.page.locator(".pane", has=header)
    await pane.locator(".monaco-list-row", has_text="1. Before changes").first.click()
    await seen.page.locator(".tab", has_text="since checkpoint 1.diff").wait_for()
    await seen.page.locator(".editor-instance .view-lines", has_text="+new").first.wait_for()
    await seen.picture("compared")
    await header.click()


async def _elsewhere(seen: Studio, tmp_path: Path) -> None:
    """A session of another editor in another folder waits: it is seen in the inbox, and answered from here."""
    other = tmp_path / "other"
    other.mkdir()
    async with editor(seen.home, *model(seen.server)) as client:
        await client.initialize()
        session = (await client.call("session/new", cwd=str(other), mcpServers=[]))["sessionId"]
        client.answers["session/request_permission"] = lambda _: asyncio.Future()
        turn_there = client.begin(
            "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Task ELSEWHERE"}]
        )
        pane = seen.page.locator(".pane", has=seen.page.locator(".pane-header", has_text="Inbox"))
        row = pane.locator(".monaco-list-row", has_text="Task ELSEWHERE").filter(has_text="waiting for you")
        await row.first.wait_for()
        await seen.page.locator(".activitybar .badge:visible", has_text="1").first.wait_for()
        await seen.picture("waiting elsewhere")
        await row.first.click()
        await seen.answer("Create there.txt?", "Yes")
        await turn_there
        await seen.shown("Made there.")
        assert (other / "there.txt").read_text() == "there\n"
        await seen.picture("answered from here")
