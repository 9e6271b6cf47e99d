"""The sessions that the page shows: they come, fall behind, and end elsewhere."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.e2e.faults.driving import attended, run, script
from tests.e2e.running import PATIENCE
from treadle.app.session.shared.remote import RemoteSession
from treadle.present.items import ProblemItem, TurnItem
from treadle.protocol.attach import FeedCursor
from treadle.protocol.errors import SessionError, StoreError
from treadle.protocol.events import Event, Prompt, SetMode
from treadle.protocol.messages import Text
from treadle.protocol.permissions import Mode, OptionKind
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store
from treadle.web.book import SessionBook
from treadle.web.page_keys import Visitor
from treadle.web.page_session import PageSession


async def until(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not found():
            await asyncio.sleep(0.01)


def shown(page: PageSession) -> list[str]:
    return [type(placed.item).__name__ for placed in page.content.items()]


async def test_a_session_of_elsewhere_comes_is_made_anew_when_it_missed_too_much_and_can_be_read_after_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SessionBook(tmp_path / "ws", {}) as book:
        async with attended(tmp_path, monkeypatch, run("echo one > one.txt"), run("echo two > two.txt")) as session:
            id_ = session.live.id
            await session.begin()
            question = await session.asked()
            await until(lambda: id_ in book.opened)
            first = book.opened[id_]
            await until(lambda: shown(first) == ["SaidItem", "CallItem"])
            assert isinstance(first.session, RemoteSession)
            # It comes back with a number that the session does not know any more.
            first.session._cursor = FeedCursor(run="another", number=1)
            assert first.session._line._writer is not None
            first.session._line._writer.transport.abort()
            await session.answer(question, OptionKind.ALLOW_ONCE)
            second = await session.asked()
            await until(lambda: book.opened.get(id_) not in (None, first))
            anew = book.opened[id_]
            assert first.content.run != anew.content.run
            await until(lambda: len(anew.questions) == 1)
            assert shown(anew) == ["SaidItem", "CallItem", "CallItem"]
            await session.answer(second, OptionKind.ALLOW_ONCE)
            await session.ended()
            await until(lambda: any(isinstance(placed.item, TurnItem) for placed in anew.content.items()))
            live = shown(anew)
            assert live.count("CallItem") == 2
            assert "NoteItem" not in live
        await until(lambda: id_ not in book.opened)
        past = book.past(id_)
        assert [type(placed.item).__name__ for placed in past.items()] == live
        with pytest.raises(SessionError, match="no session"):
            book.past(id_[:-1])


async def test_what_ended_a_session_stands_at_the_end_of_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Store.append

    async def full(store: Store, session_id: str, events: Sequence[Event], *, durable: bool) -> None:
        if any(isinstance(event.data, Prompt) for event in events):
            await append(store, session_id, events, durable=durable)
            return
        raise StoreError(
            "log-unwritable", "The session log cannot be written.", why="disk full", fix="Free some space."
        )

    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ws").mkdir()
    async with ScriptedServer(script()) as server, SessionBook(tmp_path / "ws", {}, trust=True) as book:
        flags = {"model": "anthropic-compatible/scripted", "base_url": server.base_url}
        page = await book.start(book.opening(book.trust(tmp_path / "ws"), **flags))
        id_ = page.session.id
        monkeypatch.setattr("treadle.store.sqlite.Store.append", full)
        await page.post(Prompt(id="p", content=(Text(text="Work."),)), Visitor(name="browser 1", here=True))
        await until(lambda: id_ not in book.opened)
        monkeypatch.undo()
        monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
        *_, last = book.past(id_).items()
        assert last.item == ProblemItem("The session log cannot be written.", "disk full", "Free some space.")


async def test_a_session_that_the_page_takes_up_again_keeps_the_mode_that_was_chosen_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ws").mkdir()
    async with ScriptedServer(script()) as server:
        flags = {"model": "anthropic-compatible/scripted", "base_url": server.base_url, "mode": Mode.AUTO}
        async with SessionBook(tmp_path / "ws", flags, trust=True) as book:
            trust = book.trust(tmp_path / "ws")
            page = await book.start(book.opening(trust))
            here = Visitor(name="browser 1", here=True)
            await page.post(SetMode(mode=Mode.PLAN), here)
            await page.post(Prompt(id="p", content=(Text(text="Work."),)), here)
            await until(lambda: not page.session.status.turn_active and bool(page.session.title))
            await book.close(page.session.id)
            again = await book.resume(page.session.id, trust)
            assert again.session.status.mode is Mode.PLAN
            await book.close(page.session.id)
            wider = await book.resume(page.session.id, trust, mode=Mode.EDITS)
            assert wider.session.status.mode is Mode.EDITS
