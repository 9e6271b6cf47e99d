"""A restore of which files have conflicts: the preview says what it does, and what came of it says the same."""

from pathlib import Path

from playwright.async_api import Page

from tests.e2e.faults.driving import make
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import Turn

pytestmark = in_shared_browser

WRITES = [
    Turn(items=tuple(make("write_to_file", path=f"{name}.txt", content=f"{number}\n") for name in ("a", "b")))
    for number in (1, 2)
]
DONE = Turn(items=(make("attempt_completion", result="Done."),))


async def shown(page: Page) -> list[str]:
    lines = page.locator("#preview li:not(:has(summary)), #preview summary")
    return [" ".join(text.split()) for text in await lines.all_inner_texts()]


async def test_a_restore_of_files_with_conflicts_does_what_its_button_says(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [*WRITES, DONE], "--mode", "edits", "--trust") as (served, seen):
        page = await seen.page(served)
        session = await start_session(page, "Write.")
        await page.wait_for_selector(".item.end")
        a, b = (served.folder / f"{name}.txt" for name in ("a", "b"))
        a.write_text("mine\n")
        b.write_text("mine\n")
        await page.goto(f"{served.address}/s/{session}/timeline")
        await page.wait_for_selector("html[data-ready] .step")
        await page.wait_for_timeout(4_000)  # the session keeps what others changed: a preview of before that is refused
        why = "The same lines were changed again later."
        stay = [f"{name}.txt: {why}" for name in ("a", "b")]

        async def look() -> None:
            await page.locator(".step[data-name='step 1']").focus()
            await page.keyboard.press("r")
            await page.wait_for_selector("#preview li")

        await look()
        assert await shown(page) == stay
        assert (await page.inner_text("#preview h3")).strip() == "Not restored"
        await page.wait_for_selector("#preview :text('No file is restored.')")
        assert await page.inner_text("#really") == "Restore only the conversation"
        await page.click("[data-what=files]")
        await page.wait_for_selector("#really[disabled]:text-is('Nothing to restore')")
        await page.click("[data-what=conversation]")
        await page.wait_for_selector("#really:not([disabled]):text-is('Restore')")
        await page.click("[data-what=both]")
        await page.wait_for_selector("#really:text('Restore only the conversation')")
        await page.click("#really")
        await page.wait_for_selector("#undo:not([hidden])")
        lines = await page.locator("#undo p").all_inner_texts()
        assert lines == [
            "Restored to step 1. The conversation is restored.",
            *(f"Not restored: {name}.txt: {why}" for name in ("a", "b")),
        ]
        assert [a.read_text(), b.read_text()] == ["mine\n", "mine\n"]
        await page.click("#undo .undoes")
        await becomes(page, "!document.querySelector('#undo .undoes')?.disabled")
        b.write_text("2\n")
        restored = "#undo p:text-is('Restored to step 1. 1 file restored.')"
        for _ in range(5):  # the session keeps what others changed within seconds: a preview of before that is refused
            await look()
            assert await shown(page) == ["M b.txt +1−1 back to step 1", stay[0]]
            assert await page.inner_text("#really") == "Restore"
            await page.click("#really")
            await page.wait_for_selector(f"{restored}, #messages :text('newer work')")
            if await page.locator(restored).count():
                break
            await page.reload()
            await page.wait_for_selector("html[data-ready] .step")
        seen.complaints.clear()
        await page.wait_for_selector(restored)
        assert [a.read_text(), b.read_text()] == ["mine\n", "1\n"]
