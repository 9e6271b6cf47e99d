"""The card of a question says which step asks, and which calls came just before it."""

import re
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make, run
from tests.web.in_process import page_here
from treadle.providers.scripted.script import Turn

READS = tuple(make("read_file", path=f"{name}.txt") for name in "abcd")


async def test_a_card_has_the_step_and_the_last_calls_that_ended_each_without_its_place_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(
        tmp_path, monkeypatch, [Turn(items=READS), Turn(items=(run("git push origin main"),))]
    ) as here:
        for name in "abcd":
            (here.folder / f"{name}.txt").write_text(f"{name}\n")
        visit = here.visit()
        page = await here.start(visit)
        await here.asked(page)
        card = (await visit.get("/inbox/cards")).partition('<section class="card">')[2]
        assert "· step 2" in card
        before = card.partition("Just before")[2].partition("</section>")[0]
        assert re.findall(r'<code class="cut">([^<]+)</code>', before) == ["b.txt", "c.txt", "d.txt"]
        assert 'id="i' not in before
        assert "git push" not in before


async def test_the_first_call_of_a_session_has_nothing_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [Turn(items=(run("git push origin main"),))]) as here:
        visit = here.visit()
        await here.asked(await here.start(visit))
        assert "Just before" not in await visit.get("/inbox/cards")
