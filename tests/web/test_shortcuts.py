"""The keys of the page in a real browser: what `?` lists is what is heard, nothing is heard in a field."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.e2e.faults.driving import make
from tests.needed import PEERS
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import SayText, Turn, Wait

pytestmark = in_shared_browser

EDITS = Turn(
    items=(
        make("write_to_file", path="a.txt", content="one\n"),
        make("write_to_file", path="b.txt", content="two\n"),
    )
)
DONE = Turn(items=(make("attempt_completion", result="Done."),))
GO = ("g s", "g r", "g t", "g c")
ALWAYS = ("g i", "g n", "n", "/", "?", "[", "Ctrl K", "Alt ↑", "Alt ↓", "Esc")
REVIEW, STEPS = ["j", "k", "n", "p", "a", "x", "c", "e", "v", "u", "m"], ["j", "k", ".", "v", "r", "f", "#"]
AXE = PEERS / "node_modules" / "axe-core" / "axe.min.js"
WRONG = "axe.run().then((found) => found.violations.map((one) => `${one.id} ${one.nodes[0].html}`))"
CALLED = """() => [...document.querySelectorAll("#keys dt")].map(
  (one) => [...one.children].map((key) => key.textContent).join(" "))"""


async def _ready(page: Page) -> None:
    await page.wait_for_selector("html[data-ready]", state="attached")


async def _listed(page: Page) -> list[str]:
    await page.keyboard.press("?")
    found: list[str] = await page.evaluate(CALLED)
    await page.keyboard.press("Escape")
    return found


async def _press(page: Page, keys: str) -> None:
    for key in keys.split():
        await page.keyboard.press(key)


async def test_each_screen_lists_its_own_keys_and_they_lead_from_view_to_view(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [EDITS, DONE], "--mode", "edits") as (_, seen):
        page = await seen.page(_)
        await start_session(page, "Edit.")
        await page.wait_for_selector(".item.end")
        await page.focus("#text")
        await page.keyboard.type("?/n")
        assert await page.input_value("#text") == "?/n", "in a field they are letters"
        await page.fill("#text", "")
        await page.keyboard.press("Escape")
        live = await _listed(page)
        assert set(live) >= {*GO, *ALWAYS, "]", "End", "Alt M", "Alt P"}
        assert len(live) == len(set(live))
        assert "Esc Esc" not in live, "nothing is to be stopped"
        await _press(page, "g r")
        await page.wait_for_selector("html[data-ready] .hunk")
        assert set(await _listed(page)) >= {*GO, *ALWAYS, *REVIEW}
        await _press(page, "n")
        assert await page.evaluate("document.activeElement.dataset.path") == "a.txt", "the screen's own n comes first"
        await _press(page, "g t")
        await page.wait_for_selector("html[data-ready] .step")
        assert set(await _listed(page)) >= {*GO, *ALWAYS, *STEPS}
        await _press(page, "g i")
        await page.wait_for_url("**/inbox")
        await _ready(page)
        await _press(page, "n")
        await page.wait_for_selector("#start")


async def test_nothing_is_wrong_with_the_list_of_keys_in_either_theme_and_on_a_phone(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [DONE]) as (served, seen):
        page = await seen.page(served, "/inbox")
        await _ready(page)
        await page.keyboard.press("?")
        if AXE.exists():
            await page.evaluate(AXE.read_text())
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme=theme)
            for width in (390, 1280):
                await page.set_viewport_size({"width": width, "height": 800})
                assert await page.evaluate("document.querySelector('#keys').scrollWidth <= innerWidth - 24")
                if AXE.exists():
                    assert await page.evaluate(WRONG) == [], (theme, width)


async def test_a_step_is_found_by_its_name_and_its_menu_opens_by_a_key(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [EDITS, DONE], "--mode", "edits") as (_, seen):
        page = await seen.page(_)
        session = await start_session(page, "Edit.")
        await page.wait_for_selector(".item.end")
        await page.goto(f"{_.address}/s/{session}/timeline")
        await page.wait_for_selector("html[data-ready] .step")
        await page.keyboard.press("#")
        await page.keyboard.type("step 1")
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.dataset.name") == "step 1"
        await page.keyboard.press(".")
        assert await page.locator(".step .menu[open]").count() == 1
        await page.goto(f"{_.address}/s/{session}/timeline?view=events")
        await page.wait_for_selector("html[data-ready] .event")
        await _press(page, "j .")
        assert await page.locator(".event details[open]").count() == 1


async def test_single_letters_can_be_switched_off_and_the_other_keys_stay(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [DONE]) as (served, seen):
        page = await seen.page(served, "/inbox")
        await _ready(page)
        await page.keyboard.press("?")
        await page.uncheck("#keys input")
        await page.keyboard.press("Escape")
        await _press(page, "n ? g u [")
        await page.keyboard.press("Control+k")
        await page.wait_for_selector("#palette[open]")
        assert page.url.endswith("/inbox")
        assert await page.locator("dialog[open], .folded-column").count() == 1


async def test_two_escapes_stop_and_a_held_one_does_not(tmp_path: Path) -> None:
    turns = [Turn(items=(SayText(text="Thinking about it."), Wait(seconds=600)))]
    async with page_with_model(tmp_path, turns) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Work.")
        await page.wait_for_selector("#stop:not([hidden])")
        await page.focus("#text")
        await page.keyboard.down("Escape")
        assert await page.inner_text("#half") == "Esc again stops."
        for _ in range(5):
            await page.keyboard.down("Escape")
        await page.keyboard.up("Escape")
        assert await page.is_visible("#stop"), "it was held"
        assert "Esc Esc" in await _listed(page)
        await _press(page, "Escape Escape Escape")
        await page.wait_for_selector("#text[placeholder='Stopped. What should be done instead?']")
        assert await page.is_hidden("#stop")
        assert await page.inner_text("#half") == "", "nothing is there to be stopped"


async def test_words_are_found_in_the_whole_session_and_their_place_is_loaded_and_shown(tmp_path: Path) -> None:
    turns = [Turn(items=(make("attempt_completion", result=f"Answer number {n}."),)) for n in range(60)]
    async with page_with_model(tmp_path, turns) as (served, seen):
        page = await seen.page(served)
        session = await start_session(page, "Say **number** 0.")
        for n in range(1, 60):
            await page.wait_for_selector(f".item >> text=Answer number {n - 1}.")
            await page.fill("#text", f"Say {n}.")
            await page.keyboard.press("Enter")
        await page.wait_for_selector(".item >> text=Answer number 59.")
        await page.reload()
        await _ready(page)
        first = int(await page.get_attribute("body", "data-first") or "0")
        assert first > 3, "what is looked for is not on the page"
        await page.goto(f"{served.address}/s/{session}/timeline")
        await _ready(page)
        await page.keyboard.press("/")
        await page.keyboard.type("answer NUMBER 1.")
        await becomes(page, "document.querySelectorAll('#palette [role=option]').length === 1")
        assert await page.inner_text("#pal-0 .t") == "Answer number 1."
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/s/*#i*")
        await becomes(page, "document.activeElement.textContent.includes('Answer number 1.')")
        box = await page.evaluate(PLACE)
        assert min(box) >= 0, "it is on the screen"


PLACE = """() => {
  const { top, bottom } = document.activeElement.getBoundingClientRect();
  return [top, innerHeight - bottom];
}"""
MAC = "Object.defineProperty(navigator, 'platform', { get: () => 'MacIntel' })"


async def test_on_a_mac_the_command_key_is_shown_and_works_in_place_of_control(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [DONE]) as (served, seen):
        page = await seen.page(served)
        await page.context.add_init_script(MAC)
        await page.goto(f"{served.address}/inbox")
        await _ready(page)
        listed = await _listed(page)
        assert {"⌘ K", "⌥ ↑"} <= set(listed)
        assert not re.search(r"Ctrl|Alt", " ".join(listed) + await page.content())
        await page.keyboard.press("Control+k")
        assert not await page.is_visible("#palette")
        await page.keyboard.press("Meta+k")
        await page.wait_for_selector("#palette[open]")


TYPED = """(key) => document.body.dispatchEvent(
  new KeyboardEvent("keydown", { key, code: "Digit8", ctrlKey: true, altKey: true, bubbles: true }))"""


@pytest.mark.parametrize(("key", "opens"), [("[", True), ("x", False)])
async def test_a_sign_that_needs_altgr_is_the_same_key(tmp_path: Path, key: str, *, opens: bool) -> None:
    async with page_with_model(tmp_path, [DONE]) as (served, seen):
        page = await seen.page(served, "/inbox")
        await _ready(page)
        await page.evaluate(TYPED, key)
        assert (await page.locator(".folded-column").count() == 1) is opens
