"""A session on the page: a task from its first word to its end, with a question, in a real browser."""

from pathlib import Path

from tests.e2e.faults.driving import make, run
from tests.web.driving import needs_chromium, page_with_model, start_session
from treadle.providers.scripted.script import SayText, Turn

pytestmark = needs_chromium

TURNS = (
    Turn(
        items=(
            SayText(text="I write the file.\n\n```python\nprint('<b>')\n```\n"),
            make("write_to_file", path="a.txt", content="one\n"),
        )
    ),
    Turn(items=(SayText(text="It is **written**."), run("echo done > b.txt"))),
    Turn(items=(make("attempt_completion", result="All done, see `a.txt`."),)),
)


async def test_a_task_with_two_questions_from_the_list_to_its_end(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Write a file.")
        await page.wait_for_selector(".question")
        assert "a.txt" in await page.inner_text(".question h2")
        await page.wait_for_timeout(700)
        await page.click(".question button[data-option=allow_once]")
        await page.wait_for_selector(".question:has-text('echo done')")
        assert (served.folder / "a.txt").read_text() == "one\n"
        await page.wait_for_timeout(700)
        await page.click(".question button[data-option=allow_once]")
        await page.wait_for_selector(".item.end")
        text = await page.inner_text("#items")
        assert "Write a file." in text
        assert "All done, see a.txt." in text
        assert "print('<b>')" in text
        assert await page.locator("#items strong").inner_text() == "written"
        await page.reload()
        await page.wait_for_selector(".item.end")
        assert (await page.inner_text("#items")).split() == text.split()
