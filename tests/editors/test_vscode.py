"""The extension in real VS Code: a task, its diffs, the answers, and an agent that is killed in the middle."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.faults.driving import block, make, run
from tests.editors.scripted_tasks import Tasks, turn
from tests.editors.vscode_driving import LONG, Studio, sent, studio
from tests.needed import needs

pytestmark = [needs("code-server", "browser"), pytest.mark.soak, pytest.mark.timeout(3600)]

LINES = "".join(f"line {number}\n" for number in range(1, 31))
TWO = block("line 2\n", "line two\n") + block("line 20\n", "line twenty\n")

_PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-line 5
+line five
*** Update File: calc.py
@@
-def add(a, b):
+def add(b, a):
*** End Patch
"""

TURNS = {
    "LOOK": [
        turn("I **look** at it.", make("read_file", path="a.txt"), make("list_files", path=".")),
        turn("The file has `30` lines.\n\n- one\n- two"),
    ],
    "PARTS": [turn("Two places.", make("replace_in_file", path="a.txt", diff=TWO)), turn("Changed in part.")],
    "PATCH": [turn("Two files.", make("apply_patch", patch=_PATCH)), turn("PATCH is over.")],
    "NO_PATCH": [turn("Two files.", make("apply_patch", patch=_PATCH)), turn("NO_PATCH is over.")],
    "HAND": [turn("A new file.", make("write_to_file", path="b.txt", content="one\ntwo\n")), turn("Written by hand.")],
    "DENY": [turn("A file more.", make("write_to_file", path="no.txt", content="no\n")), turn("I leave it.")],
    "TYPED": [
        turn("I read it.", make("read_file", path="calc.py")),
        turn(
            "I change it.",
            make("replace_in_file", path="calc.py", diff=block("    return a - b\n", "    return a + b\n")),
        ),
        turn("Both are in it."),
    ],
    "WAIT": [turn("I wait.", run("sleep 300")), turn("It is over.")],
    "KILL": [turn("One more.", make("write_to_file", path="kill.txt", content="x\n")), turn("Gone on.")],
    "git commit": [turn("Add what is new\n\nThe tests need it.")],
    "PLAN": [
        turn("A plan.", make("read_file", path="a.txt", task_progress="- [x] look\n- [ ] change")),
        turn("So far."),
    ],
}


def repository(tmp_path: Path) -> Path:
    """A folder under git with two files."""
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.txt").write_text(LINES)
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@localhost")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "First")):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


