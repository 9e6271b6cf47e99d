"""A session that is woken by what it watches, end to end: each such prompt is a source's own and nobody's mention."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.feed import FakeFeed
from treadle.app.compose import Opening, open_session
from treadle.app.config.places import outputs
from treadle.app.config.sections import Settings
from treadle.app.reports.job_list import armed_lines, end_timer, list_jobs
from treadle.app.security.trusting import session_trust
from treadle.app.session.live import LiveSession
from treadle.app.session.waking import open_watchers
from treadle.engine.runtime.feeds import Feed
from treadle.protocol.events import Event, Noted, Op, Prompt, Source
from treadle.protocol.messages import Text, text_of
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import Notice, Notification, PromptDelivered, TurnEnded
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store
from treadle.workspace.commands import watchers

ME = Source(kind="test")


def call(name: str, **arguments: Any) -> MakeCall:
    return MakeCall(name=name, arguments=arguments)


def background(line: str) -> MakeCall:
    return call("execute_command", command=line, background=True)


def watch(wake_on: str) -> MakeCall:
    return call("read_command_output", command_number=1, wake_on=wake_on)


DONE = call("attempt_completion", result="Waiting.")


class Place:
    """A folder with a home, and a scripted model of which each turn is one reply."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[Any] = []

    async def run(
        self,
        calls: list[MakeCall],
        work: Callable[[LiveSession, AsyncIterator[Notification]], Any],
        resume: str = "",
        *,
        present: bool = True,
    ) -> str:
        """Open a session, ask it something, and let the test do the rest; gives its id."""
        turns = (*(Turn(items=(one,)) for one in calls), *(Turn(items=(SayText(text="Woken."),)) for _ in range(40)))
        async with ScriptedServer(Script(turns=turns)) as server:
            settings = Settings(
                model="anthropic-compatible/scripted",
                base_url=server.base_url,
                mode=Mode.FULL,
                tool_protocol=ToolProtocol.NATIVE,
            )
            trust = session_trust(self.folder, once=True)
            opening = Opening(
                workspace=self.folder, settings=settings, user_present=present, trust=trust, resume=resume
            )
            async with await open_session(opening) as live:
                feed = live.follow()
                if not resume:
                    await live.post(Prompt(id="p1", content=(Text(text="Watch it."),)), ME)
                async with asyncio.timeout(90):
                    await work(live, feed)
            self.requests = [request.body for request in server.requests]
        return live.id

    def events(self, session: str) -> list[Event]:
        store = Store(self.folder.parent / "home" / "sessions.db")
        try:
            return list(store.read(session))
        finally:
            store.close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(watchers, "_BATCH", 0.05)
    (tmp_path / "ws").mkdir()
    return Place(tmp_path / "ws")


async def until_ended(feed: AsyncIterator[Notification], turns: int) -> list[Notification]:
    """Read on until so many turns have ended."""
    seen: list[Notification] = []
    async for notification in feed:
        seen.append(notification)
        turns -= isinstance(notification, TurnEnded)
        if not turns:
            break
    return seen


async def test_a_line_that_matches_wakes_a_session_that_has_ended_its_turn(place: Place) -> None:
    line = "while [ ! -e go ]; do sleep 0.02; done; echo ERROR in @secret.txt; while [ ! -e stop ]; do sleep 0.02; done"
    (place.folder / "secret.txt").write_text("do not send this")
    delivered: list[str] = []

    async def work(live: LiveSession, feed: AsyncIterator[Notification]) -> None:
        await until_ended(feed, 1)
        assert armed_lines(live.id) == ["command 1, watched for `ERROR`"]
        assert [(one.wakes_on, one.running) for one in list_jobs(now=0, every=True)] == [("ERROR", True)]
        (place.folder / "go").touch()
        for one in await until_ended(feed, 1):
            delivered.extend([text_of(one.content)] if isinstance(one, PromptDelivered) else [])
        (place.folder / "stop").touch()
        await until_ended(feed, 1)
        assert armed_lines(live.id) == []

    session = await place.run([background(line), watch("ERROR"), DONE], work)
    assert delivered == ["Command 1 printed lines that match `ERROR`:\n```\nERROR in @secret.txt\n```"]
    sources = [event.source.name for event in place.events(session) if isinstance(event.data, Prompt)]
    assert sources == ["test:", "monitor:1", "monitor:1"]
    assert "do not send this" not in str(place.requests)


async def test_a_timer_wakes_a_session_with_its_note_and_can_be_ended_from_outside(place: Place) -> None:
    async def work(live: LiveSession, feed: AsyncIterator[Notification]) -> None:
        await until_ended(feed, 1)
        timers = [one for one in list_jobs(now=0, every=True) if one.state == "Waiting."]
        assert [one.command for one in timers] == ["timer: Later.", "timer: Soon."]
        assert end_timer(timers[0].id)
        woken = await until_ended(feed, 1)
        texts = [text_of(one.content) for one in woken if isinstance(one, PromptDelivered)]
        assert texts == ["The timer that you set 4 seconds ago is up. Soon."]
        assert armed_lines(live.id) == []

    timers = [call("set_timer", seconds=1000, note="Later."), call("set_timer", seconds=4, note="Soon.")]
    session = await place.run([*timers, DONE], work)
    sources = [event.source.name for event in place.events(session) if isinstance(event.data, Prompt)]
    assert sources == ["test:", "timer:t2"]


