"""The screen of batches in a real browser: axe-core and a ruler find nothing wrong in any state, theme and width."""

from pathlib import Path

import pytest

from tests.web.driving import in_shared_browser, page_with_model
from tests.web.looks import wrong
from tests.web.test_fleet_page import progress
from treadle.app.reports.known_batches import keep_progress
from treadle.present.batch_progress import TaskMark

pytestmark = in_shared_browser


async def test_nothing_is_wrong_with_batches_in_any_state_theme_and_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    many = tuple(TaskMark(id=f"task-{n}", state="done", session=f"s{n}", cost=0.01) for n in range(200))
    folder = f"/{'a-long-folder-without-a-break' * 6}"
    async with page_with_model(tmp_path, ()) as (served, seen):
        page = await seen.page(served, "/fleet")
        await page.wait_for_selector("html[data-ready]", state="attached")
        assert await wrong(page) == [], "without a batch"
        keep_progress(progress("works", folder=folder, sessions={"c": "run-1.c"}))
        keep_progress(progress("gone", process="1:1999999999:0-0"))
        keep_progress(progress("paid", exit_code=54, database="postgresql://host/f", running={}))
        keep_progress(progress("done", exit_code=0, tasks=200, ended=many, running={}))
        await page.wait_for_selector("#batch-done")
        assert await page.locator("section.batch").count() == 4
        assert await wrong(page) == [], "with batches"
        keep_progress(progress("paused", exit_code=75, command=("tasks.jsonl",), folder=folder))
        for run in ("works", "paused", "done"):
            await page.goto(f"{served.address}/fleet/{run}")
            await page.wait_for_selector("html[data-ready]", state="attached")
            for one in await page.locator("summary").all():
                await one.click()
            assert await wrong(page) == [], run
        await page.focus(".squares a")
        await page.keyboard.press("ArrowRight")
        assert await page.evaluate("document.activeElement.title") == "task-1: passed, $0.01"
        assert await page.locator(".squares a:not([tabindex='-1'])").count() == 1, "one stop for Tab"
