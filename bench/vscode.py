"""The extension in real VS Code: how long it takes to be activated, and the memory of its host with and without it."""

import asyncio
import re
import statistics
import tempfile
from contextlib import suppress
from pathlib import Path

from playwright.async_api import Page
from tests.e2e.faults.driving import make
from tests.editors.scripted_tasks import Tasks, turn
from tests.editors.vscode_driving import LONG, Studio, command_in, open_chat, window
from tests.needed import missing

TURNS = {"LOOK": [turn("I look.", make("read_file", path="a.txt")), turn("The file has one line.")]}
_SETTLED = 15.0
"""Seconds between two looks at a host, which others keep busy, too: it has settled where it holds as much as before."""

_SAME = 0.5
"""Megabytes that make no difference."""

_SAMPLES = 7


async def _host(place: Path) -> int:
    """The process in which the extensions of a window run, once it runs."""
    async with asyncio.timeout(LONG):
        while True:
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    words, environment = ((process / name).read_bytes() for name in ("cmdline", "environ"))
                    if b"--type=extensionHost" in words and f"HOME={place}".encode() in environment:
                        return int(process.name)
            await asyncio.sleep(0.2)


def _megabytes(process: int) -> float:
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    return sum(int(found) for found in re.findall(r"^Private_\w+:\s+(\d+) kB", rollup, re.MULTILINE)) / 1000


async def _settled(process: int) -> float:
    """The memory that it holds once that stays the same."""
    before, now = 0.0, _megabytes(process)
    async with asyncio.timeout(LONG * 4):
        while abs(now - before) > _SAME:
            await asyncio.sleep(_SETTLED)
            before, now = now, _megabytes(process)
    samples = []
    for _ in range(_SAMPLES):
        samples.append(_megabytes(process))
        await asyncio.sleep(1)
    return statistics.median(samples)


async def _activated(page: Page) -> str:
    """What VS Code says of the time that the extension took."""
    await command_in(page, "Developer: Show Running Extensions")
    found = []
    for name in ("Treadle", "Git"):
        row = page.locator(".runtime-extensions-editor .extension", has_text=name).first
        await row.wait_for(timeout=LONG * 1000)
        found.append(await row.locator(".activation-time").inner_text())
    return f"{found[0]}   (budget 200 ms; Git here: {found[1]})"


async def _measure(place: Path, *, extension: bool) -> tuple[float, str]:
    (place / "ws").mkdir(parents=True)
    (place / "ws" / "a.txt").write_text("line\n")
    async with window(place, Tasks(TURNS), extension=extension) as (page, server):
        activated = ""
        if extension:
            # VS Code counts what it loads of others in between: the extension is used when they are loaded.
            await _settled(await _host(place))
            seen = Studio(page, place / "ws", place / "home", server, await open_chat(page))
            await seen.say("Task LOOK")
            await seen.shown("The file has one line.")
            await seen.idle()
            activated = await _activated(page)
        return await _settled(await _host(place)), activated


async def _figures() -> None:
    with tempfile.TemporaryDirectory() as folder:
        empty, _ = await _measure(Path(folder) / "empty", extension=False)
        used, activated = await _measure(Path(folder) / "used", extension=True)
    print(f"activation                     {activated}")
    print(f"memory of the extension host   {used:.1f} MB, {used - empty:.1f} MB more than without   (budget 30 MB)")


def main() -> None:
    """Print the figures, after a task was done in the chat."""
    if why := missing("code-server") or missing("browser"):
        print(f"not measured: {why}")
    else:
        asyncio.run(_figures())


if __name__ == "__main__":
    main()
