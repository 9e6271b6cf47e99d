"""An error is a card where the person is: what, why, what to do and a button that leads there, until it is over."""

import re
from pathlib import Path

import pytest

from tests.web.driving import needs_chromium, page_with_model, require_accessible, start_session
from treadle.providers.scripted.script import SayText, Turn
from treadle.web import page_requests
from treadle.web.application import _ROUTES

SRC = Path(page_requests.__file__).parents[1]
TURNS = [Turn(items=(SayText(text=f"Answer {n}."),)) for n in range(3)]


def test_each_way_out_of_an_error_belongs_to_errors_that_there_are_and_leads_to_a_page() -> None:
    codes = {
        found.partition("-")[0]
        for file in SRC.rglob("*.py")
        for found in re.findall(r'"([a-z]+(?:-[a-z]+)+)"', file.read_text())
    }
    ways = page_requests._WAYS
    assert ways.keys() <= codes
    assert {path for _, path in ways.values()} <= {route.path for route in _ROUTES}


@needs_chromium
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.usefixtures("shared_browser")
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
async def test_a_refused_command_stays_with_its_reason_beneath(tmp_path: Path, size: tuple[int, int]) -> None:
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        page = await seen.page(served, viewport={"width": size[0], "height": size[1]})
        await start_session(page, "Work.")
        await page.wait_for_selector(".item >> text=Answer 0.")
        await page.fill("#text", "/model nowhere/x")
        await page.click("#send")
        card = page.locator(".failed-here")
        await card.wait_for()
        assert "There is no provider 'nowhere'." in await card.inner_text()
        assert await page.input_value("#text") == "/model nowhere/x"
        box, below = await page.locator(".cbox").bounding_box(), await card.bounding_box()
        assert box is not None
        assert below is not None
        assert below["y"] >= box["y"] + box["height"] - 1, "it covers nothing of the field"
        assert below["y"] + below["height"] <= size[1]
        assert await card.locator("a.btn").get_attribute("href") == f"{served.at}/settings/providers"
        await require_accessible(page)
        await page.fill("#text", "Go on.")
        await page.click("#send")
        await page.wait_for_selector(".item >> text=Answer 1.")
        assert await card.count() == 0, "it is over"
        await page.fill("#text", "/model nowhere/x")
        await page.click("#send")
        await card.get_by_role("button", name="Close").click()
        assert await card.count() == 0
        seen.complaints[:] = [one for one in seen.complaints if "400" not in one]


@needs_chromium
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.usefixtures("shared_browser")
async def test_what_is_refused_to_a_menu_that_has_closed_is_seen_and_stays(tmp_path: Path) -> None:
    said = '{"code": "x", "what": "This mode is not possible now.", "why": "", "fix": "", "way": "", "path": ""}'
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Work.")
        await page.wait_for_selector(".item >> text=Answer 0.")
        await page.route("**/change", lambda route: route.fulfill(status=409, body=said))
        await page.click("#choose-mode")
        await page.fill("#palette input", "edits")
        await page.keyboard.press("Enter")
        card = page.locator("#messages .failed-here:visible")
        await card.wait_for()
        assert "This mode is not possible now." in await card.inner_text()
        await require_accessible(page)
        await card.get_by_role("button", name="Close").click()
        assert await page.locator(".failed-here").count() == 0
        seen.complaints[:] = [one for one in seen.complaints if "409" not in one]
