"""The line of a page is cut in several ways: right words in time, no spinner, nothing twice or lost."""

import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Page, Route

from tests.web.driving import Served, becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import Refuse, SayText, Turn, Wait

pytestmark = in_shared_browser

LATER = 25_000
"""Milliseconds after which a line that brings nothing counts as lost."""


@dataclass(frozen=True)
class Cut:
    """A way in which a line is cut and comes back."""

    cut: Callable[[Page, Served], Awaitable[None]]
    mend: Callable[[Page, Served], Awaitable[None]]


async def _stop(page: Page, served: Served) -> None:
    served.process.send_signal(signal.SIGSTOP)


async def _continue(page: Page, served: Served) -> None:
    served.process.send_signal(signal.SIGCONT)


async def _go_offline(page: Page, served: Served) -> None:
    await page.context.set_offline(True)


async def _come_back(page: Page, served: Served) -> None:
    await page.context.set_offline(False)


async def _buffer(page: Page, served: Served) -> None:
    """A proxy keeps what comes until it ends, which it never does."""

    async def keep(_: Route) -> None:
        pass

    await page.context.route("**/events?*", keep)
    await page.reload()


async def _pass_on(page: Page, served: Served) -> None:
    await page.context.unroute_all()


CUTS = {
    "stopped": Cut(_stop, _continue),
    "offline": Cut(_go_offline, _come_back),
    "buffered": Cut(_buffer, _pass_on),
}
SPINS = "document.getAnimations().filter((one) => one.animationName === 'spin' && one.playState === 'running').length"


@pytest.mark.parametrize("cut", CUTS)
async def test_a_line_that_is_cut_says_so_and_comes_back_with_nothing_twice(tmp_path: Path, cut: str) -> None:
    way = CUTS[cut]
    slow = Turn(items=(SayText(text="I begin. "), Wait(seconds=4.0), SayText(text="I end.")))
    async with page_with_model(tmp_path, [slow, Turn(items=(SayText(text="Seen."),))]) as (served, seen):
        page = await seen.page(served)
        await page.clock.install()
        await page.goto(f"{served.address}/")
        await start_session(page, "Work.")
        await page.wait_for_selector(".item.prose:has-text('I begin.')")
        await way.cut(page, served)
        await page.clock.fast_forward(LATER)
        await page.wait_for_selector("#lost:has-text('No connection since 0:2')")
        await page.wait_for_selector("#chip:has-text('No connection')")
        if cut != "buffered":  # the document says nothing of the work, which comes by the line
            await page.wait_for_selector("#now:has-text('Was writing')")
        assert await page.evaluate(SPINS) == 0
        await page.wait_for_selector("#lost-words:has-text(' s.')")  # until when, or when again
        await page.keyboard.press("Control+k")
        await page.wait_for_selector("#palette-list >> text=No connection")
        assert await page.locator("#palette-list >> text=Rename").count() == 0, "what it would only promise"
        await page.keyboard.press("Escape")
        await page.fill("#text", "Then look.")
        await page.press("#text", "Enter")
        await page.wait_for_selector("#hint:has-text('Sends when the connection is back.')")
        await way.mend(page, served)
        await page.click("#try-now")
        await page.wait_for_selector(".item.prose:has-text('Seen.')")
        await becomes(page, "document.getElementById('lost').hidden")
        assert await page.locator(".item.prose:has-text('I begin. I end.')").count() == 1
        assert await page.locator(".item.said:has-text('Then look.')").count() == 1
        seen.complaints.clear()  # of requests that nobody answered


async def test_a_wait_for_the_next_try_has_one_clock_and_says_which_try_it_is(tmp_path: Path) -> None:
    refused = Turn(items=(Refuse(status=529, headers={"retry-after": "40"}),))
    async with page_with_model(tmp_path, [refused]) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Work.")
        one_clock = (
            r"/\(529\)\. Trying again in [23]\d s · 1 of \d+$/.test(document.getElementById('line').textContent)"
        )
        await becomes(page, one_clock)
        await page.click("#stop")
        await page.wait_for_selector("#line", state="hidden")
