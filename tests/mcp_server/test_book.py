"""The tasks of one server, in odd orders: too many, closed twice, cut while they are closed, ended elsewhere."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.running import PATIENCE
from treadle import Treadle
from treadle.app.compose import list_sessions, open_store
from treadle.mcp_server import task_book as module
from treadle.mcp_server.running_task import ServedTask
from treadle.mcp_server.task_book import TaskBook, TaskRequest
from treadle.mcp_server.task_reports import task_report
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import Answer, Delivery, EditQueued
from treadle.protocol.messages import Text
from treadle.protocol.permissions import OptionKind
from treadle.providers.scripted.script import SayText, Turn
from treadle.testing import scripted_model

LONG = TaskRequest(task="Wait.")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    made = tmp_path / "folder"
    made.mkdir()
    return made


@pytest.fixture
async def book(folder: Path, tmp_path: Path) -> AsyncIterator[TaskBook]:
    waits = {"items": [{"type": "wait", "seconds": 60}, {"type": "text", "text": "late"}]}
    (tmp_path / "script.json").write_text(json.dumps({"turns": [waits] * 3}))
    async with TaskBook([folder], {"model": f"scripted/{tmp_path / 'script.json'}"}) as made:
        yield made


async def begun(book: TaskBook) -> ServedTask:
    """Start a task that takes a minute."""
    return await book.start(LONG, book.trust(""), "client")


def leased() -> frozenset[str]:
    """The sessions that somebody works in."""
    store = open_store()
    try:
        return store.leased()
    finally:
        store.close()


async def test_one_task_too_many_leaves_no_session_behind(book: TaskBook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_TASKS", 1)
    task = await begun(book)
    for _ in range(2):
        with pytest.raises(ConfigError, match="which is the most"):
            await begun(book)
    assert [row.id for row in list_sessions(None)] == [task.id]


async def test_a_task_that_is_closed_by_several_at_once_is_closed_once(book: TaskBook) -> None:
    task = await begun(book)
    await asyncio.gather(*(book.close(task) for _ in range(3)))
    assert (book.tasks, leased()) == ((), frozenset())


async def test_a_task_whose_closing_is_cut_by_the_end_of_the_server_is_closed_whole(
    folder: Path, tmp_path: Path
) -> None:
    waits = {"items": [{"type": "wait", "seconds": 60}, {"type": "text", "text": "late"}]}
    (tmp_path / "script.json").write_text(json.dumps({"turns": [waits]}))
    async with TaskBook([folder], {"model": f"scripted/{tmp_path / 'script.json'}"}) as book:
        task = await begun(book)
        closing = asyncio.ensure_future(book.whole(book.close(task)))
        for _ in range(3):
            await asyncio.sleep(0)
    await asyncio.gather(closing, return_exceptions=True)
    assert (task.client.session.closed, leased()) == (True, frozenset())


async def test_a_task_is_joined_again_after_its_session_was_closed_in_the_terminal(
    folder: Path, book: TaskBook, tmp_path: Path
) -> None:
    model = scripted_model(Turn(items=(SayText(text="Hello."),)))
    async with Treadle(folder, model=model) as owner, asyncio.timeout(PATIENCE):
        await owner.run("Hi.")
        while not list((tmp_path / "home" / "live").glob("*.sock")):
            await asyncio.sleep(0.02)
        shared = await book.join(owner.session_id, None, "client")
        assert await book.join(owner.session_id, None, "client") is shared
    async with asyncio.timeout(PATIENCE):
        while task_report(shared).state != "closed":
            await asyncio.sleep(0.02)
    # Its model was one of the program's own.
    with pytest.raises((ConfigError, SessionError)):
        await book.join(owner.session_id, None, "client")
    assert book.tasks == ()


async def test_the_turn_that_goes_on_in_a_session_is_followed_by_who_joins_it(
    folder: Path, book: TaskBook, tmp_path: Path
) -> None:
    asks = {"type": "call", "name": "ask_followup_question", "arguments": {"question": "Which colour?"}}
    turns = [{"items": [asks]}, {"items": [{"type": "text", "text": "Red it is."}]}]
    (tmp_path / "asks.json").write_text(json.dumps({"turns": turns}))
    async with (
        asyncio.timeout(PATIENCE),
        TaskBook([folder], {"model": f"scripted/{tmp_path / 'asks.json'}"}) as elsewhere,
    ):
        owner = await begun(elsewhere)
        while not owner.questions or not list((tmp_path / "home" / "live").glob("*.sock")):
            await asyncio.sleep(0.02)
        shared = await book.join(owner.id, None, "client")
        assert task_report(shared).state == "needs_answer"
        answer = Answer(question_id=owner.questions[0].id, option=OptionKind.ANSWER, text="Red.")
        await owner.answer(answer, "client")
        while (report := task_report(shared)).state != "done":
            await asyncio.sleep(0.02)
        assert report.answer == "Red it is."


async def test_a_message_that_is_removed_from_the_queue_leaves_the_task_open(folder: Path, book: TaskBook) -> None:
    task = await begun(book)
    run = await task.client.ask((Text(text="More."),), Delivery.QUEUE)
    await task.ask((Text(text="And more."),), "client")
    (_, last) = task.client.session.status.queue
    await task.client.post(EditQueued(prompt_id=last.id))
    async with asyncio.timeout(PATIENCE):
        while not task_report(task).error:
            await asyncio.sleep(0.02)
    report = task_report(task)
    assert (report.state, report.error) == ("working", "The prompt was removed from the queue. Ask again.")
    assert not run.ended
