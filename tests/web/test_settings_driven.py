"""The settings in words in a real browser: a person changes, undoes and mistypes them, by mouse, keyboard and phone."""

import tomllib
from pathlib import Path
from typing import Any

from playwright.async_api import Page

from tests.needed import PEERS
from tests.web.driving import Served, becomes, browser, in_shared_browser, serving

pytestmark = in_shared_browser

AXE = PEERS / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = ("general", "budgets", "sandbox")
LOOKS: tuple[dict[str, Any], ...] = (
    {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "has_touch": True, "is_mobile": True},
    {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
)


def config(served: Served) -> dict[str, Any]:
    return tomllib.loads((served.program.home / "config.toml").read_text())


async def _open(page: Page, served: Served, screen: str) -> None:
    await page.goto(f"{served.address}/settings/{screen}")
    await page.wait_for_selector("html[data-ready]")


async def _right(page: Page) -> None:
    """Look whether it fits, and whether axe-core finds anything."""
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    if AXE.exists():
        await page.evaluate(AXE.read_text())
        found = "axe.run().then((result) => result.violations.map((one) => `${one.id} ${one.nodes[0].html}`))"
        assert await page.evaluate(found) == []


async def _saved(page: Page, key: str) -> None:
    await page.wait_for_selector(f"[id='row-{key}'] [role=status]:has-text('Saved')")


async def test_a_person_changes_settings_and_undoes_that_with_the_keyboard_alone(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("# mine\n[budget]\nday_cost = 2.0\n")
    async with serving(tmp_path / "home", tmp_path / "ws") as served, browser() as seen:
        page = await seen.page(served, bypass_csp=True)
        await _open(page, served, "general")
        switch = page.get_by_role("switch", name="Checklist")
        await switch.focus()
        await page.keyboard.press("Space")
        await _saved(page, "checklist")
        assert config(served)["checklist"] is False
        assert await switch.get_attribute("aria-checked") == "false"
        await becomes(page, "document.activeElement.getAttribute('role') === 'switch'")
        await page.keyboard.press("Space")
        await becomes(page, "document.activeElement.getAttribute('aria-checked') === 'true'")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")  # use the default
        await becomes(page, "!document.querySelector('#row-checklist').textContent.includes('Use the default')")
        assert "checklist" not in config(served)
        await becomes(page, "document.activeElement.getAttribute('role') === 'switch'")
        await page.get_by_role("button", name="Edits", exact=True).click()
        await _saved(page, "mode")
        assert config(served)["mode"] == "edits"
        for answer in ("no", "yes"):
            await page.get_by_role("button", name="Auto", exact=True).click()
            await page.click(f"#ask button[value={answer}]")
        await page.wait_for_selector("#row-mode button[aria-pressed=true]:has-text('Auto')")
        assert config(served)["mode"] == "auto"
        await page.click("#row-mode button:has-text('Undo')")
        await page.wait_for_selector("#row-mode button[aria-pressed=true]:has-text('Edits')")
        await page.click("#row-mode button:has-text('Use the default')")
        await page.wait_for_selector("#row-mode button[aria-pressed=true]:has-text('Ask')")
        assert "mode" not in config(served)


async def test_a_number_is_saved_once_by_enter_or_by_leaving_and_a_wrong_one_stays_with_its_reason(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path / "home", tmp_path / "ws") as served, browser() as seen:
        page = await seen.page(served, bypass_csp=True)
        await _open(page, served, "budgets")
        asked: list[str] = []
        page.on("request", lambda one: asked.append(one.post_data or "") if one.url.endswith("/settings/row") else None)
        field = page.get_by_role("textbox", name="Cost of a turn")
        await field.fill("a lot")
        await page.keyboard.press("Enter")
        wrong = page.locator("[id='row-budget.turn_cost'] .no")
        await wrong.wait_for()
        assert "It must be a number from 0 to 1,000,000,000." in await wrong.inner_text()
        assert (await field.input_value(), await field.get_attribute("aria-invalid")) == ("a lot", "true")
        assert await field.evaluate("one => one === document.activeElement")
        await _right(page)
        await field.fill("3.50")
        await page.keyboard.press("Enter")
        await _saved(page, "budget.turn_cost")
        assert await wrong.count() == 0
        assert await field.input_value() == "3.5"
        await field.fill("4")
        await page.get_by_role("textbox", name="Steps of a turn").click()
        undo = "button[aria-label='Undo: Cost of a turn']"
        await page.wait_for_selector(f"{undo}[value='3.5']")
        assert await page.evaluate("document.activeElement.value === ''"), "the focus stays where it went"
        assert len(asked) == 3, asked
        await page.click(undo)
        await page.wait_for_selector("button[aria-label='Redo: Cost of a turn'][value='4']")
        assert await field.input_value() == "3.5"
        assert config(served) == {"budget": {"turn_cost": 3.5}}


async def test_each_screen_is_right_in_every_look_and_a_phone_saves_too(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", tmp_path / "ws") as served, browser() as seen:
        for look in LOOKS:
            page = await seen.page(served, bypass_csp=True, **look)
            for screen in SCREENS:
                await _open(page, served, screen)
                await _right(page)
            if look.get("is_mobile"):
                await page.get_by_role("textbox", name="Hosts that are allowed").fill("pypi.org\n.example.com")
                await page.locator("h2.bigno").tap()
                await _saved(page, "network.allow")
                assert config(served) == {"network": {"allow": ["pypi.org", ".example.com"]}}
                await _right(page)


async def test_a_setting_is_found_from_the_bar_and_its_row_is_shown(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", tmp_path / "ws") as served, browser() as seen:
        page = await seen.page(served, bypass_csp=True)
        await _open(page, served, "general")
        await page.get_by_role("button", name="Find a setting").click()
        await page.keyboard.type("cost of a day")
        await page.wait_for_selector("#palette [role=option]:has-text('Cost of a day')")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("[id='row-budget.day_cost']:target")
        await _right(page)
