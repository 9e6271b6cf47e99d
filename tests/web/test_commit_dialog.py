"""The dialog of a commit in a real browser: what is written and chosen in it stays until it is committed."""

from pathlib import Path

from playwright.async_api import Page

from tests.e2e.faults.driving import make
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from tests.web.test_commit import DONE, WRITE, git, repository
from treadle.providers.scripted.script import Expectation, SayText, Texts, Turn, Wait

pytestmark = in_shared_browser

MESSAGE = "#commit [name=message]"
CUT = """parts => parts.filter((part) => getComputedStyle(part).overflowX !== "visible" ||
    part.getBoundingClientRect().right > part.closest("ul").getBoundingClientRect().right).length"""


async def opened(page: Page) -> None:
    """Work, and open the dialog."""
    await start_session(page, "Write.")
    await page.wait_for_selector(".item.end [data-commit]")
    await page.click(".item.end [data-commit]")
    await page.wait_for_selector("#commit[open] #do-commit")


async def test_a_file_that_changed_since_it_was_listed_is_looked_at_again_with_the_message_kept(tmp_path: Path) -> None:
    repository(tmp_path / "ws")
    async with page_with_model(tmp_path, [WRITE, DONE], "--mode", "edits", "--trust") as (served, seen):
        page = await seen.page(served)
        await opened(page)
        await page.fill(MESSAGE, "Mine alone")
        await page.uncheck("#commit [value='other.txt']")
        (served.folder / "new.txt").write_text("later\n")
        await page.click("#do-commit")
        await page.wait_for_selector("#committed :text('new.txt is not as it was listed.')")
        assert "Begin" in git(served.folder, "log", "--format=%s", "-1"), "nothing is committed"
        assert await page.input_value(MESSAGE) == "Mine alone"
        assert not await page.is_checked("#commit [value='other.txt']")
        await becomes(page, "document.getElementById('do-commit').textContent === 'Commit 1 file'")
        seen.complaints.clear()  # the browser names the answer that refused
        await page.click("#do-commit")
        await page.wait_for_selector("#commit-title:text('Committed on main')")
        assert git(served.folder, "show", "--format=%s", "HEAD:new.txt") == "later\n"


async def test_what_was_written_stays_over_esc_and_over_a_late_answer_of_the_model(tmp_path: Path) -> None:
    repository(tmp_path / "ws")
    when = Expectation(last_user=Texts(contains=("message of a commit",)))
    late = [Turn(when=when, items=(Wait(seconds=1.5), SayText(text=f"Of the model {n}"))) for n in range(2)]
    async with page_with_model(tmp_path, [*late, WRITE, DONE], "--mode", "edits", "--trust") as (served, seen):
        page = await seen.page(served)
        await opened(page)
        await page.fill(MESSAGE, "Mine alone")
        assert await page.inner_text("#commit-title") == "Commit to main"
        await page.fill("#commit [name=branch]", "work")
        assert await page.inner_text("#commit-title") == "Commit", "to the new branch"
        await page.uncheck("#commit [value='other.txt']")
        await page.keyboard.press("Escape")
        await page.wait_for_selector("#commit", state="hidden")
        await page.click(".item.end [data-commit]")
        await page.wait_for_selector("#commit[open] #do-commit:text('Commit 1 file')")
        assert await page.input_value(MESSAGE) == "Mine alone"
        assert await page.input_value("#commit [name=branch]") == "work"
        await page.route("**/commit/message", lambda route: route.abort())
        await page.click("[data-write]")
        await page.wait_for_selector("[data-write]:not([disabled]):has-text('Let the model write it')")
        await page.unroute("**/commit/message")
        seen.complaints.clear()  # the browser names what was aborted
        await page.click("[data-write]")
        await page.fill(MESSAGE, "Mine, changed")
        await page.wait_for_selector("[data-write]:not([disabled]):has-text('Write anew')")
        assert await page.input_value(MESSAGE) == "Mine, changed"
        async with page.expect_response("**/commit/message"):
            await page.click("[data-write]")
            await page.click("#do-commit")
            await page.wait_for_selector("#commit-title:text('Committed on work')")
        await page.wait_for_timeout(100)  # what it does with the answer would be complained of
        assert git(served.folder, "show", "--format=%s", "--name-only").split("\n\n") == ["Mine, changed", "new.txt\n"]


async def test_a_long_name_hides_neither_its_end_nor_the_figures_of_the_files(tmp_path: Path) -> None:
    repository(tmp_path / "ws")
    names = (
        "a.txt",
        "packages/frontend/src/components/settings/NotificationPreferencesPanel.test.tsx",
        f"{'x' * 200}.txt",
    )
    writes = Turn(items=tuple(make("write_to_file", path=name, content="1\n") for name in names))
    async with page_with_model(tmp_path, [writes, DONE], "--mode", "edits", "--trust") as (served, seen):
        page = await seen.page(served)
        await opened(page)
        for width in (1440, 390, 320):
            await page.set_viewport_size({"width": width, "height": 844})
            cut = await page.eval_on_selector_all("#commit li :is(code, .pm)", CUT)
            assert cut == 0, width


async def test_what_the_remote_refused_is_said_at_the_push_which_is_offered_until_it_is_done(tmp_path: Path) -> None:
    repository(tmp_path / "ws")
    git(tmp_path, "init", "-q", "--bare", "remote")
    git(tmp_path / "ws", "remote", "add", "origin", str(tmp_path / "remote"))
    hook = tmp_path / "remote" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho Not today.\nexit 1\n")
    hook.chmod(0o755)
    async with page_with_model(tmp_path, [WRITE, DONE], "--mode", "edits", "--trust") as (served, seen):
        page = await seen.page(served)
        await opened(page)
        await page.click("#do-commit")
        await page.wait_for_selector("#commit .fill:focus:text('Push it')")
        assert await page.locator("#commit .fill").count() == 1, "the next sensible thing"
        await page.click("#commit button:has-text('Push it')")
        await page.wait_for_selector("#commit .command p.no:text('The push failed.') + pre:has-text('Not today.')")
        await page.click("#commit button:has-text('Close')")
        hook.unlink()
        await page.click(".item.end [data-commit]")
        await page.wait_for_selector("#commit[open] :text('2 commits of main are not on origin yet.')")
        await page.click("#commit button:has-text('Push it')")
        await page.wait_for_selector("#commit .command p:text('It is pushed.')")
        assert git(tmp_path / "remote", "log", "-1", "--format=%s", "main") == "Write.\n"
