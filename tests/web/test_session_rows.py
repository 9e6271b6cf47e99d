"""The list of sessions: how each one is, finding some of them, and what is done with one."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.e2e.faults.driving import make, run
from tests.web.in_process import Visit, idle, page_here
from treadle.app.schedules.schedule_book import Schedule, ScheduledRun, schedules_file
from treadle.present.spending_words import Spending
from treadle.present.view import Retry, SessionView
from treadle.protocol.models import ErrorKind, ModelError
from treadle.providers.scripted.script import SayText, Turn, Wait
from treadle.web.status import came_words, listed_state

DONE = Turn(items=(make("attempt_completion", result="Done."),))


async def listed(visit: Visit, query: str = "") -> list[tuple[str, str]]:
    """The sessions of the list: how each is, and its title."""
    rows = (await visit.get(f"/sessions/rows?{query}")).split("<tr ")[1:]
    found = [
        (re.search(r'class="chip state [a-z]+">([^<]*)<', row), re.search(r'data-title="([^"]*)"', row)) for row in rows
    ]
    return [(state[1], title[1]) for state, title in found if state and title]


async def test_sessions_are_listed_as_they_are_and_found_by_state_folder_and_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [Turn(items=(SayText(text="A walrus."), run("git push origin main"))), DONE]
    async with page_here(tmp_path, monkeypatch, turns) as here:
        visit = here.visit()
        assert "No sessions yet." in await visit.get("/sessions")
        first = await here.start(visit, "Find <b>bold</b> things.")
        question = await here.asked(first)
        bold = "Find &lt;b&gt;bold&lt;/b&gt; things."
        assert await listed(visit) == [("Needs you", bold)]
        await visit.done(f"/s/{first.session.id}/answer", question_id=question.id, option="reject_once")
        await idle(first)
        second = await here.start(visit, "Second.")
        await here.asked(second)
        assert await listed(visit) == [("Needs you", "Second."), ("Done", bold)]
        assert await listed(visit, "state=waiting") == [("Needs you", "Second.")]
        assert await listed(visit, "search=walrus") == [("Needs you", "Second."), ("Done", bold)]
        assert await listed(visit, "search=bold") == [("Done", bold)]
        assert "A walrus." in await visit.get("/sessions/rows?search=walrus")
        assert await listed(visit, "folder=/nowhere") == []
        assert "No session matches." in await visit.get("/sessions/rows?folder=/nowhere")
        assert "No session is archived." in await visit.get("/sessions/rows?archived=yes")
        await visit.done(f"/s/{second.session.id}/close")
        assert await listed(visit) == [("Stopped", "Second."), ("Done", bold)]


async def test_a_session_is_renamed_copied_exported_archived_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE]) as here:
        visit = here.visit()
        page = await here.start(visit, "First.")
        await idle(page)
        path = f"/s/{page.session.id}"
        assert await visit.done(f"{path}/rename", name="My  session") == {"title": "My session"}
        new = (await visit.done(f"{path}/fork"))["session"]
        assert await listed(visit) == [("Done", "My session"), ("Done", "My session")]
        assert await visit.done(f"/s/{new}/rename", name="Copy") == {"title": "Copy"}
        assert "First." in await visit.get(f"/s/{new}/export?form=md")
        for asked in ("archive", "delete"):
            status, said = await visit.post(f"{path}/{asked}")
            assert status == 404, said  # it is open
        await visit.done(f"/s/{new}/archive")
        assert await listed(visit, "archived=yes") == [("Done", "Copy")]
        assert await listed(visit) == [("Done", "My session")]
        await visit.done(f"/s/{new}/unarchive")
        assert await listed(visit, "archived=yes") == []
        await visit.done(f"/s/{new}/delete")
        await visit.done(f"{path}/close")
        await visit.done(f"{path}/delete")
        assert "No sessions yet." in await visit.get("/sessions")


async def test_an_open_session_says_the_same_in_the_list_as_its_log_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(
        tmp_path, monkeypatch, [Turn(items=(make("write_to_file", path="a", content="1\n"),)), DONE]
    ) as here:
        visit = here.visit()
        page = await here.start(visit)
        question = await here.asked(page)
        assert listed_state(page)["words"] == "Needs you"
        await visit.done(f"/s/{page.session.id}/answer", question_id=question.id, option="allow_once")
        await idle(page)
        live = await visit.get("/sessions/rows")
        await visit.done(f"/s/{page.session.id}/close")
        closed = await visit.get("/sessions/rows")
        cells = [re.findall(r'class="(how|mode|cost|size)">(.*?)</td>', rows) for rows in (live, closed)]
        assert cells[0] == cells[1]
        assert ("mode", "ask") in cells[0]


async def test_a_cost_that_is_not_known_says_that_it_is_the_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE]) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        page.content.view = replace(page.content.view, spending=Spending(unpriced=True))
        assert listed_state(page)["cost"] == "cost unknown"
        bar = await visit.get(f"/s/{page.session.id}")
        assert re.findall(r'id="(?:under-)?cost">([^<]*)<', bar) == ["cost unknown"] * 2, "beside the model and a title"


async def test_schedules_are_below_the_list_with_what_is_next_and_their_last_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, []) as here:
        visit = here.visit()
        assert "Schedules" not in await visit.get("/sessions")
        kept = Schedule(
            id="a1",
            when="every day 9:00",
            zone="UTC",
            task="Find <b>bold</b> things.",
            folder="/ws",
            max_cost=0.5,
            created=1.8e9,
            handled=1.8e9,
            missed=2,
            last_missed=1.8e9,
            runs=(ScheduledRun(due=1.8e9, session="20270115-080000-abcdef"),),
        )
        file = schedules_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode([kept]))
        shown = await visit.get("/sessions")
        assert "Find &lt;b&gt;bold&lt;/b&gt; things." in shown
        assert "next Fri 2027-01-15 09:00 UTC" in shown
        assert "2 runs missed" in shown
        assert "/s/20270115-080000-abcdef" in shown
        file.write_text("{")
        assert "The schedules cannot be read." in await visit.get("/sessions")


async def test_a_session_that_waits_for_a_limit_says_until_when_on_every_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [Turn(items=(Wait(seconds=600),))]) as here:
        visit = here.visit()
        page = await here.start(visit)
        assert (listed_state(page)["sign"], listed_state(page)["words"]) == ("working", "Working")
        limited = ModelError(kind=ErrorKind.RATE_LIMIT, message="Too much.")
        soon, later = (
            datetime.now().astimezone().replace(hour=23, minute=59),
            datetime.now().astimezone() + timedelta(2),
        )
        words = {}
        for name, at, resets in (("soon", soon, True), ("later", later, True), ("retry", soon, False)):
            retry = Retry(limited, at.timestamp(), resets=resets)
            page.content.view = replace(page.content.view, retry=retry)
            words[name] = listed_state(page)["sign"], listed_state(page)["words"]
        assert words == {
            "soon": ("until", "Waits until 23:59"),
            "later": ("until", f"Waits until {later:%-d %b %H:%M}"),
            "retry": ("working", "Working"),
        }
        await visit.done(f"/s/{page.session.id}/interrupt")
        await idle(page)


@pytest.mark.parametrize(
    ("received", "speed", "words"),
    [(99, 50.0, ""), (1_249, 48.3, "↓ 1.2k tokens · 50 a second"), (1_249, 4.0, "↓ 1.2k tokens"), (0, 0.0, "")],
)
def test_what_came_of_a_turn_is_said_roughly(received: int, speed: float, words: str) -> None:
    assert came_words(SessionView(received=received, speed=speed), 1.0) == words
