"""What is open on a screen, in a real browser: axe-core, a ruler and the focus find nothing wrong with it."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from playwright.async_api import Page

from tests.e2e.faults.driving import make, run
from tests.web.driving import becomes, in_shared_browser, page_with_model, start_session
from tests.web.looks import wrong
from treadle.providers.scripted.script import SayText, SayThinking, Turn

pytestmark = in_shared_browser

LONG = "a_very_long_name_of_a_file_that_says_all_that_is_in_it_and_more.py"
WORD = "w" * 300
TURNS = (
    Turn(
        items=(
            SayThinking(text=f"I think of {WORD}."),
            SayText(text=f"I write it. {WORD}\n\n```python\n{WORD} = 1\n```\n\n[There](https://example.com/) it is."),
            make("write_to_file", path=LONG, content=f"# {WORD}\n{LONG[:-3]} = 1\n"),
        )
    ),
    Turn(items=(make("read_file", path=LONG), make("list_files", path="."), make("read_file", path="none.py"))),
    Turn(items=(run("seq 200; exit 3"),)),
    Turn(items=(make("write_to_file", path="b.txt", content="one\n" * 90), make("attempt_completion", result="Done."))),
    Turn(items=(SayText(text="Now I push it."), run(f"git push origin feature/{LONG}"))),
)
OPENS = "for (const one of document.querySelectorAll('main details:not(.menu)')) one.open = true"
FILLED = "!document.querySelector('details[open] > :is(.detail, .block-text):empty')"
LOST = """() => {
  const part = document.createElement("script");
  Object.assign(part, { type: "text/plain", src: `${location.origin}/part.js` });
  document.body.append(part);
  part.dispatchEvent(new Event("error"));
}"""
APART = """* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important; }"""
"""The spaces that a person may give to text by WCAG 1.4.12."""


async def _find_nothing(page: Page) -> None:
    await page.keyboard.press("Control+k")
    await page.keyboard.type("qqqq")
    await page.wait_for_selector("#palette >> text=Nothing matches.")


async def _open_all(page: Page) -> None:
    await page.evaluate(OPENS)
    await becomes(page, FILLED)


async def _set_apart(page: Page) -> None:
    await page.add_style_tag(content=APART)


async def _choose_files(page: Page) -> None:
    await page.click("#tab-files")
    await page.wait_for_selector("#file-list button")


async def _lose_a_part(page: Page) -> None:
    await page.evaluate(LOST)
    await page.wait_for_selector("#broken")


async def _open_column(page: Page) -> None:
    await page.set_viewport_size({"width": 360, "height": 800})
    await page.click("#open-column")


async def _go_back(page: Page) -> None:
    await page.keyboard.press("j")
    await page.keyboard.press("r")
    await page.wait_for_selector("#restore:not([hidden])")


async def _open_menu(page: Page) -> None:
    await page.keyboard.press("j")
    await page.keyboard.press(".")
    await page.wait_for_selector(".step .menu[open]")


async def _do_nothing(_: Page) -> None:
    """It is looked at as it opens."""


STATES: Mapping[str, tuple[str, Callable[[Page], Awaitable[None]]]] = {
    "a turn that ended": ("/s/ID", _do_nothing),
    "all that it did": ("/s/ID", _open_all),
    "a turn that ended, set apart": ("/s/ID", _set_apart),
    "the files beside it": ("/s/ID", _choose_files),
    "a step of it to go back to": ("/s/ID/timeline", _go_back),
    "what can be done with a step": ("/s/ID/timeline", _open_menu),
    "the column on a phone": ("/s/ID", _open_column),
    "its events": ("/s/ID/timeline?view=events", _open_all),
    "its window": ("/s/ID/context", _open_all),
    "what is shared of it": ("/s/ID/share", _open_all),
    "a part that did not load": ("/inbox", _lose_a_part),
    "what is nowhere": ("/inbox", _find_nothing),
    "rules that cannot be used": ("/policy", _do_nothing),
    "the settings": ("/settings/general", _open_all),
}


async def _look(page: Page, address: str, name: str, path: str, does: Callable[[Page], Awaitable[None]]) -> list[str]:
    await page.set_viewport_size({"width": 1440, "height": 800})
    await page.goto(address + path)
    await page.wait_for_selector("html[data-ready]", state="attached")
    await does(page)
    return [f"{name}, {one}" for one in await wrong(page, (("light", 1440), ("dark", 360)), focus=(360, 1440))]


async def test_nothing_is_wrong_with_what_is_open_and_the_focus_is_never_out_of_sight(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, TURNS, "--mode", "edits", "--trust") as (served, seen):
        page = await seen.page(served, bypass_csp=True)
        session = await start_session(page, f"Write it. {WORD}")
        await page.wait_for_selector(".question, .item.end", state="attached")
        (served.program.home / "policy.toml").write_text(f"version = 1\n[[rule]]\nid = '{WORD}'\n")
        found: list[str] = []
        for name, (path, does) in STATES.items():
            found += await _look(page, served.address, name, path.replace("ID", session), does)
        await page.goto(f"{served.address}/s/{session}")
        await page.fill("#text", "Push it.")
        await page.click("#send")
        await page.wait_for_selector(".question")
        found += await _look(page, served.address, "a question", f"/s/{session}", _do_nothing)
        assert found == [], "\n".join(found)


TOLD_APART = """() => {
  const knob = (one) => getComputedStyle(one, "::after");
  const [one] = document.querySelectorAll(".switch");
  return knob(one).backgroundColor !== getComputedStyle(document.body).backgroundColor;
}"""
CHOSEN = "[...document.querySelectorAll('[role=option]')].map((one) => getComputedStyle(one).outlineStyle)"


async def test_in_forced_colours_what_is_on_and_what_is_chosen_can_be_told(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, ()) as (served, seen):
        page = await seen.page(served, "/settings/general", bypass_csp=True, forced_colors="active")
        await page.wait_for_selector("html[data-ready] .switch", state="attached")
        assert await page.evaluate(TOLD_APART)
        await page.keyboard.press("Control+k")
        await page.wait_for_selector("#palette [role=option]")
        first, *others = await page.evaluate(CHOSEN)
        assert (first, set(others)) == ("solid", {"none"})
