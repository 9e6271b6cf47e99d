"""Somebody types at the pace of hands while questions come, are answered elsewhere and go: no key answers one."""

import random
from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.e2e.faults.driving import run
from tests.e2e.running import log_of
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.protocol.events import Answer, Event
from treadle.protocol.permissions import OptionKind
from treadle.providers.scripted.script import Turn

pytestmark = in_shared_browser

_ROUNDS = 4
_PAUSES = (0.04, 0.4)
"""Seconds between two keys."""

_KEYS = (
    *"abcdejkxcey1234567890 .,?jkxce",
    "Enter",
    "Enter",
    "Shift+Enter",
    "Backspace",
    "ArrowUp",
    "ArrowDown",
    "Escape",
)
"""What a hand that writes may hit; a slash or an exclamation mark would begin a command."""


async def _types(page: Page, chance: random.Random, seconds: float) -> None:
    """Type for a while, with whatever has the focus."""
    while seconds > 0:
        pause = chance.uniform(*_PAUSES)
        await page.wait_for_timeout(pause * 1000)
        await page.keyboard.press(chance.choice(_KEYS))
        seconds -= pause


async def _reject(page: Page) -> None:
    card = page.locator("#questions .question:not(.closed-line)").first
    await card.wait_for()
    await becomes(page, "document.querySelector('#questions .question')?.dataset.came")
    await page.wait_for_timeout(700)
    await card.locator("button[data-act=reject]").click()  # what it tried in a copy is discarded


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 40))])
async def test_no_key_that_is_typed_answers_a_question(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    turns = [Turn(items=(run(f"touch made-{number}"),)) for number in range(40)]
    async with page_with_model(tmp_path, turns) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Go on.")
        other = await seen.page(served, page.url.removeprefix(served.address))
        if chance.random() < 0.5:
            await page.set_viewport_size({"width": 390, "height": 800})
        for _ in range(_ROUNDS):
            if chance.random() < 0.7:
                await page.locator("#text").focus()
            else:
                await page.evaluate("document.activeElement.blur()")
            await _types(page, chance, chance.uniform(0.2, 2.5))
            await _reject(other)
            await _types(page, chance, chance.uniform(0.1, 1.5))
        home = served.program.home
    answers: list[Event] = [one for one in log_of(home) if isinstance(one.data, Answer)]
    assert {one.data.option for one in answers if isinstance(one.data, Answer)} == {OptionKind.REJECT_ONCE}
    assert len(answers) == _ROUNDS, "only those that were given by hand"
    assert not list((tmp_path / "ws").glob("made-*"))
