"""Sessions that waited for an answer when their program ended: they still need the person, on every screen."""

import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make, run
from tests.web.in_process import idle, page_here
from treadle.providers.scripted.script import SayText, Turn, Wait
from treadle.web.page_frame import page_column
from treadle.web.session_rows import ListFilter, page_rows

DONE = Turn(items=(make("attempt_completion", result="Done."),))


def killed(home: Path, into: Path) -> None:
    """Copy what is stored as a kill would leave it: nobody holds a session."""
    into.mkdir()
    for name in ("home", "ws"):
        shutil.copytree(home / name, into / name, ignore=shutil.ignore_patterns("*.sock", "*-shm"))
    for file in (into / "home").rglob("*.db"):
        with sqlite3.connect(file) as store:
            store.execute("DELETE FROM leases")
            store.execute("UPDATE sessions SET workspace = ?", (str(into / "ws"),))
        store.close()


@pytest.mark.parametrize("way", ["by state", "by-project"])
async def test_a_session_that_waited_when_its_program_ended_needs_the_person_until_it_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    turns = (Turn(items=(run("git push origin main"),)), Turn(items=(SayText(text="So."), Wait(seconds=600))))
    async with page_here(tmp_path, monkeypatch, turns) as here:
        visit = here.visit()
        asks = await here.start(visit, "Push it.")
        await here.asked(asks)
        works = await here.start(visit, "Think.")
        killed(tmp_path, tmp_path / "again")
    async with page_here(tmp_path / "again", monkeypatch, (DONE,)) as here:
        visit, path = here.visit(), f"/s/{asks.session.id}"
        column = page_column(here.book, asks.session.id, look=way)
        rows = {row.title: (row.state, row.sign, row.words) for _, group, _ in column.groups for row in group}
        assert rows == {
            "Push it.": ("waiting", "asked", "Needs you"),
            "Think.": ("stopped", "gone", "Stopped"),
        }
        assert column.waiting == 1
        assert way == "by-project" or [name for name, *_ in column.groups] == ["Needs you", "Done"]
        listed = page_rows(here.book, ListFilter(all=True, state="waiting")).lines
        assert [(row.title, row.why) for row in listed] == [
            ("Push it.", "its program ended while it waited for your answer")
        ]
        assert works.session.id not in await visit.get("/inbox/cards")
        inbox = await visit.get("/inbox")
        assert "1 question of 1 session" in inbox
        assert re.findall(r'<h2>([^<]*) <span class="num">1', inbox.partition('class="ilist"')[2]) == ["Program ended"]
        assert f'href="{here.keys.base}{path}">Open the session</a>' in inbox
        shown = await visit.get(path)
        assert '<span class="chip asked" id="chip"' in shown
        assert "ended while it waited for your answer. Go on, and it asks again." in shown
        await visit.done(f"{path}/open")
        question = await here.asked(here.book.opened[asks.session.id])
        column = page_column(here.book)
        assert (column.waiting, column.groups[0][1][0].sign) == (1, "waiting")
        assert "It waited for your answer" not in await visit.get("/inbox/cards")
        await visit.done(f"{path}/answer", question_id=question.id, option="reject_once")
        await idle(here.book.opened[asks.session.id])
        assert page_column(here.book).waiting == 0
