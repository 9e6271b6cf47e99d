"""The review and the timeline in a real browser: with keys, while the session works, and back again."""

import asyncio
from pathlib import Path

from playwright.async_api import Page

from tests.e2e.faults.driving import make
from tests.e2e.running import log_of
from tests.web.driving import (
    PATIENCE,
    Seen,
    Served,
    becomes,
    close_session,
    in_shared_browser,
    page_with_model,
    require_accessible,
    start_session,
)
from treadle.protocol.events import Prompt
from treadle.protocol.messages import text_of
from treadle.protocol.sealed import TurnSettled
from treadle.providers.scripted.script import Turn

pytestmark = in_shared_browser

TEN = "".join(f"line {number}\n" for number in range(1, 31))
EDITED = TEN.replace("line 2\n", "second\n").replace("line 15\n", "").replace("line 29\n", "<b>29</b>\n")
DONE = Turn(items=(make("attempt_completion", result="Done."),))
TURNS = (
    Turn(items=(make("read_file", path="src/a.txt"), make("write_to_file", path="src/a.txt", content=EDITED))),
    Turn(items=(make("write_to_file", path="b.txt", content="new\n"),)),
    DONE,
    Turn(items=(make("write_to_file", path="c.txt", content="later\n"),)),
    DONE,
)


HIDDEN = (".hunks", "[data-do=reject-file]", "[data-do=look]")
"""What a file has that was viewed: folded, with a way to look again."""


