"""Questions of one effect in the inbox are allowed together, each by itself and after all of it was shown."""

from pathlib import Path

from tests.e2e.faults.driving import make, run
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from treadle.providers.scripted.script import Expectation, SayText, Texts, Turn

pytestmark = in_shared_browser

LONG = "".join(f"line {n}\n" for n in range(1, 60))
CALLS = {
    "first": make("write_to_file", path="a.txt", content=LONG),
    "second": make("write_to_file", path="b.txt", content="b\n"),
    "third": make("write_to_file", path="c.txt", content="c\n"),
    "fourth": run("git push origin main"),
    "fifth": run("python3 a.py"),
    "sixth": run("python3 -m unittest"),
    "seventh": run("rm a.txt && python3 a.py"),
}
TURNS = (
    *(Turn(when=Expectation(last_user=Texts(contains=(word,))), items=(call,)) for word, call in CALLS.items()),
    *(Turn(items=(SayText(text="Written."),)) for _ in CALLS),
)


async def test_edits_are_allowed_together_without_those_that_were_unticked_and_without_what_reaches_further(
    tmp_path: Path,
) -> None:
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        (served.folder / "AGENTS.md").write_text("Be brief.\n")
        page = await seen.page(served)
        await page.fill("#start textarea", "Do the first one.")
        await page.click("#start button[type=submit]")
        await page.click("#trust button:has-text('Continue without')")  # so that its programs ask before they run
        await page.wait_for_selector("#questions .question")
        for word in [*CALLS][1:]:
            await page.goto(f"{served.address}/")
            await start_session(page, f"Do the {word} one.")
            await page.wait_for_selector("#questions .question")
        await page.goto(f"{served.address}/inbox")
        heads = await page.locator(".ilist h2:has(button)").all_inner_texts()
        assert [" ".join(one.split()) for one in heads] == [
            "Commands that run project code 2 Allow all 2 once…",
            "Edits 3 Allow all 3 once…",
        ]
        await page.click(".item:has-text('unittest')")
        await page.click(".card.on p.alike:has-text('1 other of this kind waits') button:has-text('Allow all 2 once…')")
        assert "unittest" in await page.inner_text("dialog.alike")
        assert "rm a.txt" not in await page.inner_text("dialog.alike"), "it has another effect, too"
        await page.click("dialog.alike button:has-text('Cancel')")
        await page.click(".ilist [data-together]:has-text('Allow all 3 once')")
        shown = await page.inner_text("dialog.alike")
        assert "line 59" in shown, "all of each call is shown"
        assert "git push" not in shown
        await page.click("dialog.alike li:has-text('c.txt') input")
        await page.click("dialog.alike .fill:has-text('Allow 2 once')")
        await becomes(page, "document.querySelectorAll('.ilist a.item').length === 5")
        left = await page.inner_text(".ilist")
        assert "c.txt" in left
        assert "git push" in left
        await page.goto(f"{served.address}/sessions")
        await becomes(page, "document.querySelectorAll('tr .chip.state.done').length === 2")
        assert sorted(one.name for one in served.folder.glob("*.txt")) == ["a.txt", "b.txt"]
