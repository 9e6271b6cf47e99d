"""A shell of the person's own on the page: off until it is switched on, and seen by no model."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.protocol.errors import ConfigError, SessionError
from treadle.providers.scripted.script import SayText, Turn
from treadle.web.own_shells import OwnShells

PATIENCE = 30.0


async def read_until(pieces: AsyncIterator[bytes], wanted: bytes) -> bytes:
    heard = b""
    async with asyncio.timeout(PATIENCE):
        async for piece in pieces:
            heard += piece
            if wanted in heard:
                return heard
    raise AssertionError(heard)


async def test_a_shell_is_there_only_while_they_are_switched_on_and_its_processes_end_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    shells = OwnShells()
    with pytest.raises(ConfigError, match="switched off"):
        await shells.open("s", str(tmp_path), 80, 24)
    shells.on = True
    shell = await shells.open("s", str(tmp_path), 80, 24)
    shell.type("stty size; tty; printf '\\033[6n'; pwd; exec sh -c 'echo job=$$.; exec sleep 600'\n")
    heard = await read_until(shell.output(), b".\r\n")
    assert str(tmp_path).encode() in heard
    assert b"24 80" in heard
    assert b"/dev/" in heard
    job = int(heard.rpartition(b"job=")[2].partition(b".")[0])
    assert await shells.open("s", str(tmp_path), 80, 24) is shell, "one for a session"
    again = await anext(aiter(shell.output()))
    assert again.endswith(heard[-10:])
    assert b"\x1b[6n" in heard
    assert b"\x1b[6n" not in again, "what was asked and answered is not asked once more"
    other = await shells.open("t", str(tmp_path), 80, 24)
    other.type("exit\n")
    await read_until(other.output(), b"exit")
    async with asyncio.timeout(PATIENCE):
        while not other.ended:
            await asyncio.sleep(0.01)
    assert await shells.open("t", str(tmp_path), 80, 24) is not other, "a new one where it has ended"
    await shells.close()
    with pytest.raises(SessionError):
        shells.find("s")
    with pytest.raises(ProcessLookupError):
        os.kill(job, 0)


async def test_a_shell_ends_with_its_process_whatever_it_left_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    shells = OwnShells()
    shells.on = True
    shell = await shells.open("s", str(tmp_path), 80, 24)
    shell.type("sleep 600 &\necho job=$!.; exit\n")
    heard = b""
    async with asyncio.timeout(PATIENCE):
        async for piece in shell.output():
            heard += piece
    job = int(re.findall(rb"job=(\d+)\.", heard)[0])
    os.kill(job, 0)
    assert await shells.open("s", str(tmp_path), 80, 24) is not shell, "Enter begins another one"
    await shells.close()
    with suppress(ProcessLookupError):
        os.kill(job, signal.SIGKILL)


@pytest.mark.usefixtures("shared_browser")
class TestInTheBrowser:
    """The screen as a person sees it."""

    pytestmark = in_shared_browser

    async def test_it_is_typed_into_drawn_and_told_to_the_model_only_by_a_click(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SHELL", "/bin/sh")
        async with page_with_model(tmp_path, [Turn(items=(SayText(text="Hello."),))]) as (served, seen):
            page = await seen.page(served)
            await start_session(page, "Say hello.")
            await page.click("[data-tab=terminal]")
            await page.click("[data-shells=on]")
            await page.focus("#shell textarea")
            await becomes(page, "document.querySelector('.cells .cursor') !== null")
            await page.keyboard.type("printf '\\033[31mr%s\\033[0m 世\\n12345\\b\\bX\\n\\033[2Kab\\033[1Dc\\n' ed\n")
            await becomes(page, "document.querySelector('.cells .f1')?.textContent === 'red'")
            lines = (await page.inner_text(".cells")).split("\n")
            at = next(number for number, line in enumerate(lines) if line.startswith("red 世"))
            assert lines[at + 1 : at + 3] == ["123X5", "ac"]
            await page.keyboard.press("Shift+Tab")
            assert await page.evaluate("document.activeElement.closest('#shell') === null"), "the keyboard gets out"
            await page.evaluate("getSelection().selectAllChildren(document.querySelector('.cells .f1'))")
            await page.click("[data-told]")
            assert await page.input_value("#text") == "```\nred\n```\n"
            await page.click("[data-shells=off]")
            await page.wait_for_selector("[data-shells=on]")
