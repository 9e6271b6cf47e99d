"""A look beside a conversation leaves it where it is, and what comes moves nothing that is read."""

from pathlib import Path
from typing import Any

from playwright.async_api import Page

from tests.e2e.faults.driving import make, run
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import SayText, Turn

pytestmark = in_shared_browser

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
LONG = "".join(f"Paragraph {number} of many.\n\n" for number in range(80))
LINES = "".join(f"line {number}\n" for number in range(120))


async def _place(page: Page) -> float:
    """Where the conversation is scrolled to, once two frames are over."""
    await page.wait_for_timeout(300)
    return float(await page.evaluate("scrollY"))


async def test_a_file_that_is_looked_at_in_the_panel_leaves_the_conversation_at_its_end(tmp_path: Path) -> None:
    turns = [Turn(items=(run("echo new >> a.txt; touch empty.txt"),)), Turn(items=(SayText(text=LONG),))]
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text(LINES)
    async with page_with_model(tmp_path, turns, "--mode", "full") as (served, seen):
        page = await seen.page(served, **DESK)
        await start_session(page, "Write.")
        await page.wait_for_selector(".item.end")
        await page.click(".flist [data-path='empty.txt']")
        await page.wait_for_selector("#p-changes >> text=No line of it differs.")
        await page.click("#tab-files")
        await page.wait_for_selector("#file-list [data-file='a.txt']")
        before = await _place(page)
        assert before > 0
        await page.click("#file-list [data-file='a.txt']")
        await page.wait_for_selector("#file-shown .add")
        assert await _place(page) == before
        assert await page.is_hidden("#newest"), "it follows"
        in_panel = (
            "(() => { const { top, bottom } = document.querySelector('#file-shown .add').getBoundingClientRect(); "
        )
        assert await page.evaluate(in_panel + "return top > 48 && bottom <= innerHeight; })()"), "what is new is seen"
        await page.reload()
        await page.wait_for_selector("#file-shown .add")
        await page.go_back()
        await page.wait_for_selector("#file-list [data-file='a.txt']:visible")
        await page.go_forward()
        await page.wait_for_selector("#file-shown .add:visible")


async def test_a_look_at_another_view_of_the_phone_keeps_the_place_in_the_conversation(tmp_path: Path) -> None:
    turns = [Turn(items=(SayText(text=LONG),)), Turn(items=(SayText(text=LONG),))]
    async with page_with_model(tmp_path, turns) as (served, seen):
        page = await seen.page(served, **PHONE)
        await start_session(page, "Tell me.")
        await page.wait_for_selector(".item.end")
        end = await _place(page)
        await page.click("[data-show=plan]")
        await page.click("[data-show=conversation]")
        assert await _place(page) == end, "the end is the end"
        await page.evaluate("scrollTo({ top: 900, behavior: 'instant' })")
        await page.wait_for_selector("#newest:visible")
        for name in ("changes", "files"):
            await page.click(f"[data-show={name}]")
            assert await _place(page) == 0
        await page.click("[data-show=conversation]")
        assert await _place(page) == 900
        assert await page.is_visible("#newest"), "it does not follow"


async def test_back_leads_from_a_view_of_the_phone_to_the_conversation_and_its_address_to_the_view(
    tmp_path: Path,
) -> None:
    async with page_with_model(tmp_path, [Turn(items=(SayText(text=LONG),))]) as (served, seen):
        page = await seen.page(served, **PHONE)
        await start_session(page, "Tell me.")
        await page.wait_for_selector(".item.end")
        address, entries = page.url, await page.evaluate("history.length")
        await page.evaluate("scrollTo({ top: 900, behavior: 'instant' })")
        for name in ("changes", "files", "plan"):
            await page.click(f"[data-show={name}]")
        assert page.url == f"{address}#plan"
        await page.go_back()
        await page.wait_for_selector("[data-show=conversation][aria-selected=true]")
        assert (await _place(page), page.url) == (900, address)
        await page.reload()
        await page.wait_for_selector(".item.end")
        assert abs(await _place(page) - 900) < 60
        await page.go_forward()
        await page.wait_for_selector("#p-plan:visible")
        await page.reload()
        await page.wait_for_selector("#p-plan:visible")
        await page.click("[data-show=conversation]")
        await becomes(page, f"location.href === '{address}'")
        assert await page.evaluate("history.length") == entries + 1
        other = await seen.page(served, **PHONE)
        await other.goto(f"{address}#changes")
        await other.wait_for_selector("#p-changes:visible")
        await other.click("[data-show=conversation]")
        await becomes(other, f"location.href === '{address}'")


async def test_that_something_came_in_the_review_moves_no_change_that_is_read(tmp_path: Path) -> None:
    def writes(name: str) -> Turn:
        return Turn(items=(make("write_to_file", path=name, content="one\ntwo\n"),))

    turns = [
        writes("a.txt"),
        Turn(items=(SayText(text="Done."),)),
        writes("b.txt"),
        Turn(items=(SayText(text="Done."),)),
    ]
    async with page_with_model(tmp_path, turns, "--mode", "full") as (served, seen):
        page = await seen.page(served, **DESK)
        session = await start_session(page, "Write.")
        await page.wait_for_selector(".item.end")
        review = await page.context.new_page()
        await review.set_viewport_size(DESK["viewport"])
        await review.goto(f"{served.address}/s/{session}/review")
        await review.wait_for_selector(".hunk")
        top = "document.querySelector('.hunk').getBoundingClientRect().top"
        before = await review.evaluate(top)
        await page.fill("#text", "Another.")
        await page.press("#text", "Enter")
        await becomes(page, "document.querySelectorAll('.item.end').length === 2")
        await review.bring_to_front()
        await review.wait_for_selector("#fresh:visible")
        assert await review.evaluate(top) == before
        assert await review.evaluate("document.getElementById('fresh').getBoundingClientRect().bottom <= innerHeight")
        await review.click("#fresh button")
        await review.wait_for_selector("text=b.txt")


async def test_the_head_of_the_inbox_counts_what_its_list_has(tmp_path: Path) -> None:
    turns = [Turn(items=(run("git push origin main"),)) for _ in range(2)]
    async with page_with_model(tmp_path, turns) as (served, seen):
        inbox = await seen.page(served, "/inbox", **DESK)
        assert await inbox.inner_text("#how-many") == ""
        for count, said in enumerate(("1 question of 1 session", "2 questions of 2 sessions"), 1):
            page = await inbox.context.new_page()
            await page.goto(served.address)
            await start_session(page, f"Push {count}.")
            await inbox.bring_to_front()
            await inbox.wait_for_selector(f"#how-many:text-is('{said}')")
            assert await inbox.locator("a.item").count() == count
            await becomes(inbox, "!document.querySelector('.crumb').textContent.includes('long ago')")
            await inbox.evaluate("document.querySelector('.crumb .meta').textContent = 'waits since long ago'")
        await inbox.keyboard.press("j")
        assert await inbox.locator("a.item >> nth=1").get_attribute("aria-current") == "true", "the first j moves"
