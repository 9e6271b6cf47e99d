"""The palette: everything that the page can do and go to, found by some of its letters; and pinned sessions."""

from pathlib import Path

import pytest
from playwright.async_api import Route

from tests.web.driving import becomes, in_shared_browser, page_with_model, require_accessible, start_session
from tests.web.in_process import idle, page_here
from treadle.providers.scripted.script import SayText, Turn

pytestmark = in_shared_browser

HELLO = Turn(items=(SayText(text="Hello."),))


async def test_a_session_is_pinned_from_the_palette_and_a_file_and_a_setting_are_found(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [HELLO]) as (served, seen):
        (served.folder / "alpha_module.py").write_text("x = 1\n")
        page = await seen.page(served)
        await start_session(page, "Say hello.")
        await page.wait_for_selector(".item.end")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("amod")
        await becomes(page, "document.querySelector('#pal-0 .t')?.textContent === 'alpha_module.py'")
        assert await page.inner_text("#pal-0 u:nth-of-type(2)") == "m"
        async with page.context.expect_page() as beside:
            await page.keyboard.press("Control+Enter")
        opened = await beside.value
        await opened.wait_for_selector("#file-shown >> text=x = 1")
        await opened.close()
        await page.keyboard.press("Control+k")
        await page.wait_for_selector("#palette .session:has(.ic):has(.ends:text-is('Done'))")
        await page.keyboard.type("amod")
        await page.wait_for_selector("#pal-0 >> text=alpha_module.py")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#file-shown >> text=x = 1")
        await page.keyboard.press("Control+k")
        for words in ("export", "terminal command", "allowed here", "change model", "restore", "notify me", "rename"):
            await page.fill("#palette input", words)
            await page.wait_for_selector("#pal-0")
        assert await page.locator("#palette >> text=Undo the last turn").count() == 0, "it changed nothing"
        await page.fill("#palette input", "> pin this")
        await page.wait_for_selector("#pal-0 >> text=Pin")
        assert await page.locator("#palette .aside").is_hidden(), "it has no address"
        assert await page.inner_text("#palette .kind") == "Commands", "and nothing else"
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#sessions-column h2 >> text=Pinned")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("> unpin this")
        await page.wait_for_selector("#pal-0 >> text=Unpin")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#sessions-column h2 >> text=Pinned", state="detached")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("> delete this")
        await page.wait_for_selector("#pal-0 >> text=Close it first.")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#messages p")  # why it cannot be deleted
        assert await page.get_attribute("#more", "open") is None
        await page.keyboard.press("Control+k")
        await page.keyboard.type("network.allow")
        await page.wait_for_selector("#palette .g >> text=network.allow")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/settings/sandbox#row-network.allow")


async def test_what_was_chosen_stays_chosen_when_more_is_found_and_what_moves_takes_no_click(tmp_path: Path) -> None:
    at = "document.querySelector('#palette [aria-selected=true] .t')?.textContent"
    async with page_with_model(tmp_path, [HELLO]) as (served, seen):
        (served.folder / "panels.py").write_text("x = 1\n")
        page = await seen.page(served)
        await start_session(page, "Say hello.")
        await page.wait_for_selector(".item.end")
        await page.wait_for_selector("html[data-ready]", state="attached")
        held: list[Route] = []

        async def hold(route: Route) -> None:
            held.append(route)

        await page.route("**/named?*", hold)
        await page.keyboard.press("Control+k")
        await page.wait_for_selector("#palette .session")
        await page.keyboard.type("panel")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowUp")
        assert await page.evaluate(at) == "Panel"
        while not held:
            await page.wait_for_timeout(20)
        await held[-1].continue_()
        await page.wait_for_selector("#pal-0 >> text=panels.py")
        await page.evaluate("document.getElementById('pal-0').click()")
        assert await page.is_visible("#palette"), "it came under the pointer just now"
        assert await page.evaluate(at) == "Panel"


TELL = """async () => {
  const { tell } = await import(document.querySelector("script[src$='/app.js']").src);
  for (const text of ["Look at it.", "Another.", "Look at it."]) tell(text);
  return [...document.querySelectorAll("#messages p")].map((one) => one.textContent);
}"""


async def test_settings_are_found_by_whole_words_in_any_order_and_one_escape_closes(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [HELLO]) as (served, seen):
        page = await seen.page(served, bypass_csp=True)
        await page.wait_for_selector("html[data-ready]", state="attached")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("asking commands hosts")
        await page.wait_for_selector("#palette .g >> text=network.allow")
        await page.fill("#palette input", "hcwa")
        await becomes(page, "document.querySelectorAll('#palette [role=option]:not([aria-disabled])').length === 0")
        await page.keyboard.press("Escape")
        assert not await page.is_visible("#palette"), "although something is typed"
        assert await page.evaluate(TELL) == ["Another.", "Look at it."], "the same words stand there once"


