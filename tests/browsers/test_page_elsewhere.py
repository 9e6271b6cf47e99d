"""The page in Firefox and WebKit: a task from the first click to its review, and every screen."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.browsers.webdriver import Driven, firefox, webkit
from tests.e2e.faults.driving import make, run
from tests.e2e.running import model
from tests.needed import needs
from tests.web.driving import Served, serving
from treadle.providers.scripted.script import SayText, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

BROWSERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Driven]]] = {"firefox": firefox, "webkit": webkit}
TURNS = (
    Turn(items=(SayText(text="I write **it**."), make("write_to_file", path="a.py", content="print(1)\nprint(2)\n"))),
    Turn(items=(SayText(text="I push."), Wait(seconds=1.0), run("git push origin main"))),
    Turn(items=(make("attempt_completion", result="It is pushed."),)),
    Turn(items=(SayText(text="Slow"), Wait(seconds=600.0))),
)
SCREENS = (
    "/",
    "/sessions",
    "/inbox",
    "/usage",
    "/health",
    "/fleet",
    "/settings",
    "/settings/models",
    "/settings/policy",
)
OF_SESSION = ("", "/review", "/timeline", "/context")
READING = 2.0
"""Seconds that a person takes to read a question; a card takes no answer from who could not have read it."""
NARROW = 390


@pytest.fixture(params=[pytest.param("firefox", marks=needs("firefox")), pytest.param("webkit", marks=needs("webkit"))])
async def page(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Driven]:
    async with BROWSERS[request.param](tmp_path / request.param) as driven:
        yield driven


async def _answered(page: Driven, about: str, name: str) -> None:
    await page.has(".question", about)
    await asyncio.sleep(READING)
    await page.click(".question button", name)


async def _every_screen(page: Driven, served: Served, session: str) -> None:
    for path in (*SCREENS, *(f"/s/{session}{view}" for view in OF_SESSION)):
        await page.open(served.address + path)
        await page.has("header.head h1, header.head .title")
        sideways = await page.js("return document.documentElement.scrollWidth - innerWidth")
        assert sideways <= 0, (path, sideways)
        assert await page.js("return document.getElementById('broken') === null"), path


async def test_a_task_from_the_first_click_to_its_review(page: Driven, tmp_path: Path) -> None:
    async with (
        ScriptedServer(Script(turns=TURNS)) as server,
        serving(tmp_path / "home", tmp_path / "ws", *model(server)) as served,
    ):
        await page.width(1_280)
        await page.open(served.link)
        served.at = str(await page.js("return location.pathname")).rstrip("/")
        await page.type("#start textarea", "Write and push.")
        await page.click("#start button[type=submit]")
        await _answered(page, "a.py", "Allow once")
        await page.has(".item.prose strong", "it")
        await page.becomes("document.title.startsWith('(1) Needs you')")
        await page.picture("question")
        await _answered(page, "git push", "Allow once")
        await page.has(".item.end", "Done")
        session = str(await page.js("return location.pathname.split('/s/')[1]"))

        await page.type("#text", "\ue009k")
        await page.has("dialog[open] input")
        await page.type("dialog[open] input", "timeline\ue00c")
        await page.becomes("!document.querySelector('dialog[open]')")
        await page.open(f"{served.address}/s/{session}/review")
        await page.click("[data-do=accept]")
        await page.has("[data-do=accept][aria-pressed=true]")
        await page.open(f"{served.address}/s/{session}/review")
        await page.has("[data-do=accept][aria-pressed=true]")
        await page.picture("review")

        await _every_screen(page, served, session)
        await page.width(NARROW)
        await _every_screen(page, served, session)
        await page.open(f"{served.address}/s/{session}")
        await page.picture("narrow")
        await page.width(1_280)
        await page.open(f"{served.address}/s/{session}")
        await page.type("#text", "Once more.\ue007")
        await page.has(".item.prose", "Slow")
        served.process.kill()
        await page.has("#lost", "No connection since")
        await page.has("#now", "Was writing")
        await page.picture("lost")
