"""When sessions of the page are closed by themselves, and how several are opened at once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.faults.driving import make, run
from tests.web.in_process import PATIENCE, Here, idle, page_here, until
from treadle.app.compose import Opening, open_session
from treadle.app.config.layers import load_settings
from treadle.app.history.offline import look_closed
from treadle.app.processes.stopping import StopResult, stop_background, stop_sessions
from treadle.app.reports.known_sessions import SessionState, listed_sessions
from treadle.app.session.files.session_checkpoints import Seen
from treadle.app.session.live import LiveSession
from treadle.door.opening import session_log
from treadle.door.review import listed_checkpoints
from treadle.present.items import OwnCommandItem, TurnItem
from treadle.protocol.checkpoints import OwnTotal
from treadle.protocol.notifications import OwnWorkChanged
from treadle.providers.scripted.script import Expectation, SayText, Texts, Turn, Wait
from treadle.web.page_session import PageSession

DONE = Turn(items=(make("attempt_completion", result="Done."),))
SOON = 0.05


async def closed(here: Here, session_id: str) -> None:
    """Wait until a session is not open any more."""
    event = asyncio.Event()
    with here.book.changed.notifying(event):
        async with asyncio.timeout(PATIENCE):
            while session_id in here.book.opened:
                await event.wait()
                event.clear()


def is_over(page: PageSession) -> bool:
    assert page.use is not None
    return page.use.over(0)


async def test_a_session_that_nobody_needs_is_closed_and_the_next_message_continues_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [DONE, DONE], unused=SOON) as here:
        visit = here.visit()
        page = await here.start(visit)
        id_ = page.session.id
        await closed(here, id_)
        (row,) = await asyncio.to_thread(listed_sessions, None)
        assert (row.state, row.open) == (SessionState.DONE, False)
        await asyncio.gather(*(visit.done(f"/s/{id_}/say", text="Go on.", id="once") for _ in range(3)))
        await closed(here, id_)
        past = await asyncio.to_thread(here.book.past, id_)
        assert sum(isinstance(placed.item, TurnItem) for placed in past.items()) == 2
        assert str(here.server.requests[-1].body["messages"]).count("Go on.") == 1


async def test_the_page_of_a_closed_session_follows_a_file_that_somebody_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Turn(items=(make("write_to_file", path="new.txt", content="1\n2\n"),))
    async with page_here(tmp_path, monkeypatch, [write, DONE], mode="edits", unused=SOON) as here:
        page = await here.start(here.visit())
        await idle(page)
        id_, new = page.session.id, here.folder / "new.txt"
        await closed(here, id_)

        async def lists() -> bool:
            await here.book.look_closed(id_)
            past = await asyncio.to_thread(here.book.past, id_)
            return any(isinstance(one.item, TurnItem) and one.item.files for one in past.items())

        assert await lists()
        assert await lists(), "nothing changed"
        new.unlink()
        assert not await lists(), "nothing of it is left"
        assert not await lists()
        with session_log(id_) as (row, store):
            assert [one.n for one in listed_checkpoints(store, row.id)] == [1, 2, 3], "what was seen is not kept again"
        new.write_text("1\n2\n")
        assert await lists(), "it is back, as `git stash pop` brings it"


@pytest.mark.parametrize("looks", [True, False], ids=["it looks before that", "it looks after that"])
async def test_a_file_that_is_brought_back_is_the_sessions_again_where_the_page_began_anew_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, looks: bool
) -> None:
    write = Turn(items=(make("write_to_file", path="new.txt", content="1\n2\n"),))
    async with page_here(tmp_path, monkeypatch, [write, DONE], mode="edits", unused=SOON) as here:
        page = await here.start(here.visit())
        await idle(page)
        id_, new = page.session.id, here.folder / "new.txt"
        await closed(here, id_)

        def checkpoints() -> list[int]:
            with session_log(id_) as (row, store):
                return [one.n for one in listed_checkpoints(store, row.id)]

        new.unlink()
        assert await look_closed(id_, {})
        seen: Seen = {}
        if looks:
            assert not await look_closed(id_, seen)
            assert not await look_closed(id_, seen)
            assert checkpoints() == [1, 2, 3], "what was seen is not kept again"
        new.write_text("1\n2\n")
        assert await look_closed(id_, seen)
        assert not await look_closed(id_, {}), "the log tells of it"
        past = await asyncio.to_thread(here.book.past, id_)
        assert any(isinstance(one.item, TurnItem) and one.item.files for one in past.items())
        new.unlink()
        assert await look_closed(id_, {})
        flags = {"model": "anthropic-compatible/scripted", "base_url": here.server.base_url}
        settings = load_settings(flags)
        opening = Opening(workspace=here.folder, settings=settings, user_present=True, resume=id_)
        async with await open_session(opening) as live:
            new.write_text("1\n2\n")
            async with asyncio.timeout(PATIENCE), live.follow() as feed:
                while not isinstance(told := await anext(feed), OwnWorkChanged):
                    pass
        assert told.total == OwnTotal(files=1, added=2)


async def test_a_session_stays_open_as_long_as_anything_of_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [Turn(items=(run("git push origin main"),)), DONE, Turn(items=(make("set_timer", seconds=3600),)), DONE]
    async with page_here(tmp_path, monkeypatch, turns) as here:
        visit = here.visit()
        page = await here.start(visit)
        question = await here.asked(page)
        assert not is_over(page), "a question waits"
        await visit.done(f"/s/{page.session.id}/answer", question_id=question.id, option="reject_once")
        await idle(page)
        assert is_over(page)
        with page.looked_at():
            assert not is_over(page), "somebody looks at it"
        assert is_over(page)
        await visit.done(f"/s/{page.session.id}/say", text="!echo one")
        items = page.content.items
        await until(page, lambda: any(isinstance(one.item, OwnCommandItem) and one.item.said for one in items()))
        assert not is_over(page), "what a command printed goes with the next message"
        await visit.done(f"/s/{page.session.id}/say", text="Set a timer.")
        await until(page, lambda: page.session.status.turn_active)
        await idle(page)
        assert not page.commands.busy
        assert not is_over(page), "a timer will wake it"


async def test_a_session_stays_open_while_a_command_of_it_runs_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [Turn(items=(run("sleep 300", background=True),)), DONE, DONE]
    async with page_here(tmp_path, monkeypatch, turns, mode="full", unused=SOON) as here:
        visit = here.visit()
        page = await here.start(visit)
        await idle(page)
        other = await here.book.start(here.book.opening(here.book.trust(here.folder)))
        await closed(here, other.session.id)  # which came later, and has nothing to do
        assert here.book.opened.get(page.session.id) is page
        job = (await visit.get(f"/s/{page.session.id}/jobs")).partition('data-job="')[2].partition('"')[0]
        await visit.done(f"/s/{page.session.id}/jobs/stop", id=job)
        await closed(here, page.session.id)


async def test_stopping_a_session_of_the_page_ends_it_and_stopping_all_in_the_background_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [Turn(items=(SayText(text="I begin."), Wait(seconds=PATIENCE))), DONE]
    async with page_here(tmp_path, monkeypatch, turns) as here:
        visit = here.visit()
        page = await here.start(visit)
        id_ = page.session.id
        await until(page, lambda: any("I begin." in str(placed.item) for placed in page.content.items()))
        await visit.done(f"/s/{id_}/say", text="Then this.")
        assert await stop_background(None) == []
        (stopped,) = await stop_sessions([id_])
        assert (stopped.result, stopped.ended, stopped.process) == (StopResult.STOPPED, "cancelled", None)
        await closed(here, id_)
        assert "This session is closed." in await visit.get(f"/s/{id_}")
        await visit.done(f"/s/{id_}/say", text="Go on.")
        again = here.book.opened[id_]
        await idle(again)
        assert "Then this." not in str(here.server.requests[-1].body["messages"])


async def test_a_session_that_opens_slowly_keeps_no_other_one_waiting_and_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, opened = open_session, list[str]()
    reached, gate = asyncio.Event(), asyncio.Event()

    async def slowly(wanted: Any) -> LiveSession:
        opened.append(wanted.resume)
        if wanted.resume:
            reached.set()
            await gate.wait()
        return await opening(wanted)

    async with page_here(tmp_path, monkeypatch, [DONE, DONE, DONE, DONE]) as here:
        visit = here.visit()
        first = await here.start(visit)
        await idle(first)
        await here.book.close(first.session.id)
        monkeypatch.setattr("treadle.web.book.open_session", slowly)
        said = [asyncio.create_task(visit.done(f"/s/{first.session.id}/say", text=text)) for text in ("One.", "Two.")]
        await reached.wait()
        other = await here.start(visit, "Meanwhile.")
        await idle(other)
        assert first.session.id not in here.book.opened
        gate.set()
        await asyncio.gather(*said)
        assert opened == [first.session.id, ""]
        await idle(here.book.opened[first.session.id])


HEARD = Turn(when=Expectation(last_user=Texts(contains=("No, do not.",))), items=(SayText(text="As you say."),))
AFTER = Turn(items=(make("write_to_file", path="after.txt", content="x\n"),))


@pytest.mark.parametrize(
    "first", [Turn(items=(SayText(text="I write it."), Wait(seconds=60))), Turn(items=(run("git push origin main"),))]
)
async def test_closing_stops_what_goes_on_and_holds_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: Turn
) -> None:
    async with page_here(tmp_path, monkeypatch, [HEARD, first, AFTER]) as here:
        visit = here.visit()
        page = await here.start(visit, "Work.")
        session = page.session.id
        async with asyncio.timeout(PATIENCE):
            while not (page.questions or "I write it." in await visit.get(f"/s/{session}")):
                await asyncio.sleep(0.01)
        await visit.done(f"/s/{session}/say", text="And this.", id="m2", steer=False)
        await visit.done(f"/s/{session}/close")
        html = await visit.get(f"/s/{session}")
        assert "1 message waits in it." in html
        assert ('class="chip stopped"' in html, "ended while it worked" in html) == (True, False)
        await visit.done(f"/s/{session}/say", text="No, do not.", id="m3", steer=False)
        page = here.book.opened[session]
        await idle(page)
        assert "As you say." in await visit.get(f"/s/{session}")
        assert not (here.folder / "after.txt").exists()
        assert [one.id for one in page.session.status.held] == ["m2"]