async def test_what_is_pinned_stays_in_the_column_until_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [HELLO]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        path = f"/s/{page.session.id}"
        assert "Pinned" not in await visit.get("/sessions/column")
        await visit.done(f"{path}/pin")
        column = await visit.get("/sessions/column")
        assert column.count(f'id="r-{page.session.id}"') == 1
        assert "Pinned" in column
        assert 'data-do="unpin"' in await visit.get(f"{path}/menu")
        await visit.done(f"{path}/unpin")
        assert "Pinned" not in await visit.get("/sessions/column")


async def test_enter_begins_a_line_where_this_browser_has_it_so_and_ctrl_enter_sends(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [HELLO, HELLO]) as (served, seen):
        page = await seen.page(served)
        session = await start_session(page, "Say hello.")
        await page.wait_for_selector(".item.end")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("> enter begins a line")
        await becomes(page, "document.querySelectorAll('#palette [role=option]').length === 1")
        await page.keyboard.press("Enter")
        await page.goto(f"{served.address}/s/{session}")
        assert "enter-breaks" in (await page.locator("html").get_attribute("class") or ""), (
            "drawn so from the beginning"
        )
        await page.wait_for_selector("html[data-ready]", state="attached")
        await page.focus("#text")
        await page.keyboard.type("one\ntwo")
        assert await page.input_value("#text") == "one\ntwo"
        await page.keyboard.press("Control+Enter")
        await page.wait_for_selector(".item.said:has-text('two')")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("> enter sends")
        await becomes(page, "document.querySelectorAll('#palette [role=option]').length === 1")
        await page.keyboard.press("Enter")
        await page.fill("#text", "three")
        await page.press("#text", "Enter")
        await page.wait_for_selector(".item.said:has-text('three')")
        await page.goto(f"{served.address}/settings/general")
        await page.get_by_role("switch", name="Enter sends").uncheck()
        await page.get_by_text("Dark", exact=True).click()
        await page.reload()
        assert not await page.get_by_role("switch", name="Enter sends").is_checked()
        assert await page.get_by_role("radio", name="Dark").is_checked()
        assert "enter-breaks" in (await page.locator("html").get_attribute("class") or "")


async def test_a_mode_is_chosen_from_a_menu_that_says_what_it_lets_run_and_wide_ones_ask_once(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [HELLO]) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Work.")
        await page.wait_for_selector("#choose-mode:has-text('Ask')")
        await page.wait_for_selector("html[data-ready]", state="attached")
        await page.keyboard.press("Alt+m")
        await page.wait_for_selector("#palette-list >> text=File edits run without asking")
        await require_accessible(page)
        now = page.locator("#palette-list [aria-selected=true]:has(.ic)")
        assert "Treadle asks before anything is changed" in await now.inner_text(), "that of now is marked, and chosen"
        foot = await page.locator("#palette .pkeys:visible").inner_text()
        assert foot.split() == ["↑", "↓", "move", "↵", "choose"], "what can be done here"
        assert await page.locator("#palette-list .ic").count() == 1, "nothing is played"
        await page.fill("#palette input", "edits")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#choose-mode:has-text('Edits')")
        for answer, mode in (("Enter", "Edits"), ("ArrowDown", "Auto")):
            await page.click("#choose-mode")
            await page.fill("#palette input", "auto")
            await page.keyboard.press("Enter")
            await page.wait_for_selector("#palette-list >> text=Yes, Auto")
            await page.keyboard.press(answer)
            if answer != "Enter":
                await page.keyboard.press("Enter")
            await page.wait_for_selector("#palette", state="hidden")
            await page.wait_for_selector(f"#choose-mode:has-text('{mode}')")
        await page.wait_for_selector("#bar-mode[data-mode=auto]")


async def test_the_column_groups_by_project_where_this_browser_wants_it(tmp_path: Path) -> None:
    headings = "() => [...document.querySelectorAll('#sessions-column h2')].map((one) => one.textContent.trim())"
    async with page_with_model(tmp_path, [HELLO]) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Work.")
        await page.wait_for_selector("#sessions-column h2:has-text('Done 1')")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("Sessions by project")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#sessions-column h2:has-text('ws 1')")
        await page.reload()
        assert await page.evaluate(headings) == ["ws 1"]
        await page.goto(f"{served.address}/settings/general")
        assert await page.get_by_role("radio", name="By project").is_checked()
        await page.get_by_text("By state", exact=True).click()
        await page.wait_for_selector("#sessions-column h2:has-text('Done 1')")
        await page.reload()
        assert await page.evaluate(headings) == ["Done 1"]
