"""The review in a real browser: what was viewed, room for both sides, the line that stays, comments that were sent."""

import asyncio
from pathlib import Path

from playwright.async_api import Locator, Page

from tests.e2e.faults.driving import block, make
from tests.web.driving import PATIENCE, Seen, Served, becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import Turn

pytestmark = in_shared_browser

LONG = "".join(f"line {n}\n" for n in range(80))
EDITS = Turn(
    items=(
        make("write_to_file", path="src/a.txt", content=LONG),
        make("write_to_file", path="b.txt", content="two\n"),
    )
)
DONE = Turn(items=(make("attempt_completion", result="Done."),))
BOXES = "[...document.querySelectorAll('.viewed')].map((one) => one.checked ? 1 : 0).join('')"
SPLIT = "document.body.classList.contains('split')"
SEEN = """(() => {
  const { top, bottom } = document.querySelector(".told").getBoundingClientRect();
  return top > 40 && bottom <= innerHeight;
})()"""
FOLDED = "document.documentElement.classList.contains('folded-column')"


async def _review(served: Served, seen: Seen) -> Page:
    page = await seen.page(served, viewport={"width": 1440, "height": 800})
    session = await start_session(page, "Edit.")
    await page.wait_for_selector(".item.end")
    await page.goto(f"{served.address}/s/{session}/review")
    await page.wait_for_selector("html[data-ready] .hunk")
    return page


async def test_a_file_is_viewed_by_either_of_its_boxes_and_its_line_stays_in_sight(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [EDITS, DONE], "--mode", "edits") as (served, seen):
        page = await _review(served, seen)
        assert await page.evaluate(BOXES) == "0000", "two in the list, one at each file"
        assert await page.locator(".tree .name").all_inner_texts() == ["b.txt", "src/a.txt"]
        accept = page.locator("[data-do=accept]").first
        for words in ("Undo accept", "Accept"):
            await accept.click()
            await accept.get_by_text(words, exact=True).wait_for()
        await page.locator(".tree .viewed").first.check()
        assert await page.inner_text("#progress") == "1 of 2 viewed"
        assert (await page.evaluate(BOXES)).count("1") == 2
        await page.reload()
        await page.wait_for_selector("html[data-ready] .file-changed.done")
        assert (await page.evaluate(BOXES)).count("1") == 2
        await page.locator(".file-changed.done .viewed").uncheck()
        assert await page.evaluate(BOXES) == "0000"
        await page.evaluate("scrollBy(0, document.querySelector('[data-path=\"src/a.txt\"]').offsetHeight - 200)")
        header = page.locator("[data-path='src/a.txt'] header")
        place = await header.bounding_box()
        assert place is not None
        assert 40 < place["y"] < 60, "below the bar"
        assert "+80−0" in await header.inner_text()


async def test_both_sides_need_room_and_the_column_gives_it(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [EDITS, DONE], "--mode", "edits") as (served, seen):
        page = await _review(served, seen)
        assert await page.evaluate(FOLDED), "by itself"
        await page.keyboard.press("u")
        assert await page.evaluate(SPLIT)
        await page.set_viewport_size({"width": 1079, "height": 800})
        await becomes(page, f"!{SPLIT}")
        assert not await page.is_visible("#split")
        await page.keyboard.press("u")
        await page.set_viewport_size({"width": 1080, "height": 800})
        await becomes(page, SPLIT)
        await page.click("#fold")
        assert not await page.evaluate(FOLDED)
        await page.goto(f"{served.address}/inbox")
        assert not await page.evaluate(FOLDED), "what folds by itself is not kept"
        await page.set_viewport_size({"width": 1600, "height": 800})
        await page.go_back()
        assert not await page.evaluate(FOLDED), "there is room"


async def test_a_comment_says_whether_it_was_sent_and_goes_along_once(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [EDITS, DONE, DONE], "--mode", "edits") as (served, seen):
        page = await _review(served, seen)
        await page.locator(".hunk").first.focus()
        await page.keyboard.press("c")
        await page.fill("form.comment textarea", "Why <b>two</b>?")
        await page.keyboard.press("Control+Enter")
        card = page.locator(".said-here")
        said = [line for line in (await card.inner_text()).split("\n") if line]
        assert said == ["You", "the change", "not sent yet", "Remove", "Why <b>two</b>?"]
        await page.keyboard.press("m")
        await page.wait_for_selector("#message[open]")
        await page.click("#send")
        await page.wait_for_selector(".said-here:has-text('sent'):not(:has-text('not sent'))")
        assert not await page.is_visible("#collected")
        async with asyncio.timeout(PATIENCE):
            while not await page.locator("html[data-ready] .said-here:has-text('answered in step 3')").count():
                await page.reload()
        await page.keyboard.press("m")
        await page.wait_for_selector("#messages >> text=There are no comments yet.")
        await page.click(".said-here button")
        assert await card.count() == 0


async def _comment(page: Page, number: int, text: str) -> None:
    await page.locator(".hunk [data-do=comment]").nth(number).click()
    await page.fill("form.comment textarea", text)
    await page.click("form.comment button[type=submit]")


