"""A session on the page in a real browser: what was seen as it happened is what is seen whenever it is loaded."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from playwright.async_api import Page

from tests.e2e.faults.driving import make, run
from tests.e2e.pseudo_terminal import on_terminal
from tests.person import CTRL_D
from tests.web.driving import (
    PATIENCE,
    Served,
    becomes,
    close_session,
    needs_chromium,
    page_with_model,
    read_questions,
    serving,
    start_session,
)
from treadle.providers.scripted.script import Expectation, Pace, SayText, SayThinking, Texts, Turn, Wait

pytestmark = needs_chromium

SLOW = Pace(chunk=6, delay=0.01)
TURNS = (
    Turn(
        items=(
            SayThinking(text="Two files.\n\nFirst one, then the other."),
            SayText(text="I read **one** file.\n\n- and look\n"),
            make("read_file", path="a.py"),
            SayText(text="Then the other one, which takes a while to be named:\n\n```py\nprint(1)\n\nprint(2)\n```\n"),
            make("read_file", path="missing.py"),
            SayText(text="Now I know."),
        ),
        pace=SLOW,
    ),
    Turn(items=(run("cat a.py"), run("cat missing.py"))),
    Turn(items=(SayText(text="It has to change."), make("write_to_file", path="b.txt", content="b\n"))),
    Turn(items=(make("write_to_file", path="c.txt", content="c\n"),)),
    Turn(items=(run("git push origin main"),)),
    Turn(items=(make("ask_followup_question", question="Which colour?", options=["red", "green"]),)),
    Turn(items=(make("attempt_completion", result="All of it is **done**."),)),
    Turn(items=(SayText(text="I begin anew.\n\nAnd go on"), Wait(seconds=PATIENCE)), pace=SLOW),
    Turn(items=(make("attempt_completion", result="Something else was done."),)),
    Turn(
        items=(make("attempt_completion", result="And once more."),),
        when=Expectation(last_user=Texts(contains=("Once more.",))),
    ),
)

LEFT = (
    *("item said left", "item prose left", "item end left"),
    *("item said left", "item prose left", "item end left"),
)
WORK = (
    "item said: You said: Work.",
    "item thought: ThoughtTwo files. First one, then the other.",
    "item prose: I read one file.",
    "item prose: and look",
    "item call ok: Read a.py 1 line 1 | a = 1 Allowed: ",
    "item prose: Then the other one, which takes a while to be named:",
    "item prose: pyCopyprint(1) print(2)",
    "item call failed: Read missing.py missing.py does not exist. ",
    "item prose: Now I know.",
    "item call ok: Run cat a.py a = 1",
    "item call failed: Run cat missing.py exit 1 cat: missing.py",
    "item prose: It has to change.",
    "item call ok: Create b.txt +1−0 you allowed it",
    "item call rejected: Create c.txt +1−0 you said no: not <c> 1+c",
    "item call failed: Run git push origin main exit 128 you allowed it in terminal 2",
    "item prose: Which colour?",
    "item said: You said: green",
    "item prose: All of it is done.",
    "item end: Done · 1 file +1−0 · 7 steps · ",
)

ITEMS = r"""() => [...document.querySelectorAll("#items > li.item")].filter((item) => !item.hidden)
  .map((item) => `${item.className}: ${item.textContent.replace(/\s+/g, " ").trim()}`)"""
"""What stands on a page: the kind of each item, whether it left, and its words."""


TIME = re.compile(r"( for| ·)? \d+(\.\d)? s(?![a-z])")
"""How long something took, which stands only where that is long enough to be said."""


async def seen(page: Page) -> Sequence[str]:
    found: list[str] = await page.evaluate(ITEMS)
    return found


async def say(page: Page, text: str) -> None:
    await page.fill("#text", text)
    await page.press("#text", "Enter")


async def answer(page: Page, about: str, act: str, *, comment: str = "") -> None:
    """Answer a question on the page."""
    await page.wait_for_selector(f".question:has-text('{about}')", timeout=PATIENCE * 1000)
    await read_questions(page)
    await page.click(f".question button[data-act={act}]")
    if act == "reject":
        await page.fill(".question input[name=comment]", comment)
        await page.keyboard.press("Enter")


async def work(page: Page, served: Served) -> str:
    """Let it read, run, ask here and in a terminal, be stopped and be taken back; gives its id."""
    (served.folder / "a.py").write_text("a = 1\n")
    session = await start_session(page, "Work.")
    await answer(page, "b.txt", "allow")
    await answer(page, "c.txt", "reject", comment="not <c>")
    await page.wait_for_selector(".question:has-text('git push')", timeout=PATIENCE * 1000)
    async with on_terminal(served.program, "--attach", session) as terminal:
        await terminal.until_shown("Attached as", "git push", "❯ Yes")
        await terminal.confirm()
        await page.wait_for_selector(".question:has-text('Which colour?')", timeout=PATIENCE * 1000)
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0
    await page.wait_for_selector(".question button:has-text('green')", timeout=PATIENCE * 1000)  # in its place
    await read_questions(page)
    await page.click(".question button:has-text('green')")
    await page.wait_for_selector(".item.end", timeout=PATIENCE * 1000)
    return session


async def is_seen(page: Page, items: Sequence[str]) -> None:
    """Wait until a page shows these items, and nothing else."""
    await page.wait_for_selector("html[data-ready]", timeout=PATIENCE * 1000)
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while await seen(page) != items:
                await asyncio.sleep(0.05)
    assert await seen(page) == items


async def loaded(page: Page) -> Sequence[str]:
    """Load a page once more when nothing works any more: it shows what it showed. Gives that."""
    await becomes(page, "!document.body.classList.contains('working')")
    live = await seen(page)
    await page.reload()
    await is_seen(page, live)
    return live


async def test_what_was_seen_live_is_seen_after_a_reload_elsewhere_and_when_the_session_was_closed(
    tmp_path: Path,
) -> None:
    async with page_with_model(tmp_path, TURNS, "--trust", own=True) as (served, browser):
        page = await browser.page(served)
        session = await work(page, served)
        live = await loaded(page)
        for item, begins in zip(live, WORK, strict=True):
            assert TIME.sub("", item).startswith(begins)
        await say(page, "Begin anew.")
        await page.wait_for_selector(".item:has-text('And go on')", timeout=PATIENCE * 1000)
        async with serving(tmp_path / "home", tmp_path / "ws") as elsewhere:
            other = await browser.page(elsewhere, f"/s/{session}")
            await other.wait_for_selector(".item:has-text('And go on')", timeout=PATIENCE * 1000)
            await page.click("#stop")
            await page.wait_for_selector(".item.end:has-text('Stopped')", timeout=PATIENCE * 1000)
            live = await loaded(page)
            await is_seen(other, live)
            await say(page, "Something else.")
            await page.wait_for_selector(".item.prose:has-text('Something else was done.')", timeout=PATIENCE * 1000)
            await becomes(page, "!document.body.classList.contains('working')")
            await say(page, "/rewind 2")
            await page.wait_for_selector(".item.left:has-text('Something else was done.')", timeout=PATIENCE * 1000)
            await page.wait_for_selector(".item.note:has-text('back at an earlier')", timeout=PATIENCE * 1000)
            live = await loaded(page)
            assert [item.partition(":")[0] for item in live[len(WORK) :]] == [*LEFT, "item note"]
            await is_seen(other, live)
            await say(page, "Once more.")
            await page.wait_for_selector(".item.prose:has-text('And once more.')", timeout=PATIENCE * 1000)
            live = await loaded(page)
            await is_seen(other, live)
            await close_session(page)
            await page.wait_for_selector("#continue", timeout=PATIENCE * 1000)
            await is_seen(page, live)
            await other.wait_for_selector("#continue", timeout=PATIENCE * 1000)
            await is_seen(other, live)
            await other.close()
        await page.click("#continue")
        await becomes(page, "!document.getElementById('continue') && !!document.getElementById('text')")
        await is_seen(page, live)  # with the model that it had
