"""Controls have their room: nothing touches what it belongs to, and nothing is cut, also where the screen is narrow."""

from pathlib import Path
from typing import Any

from tests.e2e.faults.driving import run
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import Turn

pytestmark = in_shared_browser

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
PUSHES = [Turn(items=(run("git push origin main"),))]
BUDGETS = """async () => {
  const { send } = await import([...document.querySelectorAll("script[src]")][0].src.replace(/[^/]*$/, "app.js"));
  for (const one of ["session_cost", "day_cost"]) {
    await send("/settings/set", { key: `budget.${one}`, value: "2000.5" });
  }
}"""
ROOM = """() => [...document.querySelectorAll(".reach label")].map((one) =>
  one.querySelector("span").getBoundingClientRect().left - one.querySelector("input").getBoundingClientRect().right)"""
FILLED = """() => {
  const colour = (one) => getComputedStyle(one).backgroundColor;
  const filled = colour(document.querySelector("#trust .answers button"));
  const all = [...document.querySelectorAll("main button")].filter((one) => one.offsetParent);
  return all.filter((one) => colour(one) === filled).map((one) => one.textContent);
}"""


async def test_on_a_phone_nothing_of_the_start_the_inbox_and_the_usage_is_cut_or_touches(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, PUSHES) as (served, seen):
        page = await seen.page(served, **PHONE)
        await becomes(page, "document.getElementById('text').placeholder === 'Describe a task'")
        await start_session(page, "Reverify the upload_of_large_files and the retries")
        await page.wait_for_selector(".question")
        await page.evaluate(BUDGETS)
        await page.goto(f"{served.address}/inbox")
        await page.click("a.item")
        await page.wait_for_selector(".question .reach")
        room = await page.evaluate(ROOM)
        assert len(room) > 1
        assert min(room) >= 6
        covered = "document.querySelector('.head').getBoundingClientRect().bottom"
        await becomes(page, f"document.querySelector('.card.on .crumb').getBoundingClientRect().top >= {covered}")
        await page.set_viewport_size({"width": 320, "height": 700})
        await page.goto(f"{served.address}/usage")
        await page.wait_for_selector(".legend svg.share")
        assert await page.evaluate("document.documentElement.scrollWidth") == 320


async def test_beside_the_trust_question_one_button_is_filled_and_what_is_typed_has_room(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "AGENTS.md").write_text("Be short.\n")
    async with page_with_model(tmp_path, PUSHES) as (served, seen):
        page = await seen.page(served)
        await page.wait_for_selector("html[data-ready]", state="attached")
        await page.check("#another", force=True)
        field, cards = page.locator("#other input"), page.locator(".folders")
        await field.wait_for()
        box, above = await field.bounding_box(), await cards.bounding_box()
        assert box is not None
        assert above is not None
        assert box["y"] - above["y"] - above["height"] >= 8
        await page.fill("[name=other]", str(served.folder))
        await page.fill("#text", "Work.")
        await page.click("#start button[type=submit]")
        await page.wait_for_selector("#trust .question")
        assert await page.evaluate(FILLED) == [await page.locator("#trust .answers button").first.inner_text()]
        assert not (await page.inner_text("#trust pre")).startswith(" ")
