"""A session on the page, in a real browser: a task with its questions, and what a person does meanwhile."""

import asyncio
import subprocess
from pathlib import Path

from playwright.async_api import Locator, Page, Route

from tests.e2e.faults.driving import make, run
from tests.needed import needs
from tests.web.driving import PATIENCE, becomes, in_shared_browser, page_with_model, read_questions, start_session
from treadle.providers.scripted.script import Expectation, Pace, SayText, Texts, Turn, Wait

pytestmark = in_shared_browser

WRITTEN = "".join(f"line {number}\n" for number in range(1, 41))
TURNS = (
    Turn(
        items=(
            SayText(text="I write the file.\n\n```python\nprint('<b>')\n```\n"),
            make("write_to_file", path="a.txt", content=WRITTEN),
        )
    ),
    Turn(items=(SayText(text="It is **written**."), run("git push origin main"))),
    Turn(items=(make("attempt_completion", result="All done, see `a.txt`."),)),
    Turn(items=(make("attempt_completion", result="Heard."),)),
)
MANY = 200  # stopped within its last 20, it is more than two parts of the page
LONG = Turn(
    items=(
        SayText(text="".join(f"Paragraph {number} of many.\n\n" for number in range(MANY))),
        Wait(seconds=PATIENCE),
        SayText(text="Never said."),
    ),
    pace=Pace(chunk=12, delay=0.01),
)

AT_END = "innerHeight + scrollY >= document.documentElement.scrollHeight - 60"


async def test_a_task_with_two_questions_from_the_list_to_its_end(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, TURNS) as (served, seen):
        page = await seen.page(served)
        session = await start_session(page, "Write a file.")
        await page.wait_for_selector(".question")
        assert "a.txt" in await page.inner_text(".question h2")
        await no_typing_answers(page)
        inbox = await seen.page(served, "/inbox", viewport={"width": 360, "height": 740})
        await inbox.wait_for_selector("a.item")
        assert not await inbox.is_visible(".question"), "the list alone"
        await inbox.click("a.item")
        await inbox.wait_for_selector(".question .diff .add")
        assert await inbox.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not await inbox.is_visible("#asked"), "the card alone"
        await inbox.go_back()
        await inbox.wait_for_selector("#asked", state="visible")
        await inbox.go_forward()
        await inbox.wait_for_selector(".question .diff .add")
        await inbox.click("text=All questions")
        await inbox.wait_for_selector("#asked", state="visible")
        await becomes(page, "document.title.startsWith('(1) Needs you · ')")
        assert await page.evaluate("document.getElementById('icon').href.endsWith('/icon-needs.svg')")
        await read_questions(page)
        await yes_once_all_was_seen(page)
        assert (served.folder / "a.txt").read_text() == WRITTEN
        await inbox.wait_for_selector("a.item:has-text('git push')")
        await inbox.evaluate(
            "document.querySelector('.question:not(.closed-line)').dataset.came = performance.now() + 60_000"
        )
        await inbox.keyboard.press("j")
        await inbox.wait_for_selector(".question:has-text('git push')")
        await inbox.keyboard.press("Control+Enter")
        await inbox.wait_for_selector("#messages:has-text('This question has just appeared.')")
        await inbox.evaluate("document.querySelector('.question:not(.closed-line)').dataset.came = 0")
        await inbox.keyboard.press("x")
        await inbox.fill("input[name=comment]", "not today")
        await inbox.press("input[name=comment]", "Enter")
        await inbox.wait_for_selector(".nothing")
        await page.wait_for_selector(".item.end")
        text = await page.text_content("#items") or ""
        for said in (
            "Write a file.",
            "All done, see a.txt.",
            "print('<b>')",
            "you allowed it",
            "you said no: not today",
        ):
            assert said in text
        assert await page.locator("#items strong").inner_text() == "written"
        await page.reload()
        await page.wait_for_selector(".item.end")
        assert (await page.text_content("#items") or "").split() == text.split()
        await a_lost_message_arrives_once(page, session)
        seen.complaints = [said for said in seen.complaints if "net::ERR_FAILED" not in said]  # as it was made to be


