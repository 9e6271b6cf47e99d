"""The screen of batches in a real browser: axe-core and a ruler find nothing wrong in any state, theme and width."""

from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.needed import PEERS
from tests.web.driving import in_shared_browser, page_with_model
from tests.web.test_fleet_page import progress
from treadle.app.reports.known_batches import keep_progress
from treadle.present.batch_progress import TaskMark

pytestmark = in_shared_browser

AXE = PEERS / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = (320, 360, 390, 820, 1080, 1280, 1440)

WRONG = """async () => {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the window");
  for (const one of document.querySelectorAll("main *")) {
    const { left, right, width } = one.getBoundingClientRect();
    if (width && (right > innerWidth + 1 || left < -1)) found.push(`<${one.localName} ${one.className}> sticks out`);
  }
  for (const one of document.querySelectorAll("main a[href]")) {
    const { width, height } = one.getBoundingClientRect();
    const inText = getComputedStyle(one).display === "inline";
    if (!inText && (width < 24 || height < 24)) found.push(`a target of ${width} × ${height}`);
  }
  if (window.axe) {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    found.push(...violations.map((one) => `${one.id}: ${one.nodes[0].html} ${one.nodes[0].any[0]?.message ?? ""}`));
  }
  return [...new Set(found)].slice(0, 20);
}"""


async def _wrong(page: Page) -> list[str]:
    """Look at the screen that is open in each theme and width; gives what is wrong."""
    found: list[str] = []
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 800})
            found += [f"{theme} {width}: {one}" for one in await page.evaluate(WRONG)]
    return found


async def test_nothing_is_wrong_with_batches_in_any_state_theme_and_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    many = tuple(TaskMark(id=f"task-{n}", state="done", session=f"s{n}", cost=0.01) for n in range(200))
    folder = f"/{'a-long-folder-without-a-break' * 6}"
    async with page_with_model(tmp_path, ()) as (served, seen):
        page = await seen.page(served, "/fleet")
        await page.wait_for_selector("html[data-ready]", state="attached")
        if AXE.exists():
            await page.evaluate(AXE.read_text())
        assert await _wrong(page) == [], "without a batch"
        keep_progress(progress("works", folder=folder, sessions={"c": "run-1.c"}))
        keep_progress(progress("gone", process="1:1999999999:0-0"))
        keep_progress(progress("paid", exit_code=54, database="postgresql://host/f", running={}))
        keep_progress(progress("done", exit_code=0, tasks=200, ended=many, running={}))
        await page.wait_for_selector("#batch-done")
        assert await page.locator("section.batch").count() == 4
        assert await _wrong(page) == [], "with batches"
        keep_progress(progress("paused", exit_code=75, command=("tasks.jsonl",), folder=folder))
        for run in ("works", "paused", "done"):
            await page.goto(f"{served.address}/fleet/{run}")
            await page.wait_for_selector("html[data-ready]", state="attached")
            if AXE.exists():
                await page.evaluate(AXE.read_text())
            for one in await page.locator("summary").all():
                await one.click()
            assert await _wrong(page) == [], run