async def test_a_day_in_the_editor(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    async with studio(tmp_path, Tasks(TURNS)) as seen:
        await _task(seen)
        await _parts(seen, folder)
        await _by_hand(seen, folder)
        await _denied(seen, folder)
        await _typed(seen, folder)
        await _stopped(seen)
        await _back(seen, folder)
        await _suggested(seen)
        await _sessions(seen)
        await _committed(seen)
        assert await seen.faults() == []


async def _task(seen: Studio) -> None:
    await seen.say("Task LOOK, please.")
    await seen.answer("Do you trust", "Yes, for this session only")
    await seen.shown("The file has 30 lines.")
    await seen.idle()
    group = seen.chat.locator("details[data-id=group] > summary")
    assert await group.inner_text() == "Read 1 file, searched 1 time"
    assert await seen.chat.locator(".agent strong").first.inner_text() == "look"
    assert await seen.faults() == []
    await seen.picture("task")


async def _parts(seen: Studio, folder: Path) -> None:
    """One of two changes is left out, and put back, and left out again."""
    await seen.say("Task PARTS")
    question = await seen.question("Apply this edit to a.txt?")
    await seen.page.locator(".tab", has_text="a.txt (proposed by Treadle)").wait_for()
    badge = seen.page.locator(".activitybar .badge:visible", has_text="1").first
    await badge.wait_for()
    await seen.page.locator(".statusbar-item", has_text="Treadle asks (1)").wait_for()
    boxes = question.locator("input[type=checkbox]")
    assert await boxes.count() == 2
    await seen.picture("diff before approval")
    for _ in range(3):
        await seen.chat.locator(".question input[type=checkbox]").first.click()
        await asyncio.sleep(1)
    assert [await boxes.nth(number).is_checked() for number in (0, 1)] == [False, True]
    assert await seen.faults() == []
    await seen.picture("one change left out")
    await seen.answer("Apply this edit", "Yes, with your change")
    await seen.shown("Changed in part.")
    await seen.idle()
    assert (folder / "a.txt").read_text() == LINES.replace("line 20\n", "line twenty\n")
    await seen.page.locator(".tab", has_text="proposed by Treadle").wait_for(state="detached")


async def _by_hand(seen: Studio, folder: Path) -> None:
    """The right side of the diff editor is edited, and the change is applied from its title bar."""
    await seen.say("Task HAND")
    await seen.question("Create b.txt?")
    right = seen.page.locator(".editor.modified .view-lines").first
    await right.wait_for()
    await right.click()
    await seen.page.keyboard.press("Control+End")
    await seen.page.keyboard.type("by hand\n")
    await seen.chat.locator(".question", has_text="You edited this change.").wait_for()
    await seen.picture("edited by hand")
    await seen.page.locator(".editor-actions [aria-label^='Apply This Change']").first.click()
    await seen.shown("Written by hand.")
    await seen.idle()
    assert (folder / "b.txt").read_text() == "one\ntwo\nby hand\n"


async def _denied(seen: Studio, folder: Path) -> None:
    await seen.say("Task DENY")
    question = await seen.question("Create no.txt?")
    await question.locator("input[type=text]").fill("Not in this folder.")
    await question.get_by_role("button", name="No", exact=True).click()
    await seen.shown("I leave it.")
    await seen.idle()
    assert not (folder / "no.txt").exists()
    assert "Not in this folder." in sent(seen.server)[-1]


async def _typed(seen: Studio, folder: Path) -> None:
    """What is typed and not saved is what the model reads, and it stays."""
    await seen.open("calc.py")
    await seen.page.locator(".editor-instance .view-lines").first.click()
    await seen.page.keyboard.press("Control+Home")
    await seen.page.keyboard.type("# typed here\n")
    await seen.say("Task TYPED")
    await seen.answer("Apply this edit to calc.py?", "Yes")
    await seen.shown("Both are in it.")
    await seen.idle()
    assert any("# typed here" in request for request in sent(seen.server))
    assert (folder / "calc.py").read_text() == "# typed here\ndef add(a, b):\n    return a + b\n"


async def _stopped(seen: Studio) -> None:
    """A turn is stopped in the middle of a command, which ends, too."""
    await seen.say("Task WAIT")
    async with asyncio.timeout(LONG):
        while not _sleeping():
            yes = seen.chat.locator(".question").get_by_role("button", name="Yes", exact=True)
            if await yes.count():
                await yes.first.click()
            await asyncio.sleep(0.2)
    await seen.picture("a command runs")
    await seen.chat.click("#stop")
    await seen.idle()
    async with asyncio.timeout(LONG):
        while _sleeping():
            await asyncio.sleep(0.1)


def _sleeping() -> bool:
    return any(b"sleep\x00300" in _words(process) for process in Path("/proc").glob("[0-9]*"))


def _words(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


async def _back(seen: Studio, folder: Path) -> None:
    """The files go back to the first checkpoint, after a yes, and forth again."""
    header = seen.page.locator(".pane-header", has_text="Checkpoints")
    if await header.get_attribute("aria-expanded") == "false":
        await header.click()
    rows = seen.page.locator(".pane", has=header).locator(".monaco-list-row")
    await rows.first.wait_for()
    first = rows.filter(has_text="1. Before changes")
    await first.scroll_into_view_if_needed()
    await seen.picture("checkpoints")
    await first.hover()
    await first.locator("[aria-label^='Restore Files']").click()
    dialog = seen.page.locator(".monaco-dialog-box")
    await dialog.get_by_text("write", exact=False).first.wait_for()
    await seen.picture("restore")
    await dialog.get_by_role("button", name="Restore Files").click()
    async with asyncio.timeout(LONG):
        while (folder / "a.txt").read_text() != LINES or (folder / "b.txt").exists():
            await asyncio.sleep(0.1)
    await seen.page.locator(".notification-list-item").get_by_role("button", name="Undo").first.click()
    async with asyncio.timeout(LONG):
        while not (folder / "b.txt").exists():
            await asyncio.sleep(0.1)
    assert (folder / "a.txt").read_text() == LINES.replace("line 20\n", "line twenty\n")
    await header.click()


async def _suggested(seen: Studio) -> None:
    """Commands and files are suggested; what is selected goes along."""
    await seen.chat.fill("#text", "/")
    await seen.chat.locator("#menu [role=option]", has_text="/compact").wait_for()
    assert await seen.faults() == []
    await seen.picture("commands")
    await seen.chat.fill("#text", "see @cal")
    await seen.chat.locator("#menu [role=option]", has_text="calc.py").wait_for()
    await seen.chat.press("#text", "Tab")
    assert await seen.chat.input_value("#text") == "see @calc.py "
    await seen.open("a.txt")
    await seen.page.locator(".editor-instance .view-lines").first.click()
    await seen.page.keyboard.press("Control+Home")
    await seen.page.keyboard.press("Shift+ArrowDown")
    await seen.page.keyboard.press("Control+Alt+T")
    await seen.chat.locator("#attached .chip", has_text="a.txt:1").wait_for()
    await seen.say("Task PLAN")
    await seen.shown("So far.")
    await seen.idle()
    assert await seen.chat.locator("#plan summary").inner_text() == "Plan: 1 of 2 done"
    assert "a.txt:1" in sent(seen.server)[-1]
    await seen.picture("plan")


async def _sessions(seen: Studio) -> None:
    """A new session is begun, the first one is shown again, and its mode changed."""
    await seen.command("Treadle: New Session")
    await seen.chat.locator("#log .user").first.wait_for(state="detached")
    picker = seen.chat.locator("#sessions")
    assert await picker.locator("option").count() == 2
    await picker.select_option(index=0)
    await seen.shown("The file has 30 lines.")
    await seen.chat.get_by_label("Mode", exact=True).select_option("edits")
    (agent,) = seen.agents()
    await seen.command("Treadle: Restart the Agent")
    async with asyncio.timeout(LONG):
        while agent in seen.agents() or not seen.agents():
            await asyncio.sleep(0.1)
    await seen.shown("mode edits of this session")  # what was trusted for that session only is not used any more
    assert await seen.chat.get_by_label("Mode", exact=True).input_value() == "ask"
    await seen.picture("sessions")


async def _committed(seen: Studio) -> None:
    await seen.command("Treadle: Write a Commit Message")
    await seen.page.locator(".activitybar [aria-label^='Source Control']").first.click()
    await seen.page.locator(".scm-editor", has_text="Add what is new").first.wait_for()
    await seen.picture("commit message")


async def test_a_change_of_two_files_is_in_one_diff_editor_which_goes_with_the_answer(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    async with studio(tmp_path, Tasks(TURNS, model="gpt-5-scripted")) as seen:  # a model that edits by patches
        tab = seen.page.locator(".tab", has_text="2 files (proposed by Treadle)")
        await seen.say("Task NO_PATCH")
        await seen.answer("Do you trust", "Yes, for this session only")
        for task, answer in (("NO_PATCH", "No"), ("PATCH", "Yes")):
            if task == "PATCH":
                await seen.say("Task PATCH")
            await seen.question("calc.py")
            await tab.wait_for()
            await seen.picture("two files")
            assert await seen.faults() == []
            await seen.answer("calc.py", answer)
            await seen.shown(f"{task} is over.")
            await seen.idle()
            await tab.wait_for(state="detached")
            assert ("b, a" in (folder / "calc.py").read_text()) is (answer == "Yes")
            assert ("line five" in (folder / "a.txt").read_text()) is (answer == "Yes")


@pytest.mark.parametrize("theme", ["Default Light Modern", "Default High Contrast"])
async def test_the_agent_is_killed_while_it_asks_and_the_session_goes_on(tmp_path: Path, theme: str) -> None:
    folder = repository(tmp_path)
    async with studio(tmp_path, Tasks(TURNS), {"workbench.colorTheme": theme}) as seen:
        await seen.say("Task KILL")
        await seen.answer("Do you trust", "Yes, for this session only")
        await seen.question("Create kill.txt?")
        assert await seen.faults() == []
        await seen.picture("asked")
        (agent,) = seen.agents()
        os.kill(agent, signal.SIGKILL)
        await seen.shown("The agent is not running.")
        assert await seen.chat.locator(".question").count() == 0
        assert await seen.faults() == []
        await seen.picture("killed")
        await seen.chat.get_by_role("button", name="Start it again").last.click()
        await seen.chat.locator("#log .problem").first.wait_for(state="detached")
        await seen.chat.locator("#log .user", has_text="Task KILL").wait_for()
        await seen.idle()
        assert not (folder / "kill.txt").exists()
        await seen.say("Go on with Task KILL")
        async with asyncio.timeout(LONG):
            while not await seen.chat.locator("#log", has_text="Gone on.").count():
                trust = seen.chat.locator(".question").get_by_role("button", name="Yes, for this session only")
                if await trust.count():
                    await trust.first.click()
                await asyncio.sleep(0.2)
        await seen.idle()
        assert not (folder / "kill.txt").exists()
        said = await seen.chat.locator("#log .user").all_text_contents()
        assert said == ["You: Task KILL", "You: Go on with Task KILL"]
        await seen.picture("gone on")
