"""The lanes of subagents in a real browser: each leads to its own question, and what is stopped takes no focus."""

from pathlib import Path

from tests.e2e.faults.driving import make, run
from tests.web.driving import becomes, in_shared_browser, page_with_model, require_accessible, start_session
from treadle.providers.scripted.script import Expectation, Texts, Turn

pytestmark = in_shared_browser

OPEN = "document.querySelector('#questions .question:not(.behind)').id"
CLOSEST = """() => {
  const places = [...document.querySelectorAll(".lane :is(a, button)")].map((one) => one.getBoundingClientRect());
  const apart = (a, b) => Math.max(b.left - a.right, a.left - b.right, b.top - a.bottom, a.top - b.bottom);
  return Math.min(...places.flatMap((a, at) => places.slice(at + 1).map((b) => apart(a, b))));
}"""


def _pushes(name: str) -> Turn:
    when = Expectation(last_user=Texts(contains=(f"Push {name}",)), assistant_messages=0)
    return Turn(when=when, items=(run(f"git push origin {name}"),))


async def test_each_subagent_that_asks_leads_to_its_own_question_and_the_focus_stays_where_one_is_stopped(
    tmp_path: Path,
) -> None:
    tasks = [{"prompt": f"Push {name}.", "agent": "worker"} for name in ("one", "two")]
    begins = Expectation(last_user=Texts(contains=("Share it out",)), assistant_messages=0)
    turns = (_pushes("one"), _pushes("two"), Turn(when=begins, items=(make("use_subagents", tasks=tasks),)))
    async with page_with_model(tmp_path, turns, "--mode", "edits", "--max-cost", "5") as (served, seen):
        page = await seen.page(served)
        lanes = f"{served.address}/s/{await start_session(page, 'Share it out.')}/agents"
        await becomes(page, "document.querySelectorAll('#questions .question').length === 2")
        await page.goto(lanes)
        answers = await page.locator(".lane a:has-text('Answer')").evaluate_all(
            "(all) => all.map((one) => one.hash.slice(1))"
        )
        children = await page.locator(".lane a.t").evaluate_all("(all) => all.map((one) => one.href)")
        assert len(set(answers)) == 2
        assert await page.evaluate(CLOSEST) >= 8
        await require_accessible(page)
        for answer in answers:
            await page.goto(lanes)
            await page.click(f".lane a[href$='{answer}']")
            await becomes(page, f"{OPEN} === '{answer}'")
        await page.click(f"#{answers[1]} .why a")
        assert page.url == children[1], "the question names its subagent, and leads there"
        await becomes(page, "document.getElementById('now').textContent === 'Waits for your answer'")
        assert await page.get_attribute("#now-sign", "class") == "dot"
        assert await page.text_content("#now-more") == " · step 1", "no clock while a person is waited for"
        assert await page.locator(".side [aria-current=true]").count() == 1, "the session that began it"
        await page.goto(lanes)
        await page.focus("button:has-text('Stop') >> nth=1")
        await page.keyboard.press("Enter")
        await becomes(page, "document.querySelectorAll('.lane button').length < 2")
        assert await page.evaluate("document.activeElement.matches('.lane a.t')")
