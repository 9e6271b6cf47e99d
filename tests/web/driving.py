"""The page in a real browser: `treadle web` as its own process, a scripted model behind it, and Chromium before it."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Error, Page, async_playwright

from tests.e2e.process import Program
from tests.e2e.running import model
from tests.needed import PEERS, chromium, needs
from tests.ready import treadle
from treadle.providers.scripted.script import Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

CHROMIUM = chromium()
needs_chromium = needs("chromium")
in_shared_browser = [
    needs_chromium,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("shared_browser"),
]
"""Marks tests whose `browser` is one for all of a run; each has contexts of its own in it."""

_shared: list[Browser] = []

PATIENCE = 90.0
"""Seconds until a test gives up waiting for something."""


@dataclass
class Served:
    """A running `treadle web`: its address, and the link that lets a browser in."""

    process: asyncio.subprocess.Process
    program: Program
    link: str
    folder: Path

    at: str = ""
    """The path below which the page is, once a browser was let in."""

    @property
    def origin(self) -> str:
        return self.link.partition("/#")[0]

    @property
    def address(self) -> str:
        return self.origin + self.at

    async def end(self) -> tuple[int, str]:
        """Ask it to end; gives its exit code and what it wrote to standard error."""
        if self.process.returncode is None:
            self.process.terminate()
        async with asyncio.timeout(PATIENCE):
            _, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, err.decode()


@asynccontextmanager
async def serving(home: Path, folder: Path, *flags: str) -> AsyncIterator[Served]:
    """Start `treadle web` in a folder; it is ended with the block."""
    folder.mkdir(exist_ok=True)
    program = Program(home)
    port = () if "--port" in flags else ("--port", "0")
    process = await program.start("web", "--no-open", "-C", str(folder), *port, *flags, command=treadle())
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode().strip()
        served = Served(process, program, line, folder)
        assert "/#token=" in line, (line, await served.end())
        yield served
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(PATIENCE):
                    await process.communicate()
            except TimeoutError:
                process.kill()
                await process.communicate()


@dataclass
class Seen:
    """A browser, and what its pages complained of."""

    browser: Browser
    contexts: list[BrowserContext] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    async def page(self, served: Served, path: str = "/", **context: Any) -> Page:
        """Open the page as a new visitor, let in by the link, at a path."""
        made = await self.browser.new_context(**context)
        made.set_default_timeout(PATIENCE * 1000)
        self.contexts.append(made)
        page = await made.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        await page.goto(served.link)
        await page.wait_for_selector("header.head")
        served.at = page.url.removeprefix(served.origin).rstrip("/")
        if path != "/":
            await page.goto(served.address + path)
        return page

    async def close(self) -> None:
        """Close what was opened in it."""
        for context in self.contexts:
            await context.close()


@asynccontextmanager
async def _chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield launched
        finally:
            await launched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_browser() -> AsyncIterator[None]:
    """Start Chromium once for all tests that share it."""
    async with _chromium() as launched:
        _shared.append(launched)
        yield
        _shared.clear()


@asynccontextmanager
async def browser(*, own: bool = False) -> AsyncIterator[Seen]:
    """Chromium, of its own or the one that is shared; what its pages complained of makes the test fail at the end."""
    async with AsyncExitStack() as stack:
        seen = Seen(await stack.enter_async_context(_chromium()) if own else _shared[0])
        stack.push_async_callback(seen.close)
        try:
            yield seen
        except Exception as error:
            error.add_note(f"The pages complained of: {seen.complaints}")
            raise
        assert not seen.complaints, seen.complaints


@asynccontextmanager
async def page_with_model(
    tmp_path: Path, turns: Sequence[Turn], *flags: str, own: bool = False
) -> AsyncIterator[tuple[Served, Seen]]:
    """The page with a scripted model behind it and a browser before it."""
    async with (
        ScriptedServer(Script(turns=tuple(turns))) as server,
        serving(tmp_path / "home", tmp_path / "ws", *model(server), *flags) as served,
        browser(own=own) as seen,
    ):
        yield served, seen


async def start_session(page: Page, text: str) -> str:
    """Start a session from the list, and wait for its page; gives its id."""
    await page.fill("#start textarea", text)
    await page.click("#start button[type=submit]")
    await page.wait_for_url("**/s/*")
    return page.url.rpartition("/s/")[2]


async def close_session(page: Page) -> None:
    """Close a session from the menu of its bar."""
    await page.click("#more > summary")
    await page.click("#more [data-do=close]")


async def read_questions(page: Page) -> None:
    """Let the questions that are there count as read: a card takes no answer from who could not have read it."""
    await page.wait_for_timeout(150)  # until where they are is known, from which they move
    await page.evaluate(
        "for (const one of document.querySelectorAll('.question')) one.dataset.came = one.dataset.moved = -1e6"
    )


async def require_accessible(page: Page) -> None:
    """Have axe-core look at a page that passes over its policy, where axe-core is installed."""
    axe = PEERS / "node_modules" / "axe-core" / "axe.min.js"
    if axe.exists():
        await page.evaluate(axe.read_text())
        found = await page.evaluate(
            "axe.run().then((result) => result.violations.map((one) => `${one.id} ${one.nodes[0].html}`))"
        )
        assert found == [], found  # pytest writes no such report for a helper


async def becomes(page: Page, expression: str, arg: Any = None) -> None:
    """Wait until something is true of a page, whose policy lets nothing be evaluated in it but from outside."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(Error):  # it goes to another page just now
                if await page.evaluate(expression, arg):
                    return
            await asyncio.sleep(0.02)


def curl(address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask for something as no browser would."""
    return subprocess.run(
        ["curl", "-s", "-i", "--max-time", "20", *arguments, address], capture_output=True, text=True, check=False
    )
