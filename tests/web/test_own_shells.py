"""A shell of the person's own on the page: off until it is switched on, and seen by no model."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from tests.web.in_process import idle, page_here
from treadle.app.history.keeping_sessions import delete_session, find_session
from treadle.protocol.errors import ConfigError, SessionError
from treadle.providers.scripted.script import SayText, Turn
from treadle.web.own_shells import OwnShells

PATIENCE = 30.0
SHELLS = [one for one in ("/bin/sh", "/bin/bash") if Path(one).exists()]


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


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.fixture
def ignoring() -> Iterator[None]:
    """Ignore, as the page does, that a terminal hangs up."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


async def heard_of(shells: OwnShells, folder: Path, line: str) -> bytes:
    """Type a line into a shell; gives what it prints until it has said that it is over."""
    shell = await shells.open("s", str(folder), 200, 24)
    shell.type(f"{line}\n")
    return await read_until(shell.output(), b"<over>")


@pytest.mark.usefixtures("ignoring")
@pytest.mark.parametrize("shell", SHELLS)
async def test_what_a_shell_runs_ends_with_it_as_with_a_terminal_that_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("SHELL", shell)
    shells = OwnShells()
    shells.on = True
    begun = "sleep 600 & " if shell.endswith("bash") else ""  # others leave it, in a terminal, too
    line = f'{begun}sh -c \'printf "<%d>" $$ $0; printf "<%s>" over; exec sleep 600\' $!'
    jobs = [int(one) for one in re.findall(rb"<(\d+)>", await heard_of(shells, tmp_path, line))]
    assert [job for job in jobs if job and not is_running(job)] == []
    await shells.close()
    async with asyncio.timeout(PATIENCE):
        while any(job and is_running(job) for job in jobs):
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("ignoring")
async def test_a_shell_ignores_no_signal_that_those_of_a_terminal_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    shells = OwnShells()
    shells.on = True
    told = await heard_of(shells, tmp_path, "sed -n '/SigIgn/s/\\t/ /p' /proc/self/status; printf '<%s>' over")
    await shells.close()
    ignored = int(told.partition(b"# SigIgn: ")[2].split()[0], 16)
    assert ignored & 0x7FFFFFFF == 0, "those above are the C library's own"


async def test_the_shell_of_a_session_that_is_deleted_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    hello = Turn(items=(SayText(text="Hello."),))
    async with page_here(tmp_path, monkeypatch, [hello] * 2) as here:
        visit, shells = here.visit(), here.book.shells
        shells.on = True
        for by_the_page in (True, False):
            session_id = (page := await here.start(visit)).session.id
            await idle(page)
            shell = await shells.open(session_id, str(tmp_path), 80, 24)
            await visit.done(f"/s/{session_id}/close")
            if by_the_page:
                await visit.done(f"/s/{session_id}/delete")
                assert shell.ended
            else:
                await asyncio.to_thread(delete_session, find_session(session_id))
                async with asyncio.timeout(PATIENCE):
                    while not shell.ended:
                        await asyncio.sleep(0.05)
            assert shells.sessions == ()


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
            sizes: list[str] = []
            page.on("request", lambda one: sizes.append(one.url) if one.url.endswith("/shell/size") else None)
            await page.route("**/shells", lambda route: route.fulfill(json={}))  # before the shell has ended
            await page.click("[data-shells=off]")
            await page.wait_for_selector("[data-shells=on]")
            await page.wait_for_timeout(300)
            assert sizes == [], "a screen that is not shown has none"

    async def test_a_program_that_prints_much_leaves_the_page_and_the_screen_usable(
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
            await page.keyboard.type("seq 1 200000; printf 'over%s\\n' .\n")
            await becomes(page, "document.querySelector('.cells').innerText.includes('199999\\n200000\\nover.')")
            assert await page.evaluate("document.querySelector('.cells > div').children.length") <= 1_000
            await page.keyboard.type("yes\n")
            await becomes(page, "/(^y\\n){9}/m.test(document.querySelector('.cells').innerText)")
            await page.keyboard.press("Control+c")
            await page.keyboard.type("printf 'again%s\\n' .\n")
            await becomes(page, "document.querySelector('.cells').innerText.includes('again.')")

    async def test_the_shell_is_as_large_as_the_window_in_which_somebody_types(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SHELL", "/bin/sh")
        async with page_with_model(tmp_path, [Turn(items=(SayText(text="Hello."),))]) as (served, seen):
            page = await seen.page(served, viewport={"width": 1440, "height": 900})
            session = await start_session(page, "Say hello.")
            await page.click("[data-tab=terminal]")
            await page.click("[data-shells=on]")
            other = await page.context.new_page()
            await other.set_viewport_size({"width": 1180, "height": 600})
            await other.goto(f"{served.address}/s/{session}")
            await other.click("[data-tab=terminal]")
            sizes: list[str] = []
            for one in (page, other, page):
                await one.bring_to_front()
                await one.focus("#shell textarea")
                await becomes(one, "document.querySelector('.cells .cursor') !== null")
                await one.evaluate("document.activeElement.blur()")
                await one.focus("#shell textarea")
                await one.wait_for_timeout(500)
                await one.keyboard.type(f"echo at{len(sizes)} $(stty size).\n")
                found = f"/at{len(sizes)} (\\d+ \\d+)\\./"
                await becomes(one, f"{found}.test(document.querySelector('.cells').innerText)")
                sizes.append(await one.evaluate(f"{found}.exec(document.querySelector('.cells').innerText)[1]"))
            assert sizes[0] == sizes[2] != sizes[1]