async def _press(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def _review(page: Page, served: Served) -> None:
    """Go through changes with keys: accept, take back, undo, write other lines, and comment."""
    file = served.folder / "src" / "a.txt"
    await page.wait_for_selector("html[data-ready] .hunk")
    assert await page.locator(".hunk").count() == 4
    assert await page.locator(".tree a").count() == 2
    await _press(page, "n")
    assert await page.evaluate("document.activeElement.dataset.path") == "b.txt"
    await _press(page, "v")
    assert [await page.locator(f"#f0 {one}").is_visible() for one in HIDDEN] == [False, False, True]
    await page.click("#f0 [data-do=look]")
    assert [await page.locator(f"#f0 {one}").is_visible() for one in HIDDEN] == [True, True, True], "as often as wanted"
    await page.click("#f0 [data-do=look]")
    await page.locator("#f0").focus()
    await _press(page, "n", "j", "j", "k", "u", "a")
    await page.wait_for_selector("#f1 .hunk.accepted")
    await page.reload()
    assert await page.evaluate("document.body.classList.contains('split')"), "the layout is remembered"
    assert await page.locator("#f0.done").count() == 1, "what was viewed is remembered"
    assert await page.get_attribute("#f1 .hunk.accepted", "data-index") == "0"
    await page.locator("#f1 .hunk").nth(2).focus()
    await _press(page, "x")
    assert file.read_text() == EDITED, "a key alone takes nothing back"
    await _press(page, "Enter")
    await page.wait_for_selector(".told:has-text('Rejected') .undoes:focus")
    assert file.read_text() == EDITED.replace("<b>29</b>\n", "line 29\n")
    await becomes(page, "document.querySelectorAll('#f1 .hunk').length === 2")
    await page.click(".told button:has-text('Undo')")
    await becomes(page, "document.querySelectorAll('#f1 .hunk').length === 3")
    assert file.read_text() == EDITED
    top = await page.locator("#f1").evaluate("one => one.getBoundingClientRect().top + scrollY")
    await page.click("#f0 [data-do=look]")
    await page.click("#f0 [data-do=reject-file]")
    await page.wait_for_selector(".told:has-text('Rejected in b.txt') .undoes:focus")
    assert (
        await page.locator(".told:has(.undoes)").evaluate("one => one.nextElementSibling.dataset.path") == "src/a.txt"
    )
    moved = await page.locator(".file-changed").evaluate("one => one.getBoundingClientRect().top + scrollY")
    assert moved < top, "nothing comes above it"
    await _press(page, "v")
    assert await page.locator(".file-changed.done").get_attribute("data-path") == "src/a.txt", (
        "of the next, not the first"
    )
    await _press(page, "v", "Enter")
    await page.wait_for_selector(".file-changed[data-path='b.txt']")
    assert await page.locator(".hunk.rejected").count() == 0
    await page.locator("#f1 .hunk").nth(2).focus()
    await _press(page, "e")
    await page.fill("form.amend textarea", "twenty-nine\n<i>\n")
    await _press(page, "Control+Enter")
    await page.wait_for_selector("#f1 .line.add:has-text('twenty-nine')")
    assert file.read_text() == EDITED.replace("<b>29</b>\n", "twenty-nine\n<i>\n")
    await page.locator("#f1 .hunk").nth(0).locator(".half.new .num.new").click()
    await page.fill("form.comment textarea", "Why second?")
    await _press(page, "Control+Enter")
    await page.wait_for_selector(".said-here:has-text('Why second?')")


async def _conflict(page: Page, served: Served) -> None:
    """Take back what somebody else has changed since: the versions are shown, and nothing is done."""
    file = served.folder / "src" / "a.txt"
    before = file.read_text()
    file.write_text(before.replace("second", "2nd"))
    await page.locator("#f1 .hunk").nth(0).locator("[data-do=reject]").click()
    await page.wait_for_selector("#f1 .conflict")
    versions = page.locator(".conflict .version")
    said = [(await versions.nth(at).inner_text()).split("\n") for at in range(await versions.count())]
    assert [lines[0] for lines in said] == ["Before the session", "As the session left it", "In the folder now"]
    assert ["line 2" in said[0], "second" in said[1], "2nd" in said[2]] == [True] * 3
    assert file.read_text() == before.replace("second", "2nd")
    await require_accessible(page)
    await page.click(".conflict button")
    file.write_text(before)
    await page.reload()
    await page.wait_for_selector("html[data-ready] #f1 .hunk")


async def _message(page: Page, served: Served) -> None:
    """Send the comments; what comes of them meanwhile is announced, and what is typed stays."""
    await _press(page, "m")
    await page.wait_for_selector("#message[open]")
    assert "src/a.txt, line 2:\n\n```diff\n+second\n```" in await page.input_value("#message-text")
    await _press(page, "Control+Enter")
    await page.wait_for_selector("#collected", state="hidden")
    await page.locator("#f1 .hunk").nth(1).focus()
    await _press(page, "c")
    await page.fill("form.comment textarea", "Not yet done")
    async with asyncio.timeout(PATIENCE):  # not for its first checkpoint alone, and nothing is restored while it works
        while sum(isinstance(event.data, TurnSettled) for event in log_of(served.program.home)) < 2:
            await asyncio.sleep(0.1)
    await page.wait_for_selector("#fresh:has-text('steps since you looked'):not([hidden])")
    await page.click("#fresh button")
    await page.wait_for_selector(".file-changed[data-path='c.txt']")
    assert await page.locator("#fresh").get_attribute("hidden") is not None
    assert await page.input_value("form.comment textarea") == "Not yet done"
    said = [text_of(event.data.content) for event in log_of(served.program.home) if isinstance(event.data, Prompt)]
    assert said[-1].startswith("Comments on your changes (1 comment):")


async def _timeline(page: Page, served: Served) -> None:
    """Filter, open an event by its link, restore with a preview, undo it, and fork."""
    await page.click("nav.seg a:has-text('All')")
    await page.wait_for_selector("html[data-ready] .event")
    await _press(page, "p", "Enter")
    await page.wait_for_selector(".event.checkpoint .detail dt")
    await page.select_option("#topic", "decisions")
    await becomes(page, "location.search === '?topic=decisions'")
    await page.wait_for_selector("html[data-ready] .event")
    titles = await page.locator(".event strong").all_inner_texts()
    assert {title.split(" ")[0] for title in titles} == {"Allowed"}
    link = await page.locator(".event .seq").first.get_attribute("href")
    await page.goto(f"{served.address}{page.url.partition(served.address)[2].partition('?')[0]}{link}")
    await page.wait_for_selector(".event details[open] h2:has-text('Why')")
    file, later = served.folder / "src" / "a.txt", served.folder / "c.txt"
    now = file.read_text()
    await page.click("nav.seg a:has-text('Steps')")
    await page.wait_for_selector("html[data-ready] .step.point")
    await page.locator(".step.point").first.focus()
    await _press(page, ".", "ArrowDown")
    await page.wait_for_selector(".menu[open] [data-act=restore]:focus")
    await _press(page, ".")
    tops = "[...document.querySelectorAll('.step')].map((one) => one.getBoundingClientRect().top)"
    before = await page.evaluate(tops)
    await _press(page, "r")
    await page.wait_for_selector("#restore:not([hidden]) .paths")
    assert await page.evaluate(tops) == before, "no row moves"
    assert await page.inner_text("#restore-title") == "Restore to before this message?"
    assert await page.locator(".leaving").count() > 1, "what would leave the conversation is struck"
    await page.click("[data-what=files]")
    await becomes(page, "document.querySelectorAll('.leaving').length === 0")
    await page.wait_for_selector("#preview [data-what=files][aria-pressed=true]:focus")
    words = (await page.inner_text("#preview .delete:has-text('c.txt') summary")).split()
    assert words == ["D", "c.txt", "+0−1", "is", "deleted"]
    assert await page.locator("#preview details").first.evaluate("one => one.open"), "the first is open"
    assert later.exists(), "a preview changes nothing"
    await require_accessible(page)
    await page.click("#really")
    await page.wait_for_selector("#undo:not([hidden]):has-text('Restored to before this message. ')")
    assert (file.exists(), later.exists()) == (True, False)
    assert file.read_text() == TEN
    async with page.expect_response("**/restore") as undone:  # what is shown then stood there before
        await page.click("#undo button:has-text('Undo')")
    assert (await (await undone.value).json())["files"]
    assert (file.read_text(), later.exists()) == (now, True)
    await page.click("nav.seg a:has-text('All')")
    await page.wait_for_selector("html[data-ready] .event strong:has-text('3 files restored')")
    await page.evaluate(
        "fetch(location.pathname.replace('timeline', 'change'), {method: 'POST', body: '{\"mode\": \"plan\"}', "
        "headers: {'content-type': 'application/json', 'x-treadle-key': localStorage.getItem('treadle-key')}})"
    )
    await page.wait_for_selector("#fresh:not([hidden])")
    await page.click("#fresh button")
    await page.wait_for_selector(".event strong:has-text('Mode plan')")
    before = page.url
    await page.click("nav.seg a:has-text('Steps')")
    await page.wait_for_selector("html[data-ready] .step.point")
    await page.locator(".step.point").first.focus()
    await _press(page, "f")
    await page.wait_for_selector("#say")
    assert page.url.rpartition("/s/")[2] not in before


async def test_changes_are_reviewed_and_gone_back_to_from_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "ws" / "src"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text(TEN)
    async with page_with_model(tmp_path, TURNS, "--mode", "full", "--trust") as (served, seen):
        page = await seen.page(served, bypass_csp=True)
        session = await start_session(page, "Edit the file.")
        await page.wait_for_selector(".item.end")
        await page.goto(f"{served.address}/s/{session}/review")
        await _review(page, served)
        await _conflict(page, served)
        await require_accessible(page)
        await _message(page, served)
        await page.goto(f"{served.address}/s/{session}/timeline")
        await require_accessible(page)
        await _timeline(page, served)
        await _phone(seen, served, session)


async def test_a_restore_does_what_its_preview_showed_or_nothing(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, TURNS[1:], "--mode", "full", "--trust") as (served, seen):
        page = await seen.page(served)
        session = await start_session(page, "Edit the file.")
        await page.wait_for_selector(".item.end")
        past = await page.context.new_page()
        await past.goto(f"{served.address}/s/{session}/timeline")
        await past.wait_for_selector("html[data-ready] .step.point")
        points = past.locator(".step.point")
        await points.first.focus()
        await past.keyboard.press("r")
        await past.wait_for_selector("#preview .delete:has-text('b.txt')")
        await page.fill("#text", "More.")
        await page.keyboard.press("Enter")
        await becomes(page, "document.querySelectorAll('.item.end').length === 2")
        await past.click("#really")
        await past.wait_for_selector(".failed-here:has-text('1 message and 2 steps more')")
        await past.wait_for_selector("#preview .delete:has-text('c.txt')")
        assert (served.folder / "c.txt").exists(), "nothing was restored"
        await past.route("**/restore/preview", lambda route: route.abort())
        await points.nth(1).focus()
        await past.keyboard.press("r")
        await past.wait_for_selector("#restore", state="hidden")
        assert await past.locator(".step.chosen").count() == 0, "no step is chosen under the title of another one"
        await past.unroute("**/restore/preview")
        await points.first.focus()
        await past.keyboard.press("r")
        await past.wait_for_selector("#preview .delete:has-text('c.txt')")
        await past.click("#really")
        await past.wait_for_selector("#undo:has-text('2 files deleted')")
        assert [one.name for one in served.folder.iterdir()] == []
        ends = page.locator(".item.end:has-text('1 file restored since')")
        await ends.nth(1).wait_for()
        for end in await page.locator(".item.end").all():
            assert await end.locator("[data-undo], [data-commit], a").count() == 0, "nothing is left to review"


async def _phone(seen: Seen, served: Served, session: str) -> None:
    page = await seen.page(served, f"/s/{session}/review", viewport={"width": 360, "height": 740})
    for screen in ("review", "timeline"):
        await page.goto(f"{served.address}/s/{session}/{screen}")
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        if screen == "review":
            await page.wait_for_selector("html[data-ready] .hunk")
            await page.locator("#f1 .hunk").last.evaluate("one => one.scrollIntoView({ block: 'center' })")
            named = await page.locator("#f1 > header > .row").evaluate("one => one.getBoundingClientRect().top")
            assert named >= 0, "the file's name and figures stay in sight"


async def test_comments_to_a_closed_session_are_sent_after_the_question_about_its_folder_and_kept_till_then(
    tmp_path: Path,
) -> None:
    turns = [Turn(items=(make("write_to_file", path="b.txt", content="new\n"),)), DONE, DONE]
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "AGENTS.md").write_text("Be brief.\n")
    async with page_with_model(tmp_path, turns, "--mode", "full") as (served, seen):
        page = await seen.page(served)
        await page.fill("#start textarea", "Write it.")
        await page.click("#start button[type=submit]")
        await page.click("#trust button:has-text('Continue without')")
        await page.wait_for_url("**/s/*")
        session = page.url.rpartition("/s/")[2]
        await page.wait_for_selector(".item.end")
        await close_session(page)
        await page.wait_for_selector("#continue")
        await page.goto(f"{served.address}/s/{session}/review")
        await page.wait_for_selector("html[data-ready] .hunk")
        await page.locator(".hunk [data-do=comment]").click()
        await page.fill("form.comment textarea", "Why new?")
        await _press(page, "Control+Enter")
        await page.click("#write")
        (served.folder / "AGENTS.md").write_text("Be quick.\n")  # of what has changed it asks again
        await page.click("#send")
        await page.wait_for_selector("#message[open] #trust .question")
        assert await page.locator(".said-here").count() == 1
        await page.click("#trust button:has-text('Continue without')")
        await page.wait_for_selector("#collected", state="hidden")
        said = [text_of(event.data.content) for event in log_of(served.program.home) if isinstance(event.data, Prompt)]
        assert len(said) == 2
        assert "Why new?" in said[-1]
