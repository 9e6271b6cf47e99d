"""Firefox and WebKit, driven by the commands of WebDriver (W3C): over HTTP, or over the socket of Firefox."""

import asyncio
import base64
import json
import os
import shutil
import socket
import urllib.request
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

PATIENCE = 60.0
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_GTK_BROWSERS = ("/usr/lib/*/webkit2gtk-4.1/MiniBrowser", "/usr/lib/*/webkit2gtk-4.0/MiniBrowser")


class Commands(Protocol):
    """Sends one command of WebDriver, and gives its value. Raises `RuntimeError`."""

    async def __call__(self, name: str, **parameters: Any) -> Any: ...


@dataclass
class Marionette:
    """The socket of Firefox: messages as JSON, each behind its length."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    sent: int = 0

    async def __call__(self, name: str, **parameters: Any) -> Any:
        self.sent += 1
        message = json.dumps([0, self.sent, f"WebDriver:{name}", parameters]).encode()
        self.writer.write(b"%d:%b" % (len(message), message))
        await self.writer.drain()
        async with asyncio.timeout(PATIENCE):
            while True:
                answer = await self.read()
                if answer[:2] == [1, self.sent]:
                    break
        if answer[2]:
            raise RuntimeError(answer[2]["message"])
        found = answer[3]
        return found["value"] if isinstance(found, dict) and set(found) == {"value"} else found

    async def read(self) -> Any:
        """The next message."""
        size = await self.reader.readuntil(b":")
        return json.loads(await self.reader.readexactly(int(size[:-1])))


_PATHS = {
    "NewSession": "",
    "Navigate": "/url",
    "SetWindowRect": "/window/rect",
    "ExecuteScript": "/execute/sync",
    "FindElement": "/element",
    "ElementClick": "/element/{id}/click",
    "ElementSendKeys": "/element/{id}/value",
    "TakeScreenshot": "/screenshot",
}


@dataclass
class Http:
    """The server of WebDriver that comes with WebKitGTK."""

    address: str
    session: str = ""

    async def __call__(self, name: str, **parameters: Any) -> Any:
        path = f"/session{self.session}{_PATHS[name]}".format(**parameters)
        body = None if name == "TakeScreenshot" else json.dumps(parameters).encode()
        request = urllib.request.Request(self.address + path, body, {"content-type": "application/json"})
        return (await asyncio.to_thread(self._send, request))["value"]

    def _send(self, request: urllib.request.Request) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = json.load(error)["value"]
            raise RuntimeError(f"{said['error']}: {said['message']}") from None


@dataclass
class Driven:
    """A browser with one window."""

    commands: Commands
    pictures: Path

    async def js(self, script: str, *arguments: Any) -> Any:
        """What the body of a function gives in the page."""
        return await self.commands("ExecuteScript", script=script, args=list(arguments))

    async def open(self, address: str) -> None:
        """Go to a page, and wait until its modules have run."""
        await self.commands("Navigate", url=address)
        await self.becomes("document.documentElement.dataset.ready === '1'")

    async def becomes(self, expression: str) -> None:
        """Wait until something is true of the page; what it shows is told where that never is."""
        try:
            async with asyncio.timeout(PATIENCE):
                while await self.js(f"return Boolean({expression})") is not True:
                    await asyncio.sleep(0.1)
        except TimeoutError:
            await self.picture("never")
            raise AssertionError(
                f"{expression} is never so: {await self.js('return document.body.innerText')}"
            ) from None

    async def has(self, selector: str, text: str = "") -> None:
        """Wait until something is there that can be seen and contains a text."""
        await self.becomes(_found(selector, text))

    async def click(self, selector: str, text: str = "") -> None:
        """Click on something as a person does, once it is there."""
        async with asyncio.timeout(PATIENCE):
            while True:
                await self.has(selector, text)
                await self.js(f"({_found(selector, text)})?.setAttribute('data-driven', '')")
                with suppress(RuntimeError):  # it moves, or is drawn anew
                    await self.commands("ElementClick", id=await self._element("[data-driven]"))
                    break
                await asyncio.sleep(0.1)
        await self.js("document.querySelector('[data-driven]')?.removeAttribute('data-driven')")

    async def type(self, selector: str, keys: str) -> None:
        """Type into something, key by key."""
        await self.has(selector)
        await self.commands("ElementSendKeys", id=await self._element(selector), text=keys)

    async def _element(self, selector: str) -> str:
        found = await self.commands("FindElement", using="css selector", value=selector)
        return str(found[_ELEMENT])

    async def width(self, pixels: int) -> None:
        """Make the window as wide as that, and 800 pixels high."""
        await self.commands("SetWindowRect", width=pixels, height=800)

    async def picture(self, name: str) -> None:
        """Keep what the window shows, to be looked at; WebKit does not always give it."""
        self.pictures.mkdir(parents=True, exist_ok=True)
        with suppress(RuntimeError):
            (self.pictures / f"{name}.png").write_bytes(
                base64.b64decode(await self.commands("TakeScreenshot", full=False))
            )


def _found(selector: str, text: str) -> str:
    chosen = f"one.offsetHeight && one.textContent.includes({json.dumps(text)})"
    return f"[...document.querySelectorAll({json.dumps(selector)})].find((one) => {chosen})"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@asynccontextmanager
async def _running(*line: str, **variables: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *line, stdout=DEVNULL, stderr=DEVNULL, env={**os.environ, **variables}, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answers(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)


@asynccontextmanager
async def firefox(folder: Path) -> AsyncIterator[Driven]:
    """Firefox without a window on the screen, with a profile of its own."""
    port = _free_port()
    profile = folder / "profile"
    profile.mkdir(parents=True)
    (profile / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
    name = "firefox-esr" if shutil.which("firefox-esr") else "firefox"
    line = (name, "--headless", "--marionette", "--no-remote", "--profile", str(profile), "about:blank")
    async with _running(*line, HOME=str(folder)):
        reader, writer = await _answers(port)
        commands = Marionette(reader, writer)
        await commands.read()
        await commands("NewSession", capabilities={})
        yield Driven(commands, folder / "pictures")
        writer.close()


@asynccontextmanager
async def webkit(folder: Path) -> AsyncIterator[Driven]:
    """The engine of Safari, as WebKitGTK has it, before a screen that nobody sees."""
    port, screen = _free_port(), f":{90 + os.getpid() % 1_000}"
    binary = next(str(path) for pattern in _GTK_BROWSERS for path in Path("/").glob(pattern.lstrip("/")))
    folder.mkdir(parents=True, exist_ok=True)
    at = {"DISPLAY": screen, "HOME": str(folder), "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
    wanted = {"webkitgtk:browserOptions": {"binary": binary, "args": ["--automation"]}}
    async with (
        _running("Xvfb", screen, "-screen", "0", "1600x1000x24"),
        _running("WebKitWebDriver", f"--port={port}", **at),
    ):
        (await _answers(port))[1].close()
        commands = Http(f"http://127.0.0.1:{port}")
        begun = await commands("NewSession", capabilities={"alwaysMatch": wanted})
        commands.session = f"/{begun['sessionId']}"
        yield Driven(commands, folder / "pictures")