async def test_comments_of_two_tabs_are_all_kept_and_so_is_their_message(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [EDITS, DONE, DONE], "--mode", "edits", "--trust") as (served, seen):
        page = await _review(served, seen)
        other = await page.context.new_page()
        await other.goto(page.url)
        await other.wait_for_selector("html[data-ready] .hunk")
        await _comment(page, 0, "From here.")
        await _comment(other, 1, "From there.")
        await page.wait_for_selector("#count:text('2 comments not sent yet')")
        await page.reload()
        await page.wait_for_selector("#count:text('2 comments not sent yet')")
        await page.click(".said-here:has-text('From here.') button")
        await other.wait_for_selector("#count:text('1 comment not sent yet')")
        await page.click("#write")
        await page.wait_for_selector("#message[open]")
        await page.fill("#message-text", "In my own words.")
        await page.keyboard.press("Escape")
        await _comment(page, 0, "Later.")
        await page.click("#write")
        await page.wait_for_selector("#message[open]")
        said = await page.input_value("#message-text")
        assert said.startswith("In my own words.\n\nComments on your changes (1 comment):")
        assert ("Later." in said, "From there." in said) == (True, False), "what is new is below it"
        await _comment(other, 0, "Not in it.")
        await page.click("#send")
        await page.wait_for_selector("#count:text('1 comment not sent yet')")


async def test_what_is_half_written_about_a_change_is_there_after_a_reload(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [EDITS, DONE], "--mode", "edits", "--trust") as (served, seen):
        page = await _review(served, seen)
        await page.locator(".hunk [data-do=comment]").first.click()
        await page.select_option("form.comment select >> nth=0", index=1)
        about = await page.input_value("form.comment select >> nth=0")
        await page.fill("form.comment textarea", "Half a com")
        await page.locator(".hunk [data-do=amend]").last.click()
        await page.fill("form.amend textarea", "half a line")
        await page.reload()
        await page.wait_for_selector("form.comment textarea")
        assert await page.input_value("form.comment textarea") == "Half a com"
        assert await page.input_value("form.comment select >> nth=0") == about
        await becomes(page, "document.querySelector('form.amend textarea')?.value === 'half a line'")
        note = served.folder / "b.txt"
        note.write_text("other lines\n")
        await page.reload()
        await becomes(page, "document.querySelector('.hunk form.amend textarea')?.value === 'half a line'")
        assert await page.input_value("#review > div:first-child textarea") == "Half a com", "its change is gone"
        note.write_text("two\n")
        await page.reload()
        await becomes(page, "document.querySelector('.hunk form.amend textarea')?.value === 'half a line'")
        await page.locator(".hunk form.comment").get_by_text("Cancel").click()
        await page.click("form.amend button[type=submit]")
        await page.wait_for_selector("form.amend", state="detached")
        await page.reload()
        await page.wait_for_selector("html[data-ready] .hunk")
        assert await page.locator("form.field").count() == 0, "what was used or given up is not there any more"


async def test_where_a_change_was_its_own_line_says_that_it_was_rejected_and_undoes_it(tmp_path: Path) -> None:
    before = "".join(f"x{n} = {n}\n" for n in range(400))
    diff = "".join(block(f"x{n} = {n}\n", f"x{n} = {n}0\n") for n in range(20, 390, 20))
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "deep.py").write_text(before)
    edit = (
        Turn(items=(make("read_file", path="deep.py"),)),
        Turn(items=(make("replace_in_file", path="deep.py", diff=diff),)),
    )
    async with page_with_model(tmp_path, [*edit, DONE], "--mode", "edits") as (served, seen):
        page = await _review(served, seen)
        keys = await page.eval_on_selector_all(".hunk", "(all) => all.map((one) => one.dataset.key)")

        async def reject(number: int) -> None:
            hunk = page.locator(f".hunk[data-key='{keys[number]}']")
            await hunk.locator("[data-do=reject]").click()
            await hunk.wait_for(state="detached")

        def line_before(number: int) -> Locator:
            return page.locator(f".told:has-text('Rejected in deep.py.') + .hunk[data-key='{keys[number]}']")

        await reject(11)
        await line_before(12).wait_for()
        await becomes(page, SEEN)  # where the change was
        await reject(3)
        await line_before(4).wait_for()
        assert await line_before(12).count() == 1, "that of the other is still there"
        await page.locator(".told button.undoes").click()  # the last one alone can be undone
        await page.wait_for_selector(f".hunk[data-key='{keys[3]}']")
        now = (served.folder / "deep.py").read_text()
        assert ("x80 = 800\n" in now, "x240 = 240\n" in now) == (True, True)
        assert await line_before(12).count() == 1
        last = len(keys) - 1
        await reject(last)
        await page.locator(f".hunk[data-key='{keys[last - 1]}'] + .told").wait_for()


async def test_what_is_decided_in_one_tab_is_decided_in_the_other(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [EDITS, DONE], "--mode", "edits") as (served, seen):
        page = await _review(served, seen)
        other = await page.context.new_page()
        await other.goto(page.url)
        await other.wait_for_selector("html[data-ready] .hunk")
        await other.wait_for_timeout(2_500)  # it has looked what was decided so far
        await page.bring_to_front()
        await other.bring_to_front()
        await other.locator("[data-do=reject]").last.click()
        await other.wait_for_selector(".told:has-text('Rejected in') .undoes")
        await other.locator("[data-do=comment]").first.click()
        await page.bring_to_front()
        await page.locator(".hunk").nth(1).wait_for(state="detached")
        for words in ("Undo accept", "Accept"):
            await page.locator("[data-do=accept]").first.click()
            await other.bring_to_front()
            await other.locator("[data-do=accept]").first.get_by_text(words, exact=True).wait_for()
            await other.keyboard.type("Fix a")  # keys of the page, were the field not in focus any more
            await page.bring_to_front()
        await other.bring_to_front()
        assert await other.input_value("form.comment textarea") == "Fix aFix a"
        await other.click(".told .undoes")
        await other.locator(".hunk").nth(1).wait_for()
