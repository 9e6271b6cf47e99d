"""The card of a question says which step asks, and which calls came just before it."""

import re
from html import unescape
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make, run
from tests.web.in_process import page_here
from treadle.providers.scripted.script import SayText, Turn

MOVES = ["j", "k next, previous", "o open the session"]
PUSH = (SayText(text="Read.\n\nWell.” Now I push."), run("git push origin main"))
WHICH = make("ask_followup_question", question="Which one?", options=["a", "b"])
READS = tuple(make("read_file", path=f"{name}.txt") for name in "abcd")


def keys_of(html: str) -> list[str]:
    """The keys that a card names, each with what it does."""
    found = re.findall(r"<kbd>([^<]+)</kbd>([^<]*)", html.partition('<p class="keys">')[2])
    return [f"{key}{words}".strip() for key, words in found]


async def test_a_card_has_the_step_and_the_last_calls_that_ended_each_without_its_place_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(
        tmp_path,
        monkeypatch,
        [Turn(items=(SayText(text="All of them first."), *READS)), Turn(items=PUSH), Turn(items=(WHICH,))],
    ) as here:
        for name in "abcd":
            (here.folder / f"{name}.txt").write_text(f"{name}\n")
        visit = here.visit()
        page = await here.start(visit)
        question = await here.asked(page)
        card = (await visit.get("/inbox/cards")).partition('<section class="card">')[2]
        assert "· step 2" in card
        before = card.partition("Just before")[2].partition("</section>")[0]
        assert re.findall(r'<code class="cut">([^<]+)</code>', before) == ["b.txt", "c.txt", "d.txt"]
        assert 'id="i' not in before
        assert "git push" not in before
        assert '“Well." Now I push.' in unescape(card), "the model's own last words before the call"
        assert "All of them" not in card
        assert "Now I push" not in (await visit.get(f"/s/{page.session.id}")).partition('id="questions"')[2]
        assert keys_of(card) == ["Ctrl ↵ allow", "x reject", "c comment", *MOVES]
        await visit.done(f"/s/{page.session.id}/answer", question_id=question.id, option="reject_once")
        await here.asked(page, about="Which")
        assert keys_of(await visit.get("/inbox/cards")) == MOVES, "none of what it does not have"


async def test_the_first_call_of_a_session_has_nothing_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [Turn(items=(run("git push origin main"),))]) as here:
        visit = here.visit()
        await here.asked(await here.start(visit))
        assert "Just before" not in await visit.get("/inbox/cards")