async def yes_once_all_was_seen(page: Page) -> None:
    """Say yes to a diff that is longer than its box: that goes on to what was never on the screen, until all was."""
    await page.focus(".question")
    await page.keyboard.press("Control+Enter")
    await page.wait_for_selector(".question .needed:has-text('Not all of this was on the screen.')")
    assert await page.locator(".diff > .needed + .add").count() == 1, "where it is to be looked at"
    assert await page.locator("#messages > *").count() == 0, "nothing lies over the page"
    async with asyncio.timeout(PATIENCE):
        while await page.locator(".question:has-text('git push')").count() == 0:
            if await page.locator(".question [data-looked]").count():
                await page.focus(".question")
                await page.keyboard.press("Control+Enter")
            await page.wait_for_timeout(100)


async def no_typing_answers(page: Page) -> None:
    """Type as people do while a question is open: into the card, and into the field."""
    await page.focus(".question")
    await page.keyboard.type("yes also 1", delay=5)
    assert await page.input_value("#text") == "yes also 1", "what is no key of a question is typed into the message"
    await page.click("#text")
    await page.keyboard.type("y", delay=5)
    assert await page.locator(".question button:not([disabled])").count() > 2
    await page.fill("#text", "")


async def a_lost_message_arrives_once(page: Page, session: str) -> None:
    """Send a message whose answer never comes: the draft is kept, and sent again it is not there twice."""

    async def lost(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route(f"**/s/{session}/say", lost)
    await page.fill("#text", "Once more.")
    await page.press("#text", "Enter")
    await page.wait_for_selector("#messages:has-text('cannot be reached')")
    assert await page.input_value("#text") == "Once more."
    await page.unroute(f"**/s/{session}/say")
    await page.wait_for_selector(".item:has-text('Heard.')")
    await page.reload()
    assert await page.input_value("#text") == "Once more."
    reached = asyncio.Event()

    async def kept(route: Route) -> None:
        if reached.is_set():
            await route.continue_()
        reached.set()  # the first one never arrives: it goes with its page

    await page.route(f"**/s/{session}/say", kept)
    await page.press("#text", "Enter")
    async with asyncio.timeout(PATIENCE):
        await reached.wait()
    async with page.expect_request(f"**/s/{session}/say"):
        await page.reload()  # what was on its way is sent again by itself
    await becomes(page, "document.getElementById('text').value === ''")
    await page.unroute(f"**/s/{session}/say")  # not sooner: that would let the first one go
    assert await page.locator(".item.said:has-text('Once more.')").count() == 1


async def test_a_long_reply_is_followed_left_alone_stopped_and_read_back(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [LONG]) as (served, seen):
        page = await seen.page(served, viewport={"width": 900, "height": 600})
        sessions = await seen.page(served)
        session = await start_session(page, "Tell me much.")
        await page.wait_for_selector(".item:has-text('Paragraph 30 of')")
        await becomes(page, AT_END)
        await sessions.goto(f"{served.address}/sessions")
        await sessions.wait_for_selector(f"#s-{session} .state.working")
        await page.mouse.move(400, 300)
        await page.mouse.wheel(0, -500)
        await page.wait_for_selector("#newest:not([hidden])")
        await page.wait_for_timeout(200)
        first = page.locator(".item:has-text('Paragraph 20 of')")
        place = await first.bounding_box()
        await page.wait_for_selector(".item:has-text('Paragraph 60 of')", state="attached")
        assert await first.bounding_box() == place
        await page.click("#newest")
        await becomes(page, AT_END)
        await page.wait_for_selector(f".item:has-text('Paragraph {MANY - 20} of')")
        await page.keyboard.press("Escape")
        await page.wait_for_selector("#half:has-text('Esc again stops.')")
        assert await page.locator("#stop").is_visible()
        await page.keyboard.press("Escape")
        await page.wait_for_selector(".item.end:has-text('Stopped')")
        await sessions.wait_for_selector(f"#s-{session} .state:has-text('Stopped')")
        await page.reload()
        await page.wait_for_selector(".item.end")
        assert await page.locator(".item:has-text('Paragraph 1 of')").count() == 0
        for number in (MANY - 120, 1):  # one part after the other
            await page.mouse.wheel(0, -100_000)
            await page.wait_for_selector(f".item:has-text('Paragraph {number} of')", state="attached")
        assert not await page.evaluate("scrollY === 0")
        assert await page.locator("#items .item").count() > MANY - 30
        await page.set_viewport_size({"width": 1280, "height": 600})
        await page.evaluate("scrollTo({ top: 2_000, behavior: 'instant' })")
        for one in ("#tab-files", "#tab-plan", ".skip"):
            await page.focus(one)
            assert await page.evaluate("scrollY") == 2_000, "the focus moves nothing"


async def test_of_a_long_session_400_items_are_in_the_document_and_none_is_missed(tmp_path: Path) -> None:
    long = "".join(f"Paragraph {number}.\n\n" for number in range(1_000))
    heard = Turn(items=(SayText(text="Heard you."),))
    async with page_with_model(tmp_path, [Turn(items=(SayText(text=long),)), heard]) as (served, seen):
        page = await seen.page(served, viewport={"width": 900, "height": 600})
        await start_session(page, "Tell me much.")
        await page.wait_for_selector(".item:has-text('Paragraph 999.')")
        await page.wait_for_selector(".item.end")
        numbers = "[...document.querySelectorAll('#items .prose')].map(one => Number(/\\d+/.exec(one.textContent)))"

        async def gap_free() -> tuple[int, int]:
            shown = await page.evaluate(numbers)
            assert shown == list(range(shown[0], shown[-1] + 1))
            assert await page.locator("#items > li").count() <= 400
            return shown[0], shown[-1]

        assert (await gap_free())[1] == 999, "as many as were written while the end was followed"
        await page.mouse.move(400, 300)
        while (ends := await gap_free())[0]:
            await page.mouse.wheel(0, -100_000)
            await becomes(page, f"{numbers}[0] < {ends[0]}")
        assert ends[1] < 400
        assert not await page.locator("#earlier").is_visible()
        for _ in range(3):  # down again; what is looked at stays where it is
            last = (await gap_free())[1]
            await page.evaluate(
                "scrollTo({ top: document.documentElement.scrollHeight - innerHeight - 200, behavior: 'instant' })"
            )
            row = page.locator(f".item:has-text('Paragraph {last - 4}.')").last
            await page.mouse.wheel(0, 190)
            await becomes(page, f"{numbers}.at(-1) > {last}")
            place = await row.bounding_box()
            assert place is not None
            assert 0 < place["y"] < 600
        await page.evaluate("location.hash = '#i100'")
        await page.wait_for_selector("#i100:focus")
        await gap_free()
        await page.click("#newest")
        await becomes(page, f"{AT_END} && document.querySelector('.item.end') !== null")
        assert (await gap_free())[1] == 999
        await page.evaluate("location.hash = '#i50'")
        await page.wait_for_selector("#i50:focus")
        await page.fill("#text", "And now?")
        await page.press("#text", "Enter")
        await page.wait_for_selector(".item:has-text('Heard you.')")
        await becomes(page, AT_END)


async def test_of_a_long_output_the_end_is_shown_and_the_whole_is_read_back_to_its_first_line(tmp_path: Path) -> None:
    done = Turn(items=(make("attempt_completion", result="Counted."),))
    async with page_with_model(tmp_path, [Turn(items=(run("seq 1 60000"),)), done], "--mode", "full") as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Count.")
        card = page.locator(".item.call")
        await card.locator(".tail .above:has-text('more above')").wait_for()
        assert (await card.locator(".tail pre").inner_text()).split() == ["59998", "59999", "60000"]
        await card.locator("[data-all]").click()
        assert "characters left out" in await card.locator("details pre").inner_text()
        await card.get_by_role("button", name="Show the whole output").click()
        more = card.get_by_role("button", name="Show more")
        await more.wait_for()
        assert await page.evaluate("document.activeElement.textContent.endsWith('59999\\n60000\\n')")
        assert await page.evaluate("document.activeElement.scrollTop > 1_000"), "its end is seen"
        await more.click()
        await becomes(page, "document.activeElement.textContent.startsWith('1\\n2\\n')")
        assert not await more.is_visible()
        said = "[...document.querySelectorAll('.item.call details pre')].map(one => one.textContent).join('')"
        assert (await page.evaluate(said)).split() == [str(number) for number in range(1, 60_001)]


async def test_the_panel_is_as_wide_as_a_person_made_it(tmp_path: Path) -> None:
    async with page_with_model(tmp_path, [Turn(items=(SayText(text="Hello."),))]) as (served, seen):
        page = await seen.page(served, viewport={"width": 1600, "height": 700})
        await start_session(page, "Hello.")
        await page.wait_for_selector(".item.end")
        width = "document.getElementById('panel').offsetWidth"
        assert await page.evaluate(width) == 424
        await page.mouse.move(1600 - 424, 300)
        await page.mouse.down()
        await page.mouse.move(1000, 310, steps=3)
        await page.mouse.up()
        assert await page.evaluate(width) == 600
        await page.focus("#edge")
        await page.keyboard.press("ArrowRight")
        assert await page.evaluate(width) == 584
        await page.reload()
        await becomes(page, f"{width} === 584")
        assert await page.get_attribute("#edge", "aria-valuenow") == "584"
        await page.set_viewport_size({"width": 1200, "height": 700})
        assert await page.evaluate("document.querySelector('.conv').offsetWidth") == 480, "the conversation has room"
        await page.set_viewport_size({"width": 1000, "height": 700})
        assert not await page.is_visible("#edge")


async def test_a_goal_stands_on_the_page_until_it_is_removed(tmp_path: Path) -> None:
    asked = Expectation(last_user=Texts(contains=("Is this condition met now?",)))
    done = Turn(items=(make("attempt_completion", result="One, please."),))
    turns = [Turn(when=asked, items=(SayText(text="Yes, it says please."),)), done, done]
    async with page_with_model(tmp_path, turns) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Hello.")
        await page.wait_for_selector(".item.end")
        await page.fill("#text", "/goal the answer is polite")
        await page.press("#text", "Enter")
        await page.wait_for_selector("#goal:has-text('Goal met: the answer is polite')")
        await page.wait_for_selector('#items :text("(the model\'s judgement): it says please")')
        await page.reload()
        await page.wait_for_selector("#goal:has-text('Goal met: the answer is polite')")
        await page.fill("#text", "/goal clear")
        await page.press("#text", "Enter")
        await becomes(page, "document.getElementById('goal').hidden")


async def test_a_request_that_the_network_loses_once_is_sent_again_and_the_message_arrives_once(tmp_path: Path) -> None:
    turns = [Turn(items=(make("attempt_completion", result="One."),)), Turn(items=(run("git push origin main"),))]
    async with page_with_model(tmp_path, turns) as (served, seen):
        page = await seen.page(served)
        session = await start_session(page, "Work.")
        await page.wait_for_selector(".item.end")
        lost: list[str] = []

        async def once(route: Route) -> None:
            path = route.request.url.partition(served.address)[2]
            if path in lost:
                await route.continue_()
                return
            lost.append(path)
            await route.fetch()  # it arrives, and its answer does not
            await route.abort()

        inbox = await seen.page(served, "/inbox")
        await inbox.route("**/inbox/cards", once)
        await page.route(f"**/s/{session}/say", once)
        await page.fill("#text", "Again.")
        await page.press("#text", "Enter")
        await inbox.wait_for_selector(".question:has-text('git push')")
        await becomes(page, "document.getElementById('text').value === ''")
        assert sorted(lost) == ["/inbox/cards", f"/s/{session}/say"]
        assert await page.locator(".item.said:has-text('Again.')").count() == 1
        assert await page.locator("#messages p").count() == 0
        seen.complaints = [said for said in seen.complaints if "net::ERR_FAILED" not in said]


async def test_what_is_sent_before_the_modules_of_a_page_have_run_is_done_once_they_have(tmp_path: Path) -> None:
    turns = [Turn(items=(make("attempt_completion", result=text),)) for text in ("One.", "Two.")]
    async with page_with_model(tmp_path, turns) as (served, seen):
        page = await seen.page(served)
        gate = asyncio.Event()

        async def late(route: Route) -> None:
            await gate.wait()
            await route.continue_()

        async def early(path: str, module: str) -> None:
            gate.clear()
            await page.route(f"**/static/*/{module}", late)
            await page.goto(served.address + path, wait_until="commit")

        async def go_on(module: str) -> None:
            gate.set()
            await page.wait_for_selector("html[data-ready]")
            await page.unroute(f"**/static/*/{module}")

        await early("/", "start.js")
        await page.fill("#start textarea", "Work.")
        await page.click("#start button[type=submit]")
        gate.set()
        await page.wait_for_url("**/s/*")
        session = page.url.rpartition("/s/")[2]
        await page.wait_for_selector(".item.end")
        await early(f"/s/{session}", "live.js")
        await page.fill("#text", "Again.")
        await page.click("#send")
        await page.click("#send")
        await go_on("live.js")
        await page.wait_for_selector(".item:has-text('Two.')")
        assert await page.locator(".item.said:has-text('Again.')").count() == 1
        assert await page.input_value("#text") == ""
        await early("/policy", "policy.js")
        await page.fill("#explain [name=what]", "rm -rf /")
        await page.locator("#explain button[type=submit]").click()
        await go_on("policy.js")
        await page.wait_for_selector("#explained code:has-text('rm -rf /')")
        assert page.url == served.address + "/policy"


WORKFLOW = """
import os
import pathlib

folder = pathlib.Path(".github/workflows")
folder.mkdir(parents=True)
(folder / "x.yml").write_text("on: push\\n")
pathlib.Path("tool.sh").write_text("true\\n")
os.chmod("tool.sh", 0o755)
pathlib.Path("build").mkdir()
pathlib.Path("build/a.o").write_text("x")
print("Wrote the workflow. " + "word " * 90)
raise SystemExit(3)
"""

SHEET = """(card) => {
  const [title, whole] = [card.querySelector("h2"), card].map((one) => one.getBoundingClientRect());
  const over = document.elementFromPoint(title.left + 4, title.top + 4);
  return title.top >= 0 && card.contains(over) && whole.bottom <= innerHeight + 1 && whole.height <= innerHeight * 0.71;
}"""

ALL_SEEN = """(card) => [...card.querySelectorAll("h2, p, pre, summary, button, li")]
  .filter((one) => one.offsetParent && !one.closest("[hidden]"))
  .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > innerWidth)
  .map((one) => one.outerHTML.slice(0, 80))"""


@needs("sandbox")
async def test_what_cannot_be_applied_whole_runs_for_real_only_after_a_typed_yes(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    for words in (("init", "-q"), ("config", "user.name", "a"), ("config", "user.email", "a@b.example")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / ".gitignore").write_text("build/\n")
    (folder / "write.py").write_text(WORKFLOW)
    (folder / "step.sh").write_text("echo two >> a.txt\ngit add a.txt\ngit commit -q -m 'Add two'\necho Committed.\n")
    turns = (Turn(items=(run("sh step.sh"),)), Turn(items=(run("python3 write.py"),)), TURNS[2])
    async with page_with_model(tmp_path, turns, "--trust") as (served, seen):
        page = await seen.page(served, viewport={"width": 390, "height": 844})
        session = await start_session(page, "Run the step.")
        await page.wait_for_selector(".question:has-text('step.sh')")
        card = page.locator(".question")
        assert await _offered(card) == ("run_for_real", ["Run it for real", "Discard"])
        assert await card.evaluate(SHEET), "the title is on the screen, and the conversation above it"
        assert await page.locator(".call:has-text('step.sh')").count() == 0, "the question has all of it"
        said = await card.inner_text()
        for line in ("Run this command for real?", "Runs with the right to change the repository.", "Exit status 0."):
            assert line in said
        await read_questions(page)
        await card.locator("button[data-act='for real']").click()
        await page.wait_for_selector(".question.danger:has-text('write.py')")
        log = subprocess.run(["git", "log", "--format=%s"], cwd=folder, check=True, capture_output=True, text=True)
        assert log.stdout == "Add two\n"
        assert await _offered(card) == ("run_for_real", ["Discard", "Run it for real…"])
        rows = [*await card.locator(".why").all_inner_texts(), *await card.locator(".printed").all_inner_texts()]
        held = ".github/workflows is protected from being changed"
        assert rows[:-1] == [
            "These changes cannot be applied, because not all of them can:",
            *(f"{path}: {held}" for path in (".github/workflows", ".github/workflows/x.yml")),
            "Exit status 3.",
            "A tool.sh  +1 −0  executable",
            "Besides: 1 file that git ignores, in build",
        ]
        assert rows[-1].startswith("Wrote the workflow.")
        assert await card.evaluate(ALL_SEEN) == []
        review = await seen.page(served, f"/s/{session}/review", viewport={"width": 390, "height": 844})
        copy = review.locator(".copy.danger")
        assert [
            *await copy.locator(".why").all_inner_texts(),
            *await copy.locator(".printed").all_inner_texts(),
        ] == rows
        assert await copy.evaluate(ALL_SEEN) == []
        assert await copy.locator(".diff .add:has-text('on: push')").count() == 1
        assert await card.locator(".diff .add:has-text('on: push')").is_visible()
        await read_questions(page)
        phone = page.viewport_size
        assert phone is not None
        await page.set_viewport_size({"width": 1280, "height": 800})  # where the message field is beside the card
        await page.focus(".question.danger")
        await page.keyboard.press("1")
        await page.keyboard.press("Control+Enter")
        assert await page.evaluate("document.activeElement.matches('.question.danger')"), (
            "a digit chooses, or does nothing"
        )
        assert await page.input_value("#text") == ""
        await page.set_viewport_size(phone)
        await card.locator("button[data-act='for real']").click()
        await page.fill("input[name=sure]", "y")
        await page.click("button[data-act=sure]")
        await page.wait_for_selector(".question .needed:has-text('Type yes into the field to continue.')")
        assert not (folder / ".github").exists()
        for row in await card.locator("[data-looked] .diff > .add").all():  # each changed line was on the screen
            await row.scroll_into_view_if_needed()
            await page.wait_for_timeout(50)
        await page.fill("input[name=sure]", "Yes")
        await page.press("input[name=sure]", "Enter")
        await page.wait_for_selector(".item.end")
        assert await page.locator(".needed").count() == 0, "it went with its question"
        assert (folder / ".github" / "workflows" / "x.yml").read_text() == "on: push\n"
        assert "exit 3" in (await page.text_content("#items") or "")


async def _offered(card: Locator) -> tuple[str | None, list[str]]:
    """What a yes means, and the answers that stand there at once."""
    return await card.get_attribute("data-yes"), await card.locator(".answers > button:visible").all_inner_texts()


async def test_a_server_that_is_busy_is_asked_again_when_it_said(tmp_path: Path) -> None:
    busy = {"status": 503, "headers": {"retry-after": "30"}, "body": "Try again later."}
    async with page_with_model(tmp_path, [Turn(items=(SayText(text="Done."),))]) as (served, seen):
        page = await seen.page(served)
        await start_session(page, "Work.")
        await page.wait_for_selector(".item >> text=Done.")
        await page.route("**/events?*", lambda route: route.fulfill(**busy))
        await page.reload()
        await becomes(page, "/Trying again in (2[5-9]|30) s/.test(document.body.innerText)")
        await page.unroute("**/events?*")
        await page.click("#try-now")
        await becomes(page, "document.getElementById('lost').hidden")
        seen.complaints[:] = [one for one in seen.complaints if "503" not in one]