async def test_a_line_that_comes_while_a_turn_runs_is_read_at_its_next_step(place: Place) -> None:
    async def work(live: LiveSession, feed: AsyncIterator[Notification]) -> None:
        seen = await until_ended(feed, 1)
        delivered = [one for one in seen if isinstance(one, PromptDelivered)]
        assert [text_of(one.content) for one in delivered][1:] == [
            "Command 1 printed lines that match `ERROR`:\n```\nERROR 1\n```"
        ]

    line = "while [ ! -e go ]; do sleep 0.02; done; echo ERROR 1; sleep 1000"
    waits = call("execute_command", command="touch go; sleep 1")
    await place.run([background(line), watch("ERROR"), waits, DONE], work)


async def test_what_prints_for_ever_ends_with_a_notice_and_a_note_and_not_with_endless_turns(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "_MINUTE", 0.0)
    monkeypatch.setattr(watchers, "MOST_WOKEN", 3)

    async def work(live: LiveSession, feed: AsyncIterator[Notification]) -> None:
        woken, noticed = 0, False
        async for notification in feed:
            noticed |= isinstance(notification, Notice) and "was woken" in notification.text
            woken += isinstance(notification, PromptDelivered) and notification.by.startswith("monitor")
            if noticed and woken == watchers.MOST_WOKEN:
                break
        while live.status.turn_active or live.status.queue:
            await asyncio.sleep(0.02)
        assert armed_lines(live.id) == []

    session = await place.run([background("while sleep 0.01; do echo ERROR; done"), watch("ERROR"), DONE], work)
    events = place.events(session)
    assert [event.source.kind for event in events if isinstance(event.data, Prompt)].count("monitor") == 3
    assert [event.source.kind for event in events if isinstance(event.data, Noted)] == ["monitor"]


async def test_who_takes_the_session_up_learns_what_ended_with_the_last_process(place: Place) -> None:
    async def end(live: LiveSession, feed: AsyncIterator[Notification]) -> None:
        await until_ended(feed, 1)

    timer = call("set_timer", seconds=1000, note="Look.")
    session = await place.run([background("sleep 1000"), watch("x"), timer, DONE], end)
    assert [one for one in list_jobs(now=0, every=True) if one.running or one.wakes_on] == []

    async def ask(live: LiveSession, feed: AsyncIterator[Notification]) -> None:
        await live.post(Prompt(id="p2", content=(Text(text="And now?"),)), ME)
        await until_ended(feed, 1)

    await place.run([], ask, resume=session)
    said = (
        "These ended when the session was closed, and will not wake you: command 1, watched for `x`; a timer (Look.)."
    )
    assert said in str(place.requests[-1])
    assert list((outputs() / session).glob("watchers*")) == []


async def test_an_expression_that_may_take_long_is_refused_and_a_watch_is_ended_by_an_empty_one(place: Place) -> None:
    async def work(live: LiveSession, feed: AsyncIterator[Notification]) -> None:
        await until_ended(feed, 1)
        assert armed_lines(live.id) == []

    await place.run([background("sleep 1000"), watch("(a+)+"), watch("x"), watch(""), DONE], work)
    said = str(place.requests[-1])
    assert "wake_on cannot be used" in said
    assert "Command 1 is not watched any more." in said


class Alone:
    """A session that takes what wakes it, and tells what a test wants."""

    def __init__(self) -> None:
        self.feed = FakeFeed()
        self.told: list[str] = []
        self.woken = asyncio.Event()

    async def post(self, op: Op, source: Source) -> None:
        if isinstance(op, Prompt):
            self.feed.tell(PromptDelivered(prompt_id=op.id, content=op.content, by=source.name))
            self.woken.set()

    def follow(self) -> Feed:
        return self.feed

    def tell(self, text: str) -> None:
        self.told.append(text)


async def loops() -> None:
    """Let what was told be heard."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("by", "spent"), [("hook:", True), ("", False), ("mcp:client 1", False)])
async def test_what_a_hook_says_is_no_word_of_a_person(
    by: str, spent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "_BATCH", 0.01)
    monkeypatch.setattr(watchers, "MOST_WOKEN", 2)
    live = Alone()
    woken = open_watchers(live, tmp_path)
    for number in range(2):
        woken.set_timer(0.01, str(number))
        woken.set_timer(1000, "late")
        async with asyncio.timeout(90):
            await live.woken.wait()
        live.woken.clear()
        await loops()
        live.feed.tell(PromptDelivered(prompt_id="other", content=(Text(text="Go on."),), by=by))
        await loops()
    assert bool(live.told) is spent
    await woken.close()


@pytest.mark.parametrize("present", [True, False])
async def test_the_model_is_told_to_wait_where_its_answer_may_end_the_session(place: Place, present: bool) -> None:
    async def work(live: LiveSession, feed: AsyncIterator[Notification]) -> None:
        await until_ended(feed, 1)

    timer = call("set_timer", seconds=600, note="look")
    await place.run([background("sleep 600"), watch("ERROR"), timer, DONE], work, present=present)
    said = str(place.requests)
    assert ("You need not wait for them." in said, "wait before you answer" in said) == (present, not present)
    assert said.count("Your answer may end this session") == (0 if present else said.count("You are sent the note in"))
