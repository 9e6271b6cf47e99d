"""Several surfaces on one live session: each hears everything once, and a question is answered once."""

import asyncio
import os
import random
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.engine import SPEC, STARTED, USAGE, FakeTool, calls, ports
from treadle.app.session.shared import session_connection as connection
from treadle.app.session.shared.access import ServersAccess
from treadle.app.session.shared.catching_up import caught_up
from treadle.app.session.shared.session_connection import SessionConnection
from treadle.app.session.shared.session_wire import Address, remove_stale_sockets
from treadle.app.session.shared.sharing import Shared, share
from treadle.engine.runtime.feeds import Feed
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.protocol.attach import (
    AskServers,
    FeedCursor,
    ListedAgent,
    Notified,
    Post,
    Refused,
    ServersAnswer,
    ServersSaid,
    SessionStatus,
    Snapshot,
    Stamped,
    Taken,
)
from treadle.protocol.checkpoints import OwnTotal
from treadle.protocol.errors import SessionError
from treadle.protocol.events import Answer, Prompt, SetPresence
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelRequest, ReplyStop, StreamEvent, StreamStop, StreamText, ToolProtocol
from treadle.protocol.notifications import (
    Notice,
    Notification,
    OwnWorkChanged,
    Phase,
    QuestionAsked,
    QuestionClosed,
    TextDelta,
    TurnEnded,
)
from treadle.protocol.permissions import Decision, Mode, OptionKind, Verdict
from treadle.protocol.tools import CallResult, Outcome, Risk, result_text

PATIENCE = 90.0
STEPS = 4
AGENTS = (ListedAgent(name="a", description="Checks.", origin="the host", writes=False),)


class Talker:
    """Writes in pieces, and calls a tool that has to be asked about, some times; then it answers."""

    def __init__(self) -> None:
        self.requests = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests += 1
        for word in range(30):
            yield StreamText(text=f"{self.requests}.{word} ")
            if word % 5 == 0:
                await asyncio.sleep(0)
        if self.requests <= STEPS:
            for event in calls("change"):
                yield event
        else:
            yield StreamStop(reason=ReplyStop.END_TURN, usage=USAGE)

    async def close(self) -> None:
        pass


def ask(*_: object) -> Decision:
    return Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=Risk.WRITE, digest="d")


async def done(_: object) -> CallResult:
    return result_text(Outcome.OK, "done")


@asynccontextmanager
async def shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: ServersAccess | None = None
) -> AsyncIterator[Session]:
    """A session that works and is shared on a socket."""
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    made = ports(Talker(), FakeTool("change", done), judge=ask)
    session = Session(Track(), made.clock)
    working = asyncio.create_task(session.run(made))
    await session.post(STARTED)
    await session.post(SetPresence(user_present=True))
    sharing = asyncio.create_task(
        share(
            Shared(
                session_id="s",
                workspace="/w",
                roots=(),
                agents=AGENTS,
                run="r",
                status=lambda: status(session),
                attach=session.attach,
                post=session.post,
                servers=servers,
            )
        )
    )
    async with asyncio.timeout(PATIENCE):
        while not (tmp_path / "home/live/s.sock").exists():
            await asyncio.sleep(0.01)
    try:
        yield session
    finally:
        sharing.cancel()
        await asyncio.gather(sharing, return_exceptions=True)
        await session.close()
        await working


def status(session: Session) -> SessionStatus:
    return SessionStatus(
        phase=Phase.WAITING_FOR_EVENT,
        mode=Mode.ASK,
        model=SPEC.ref,
        tool_protocol=ToolProtocol.NATIVE,
        turn_active=session.state.turn is not None,
        questions=session.state.questions,
    )


def spelled(notification: Sequence[Notification]) -> list[Notification]:
    """Put the pieces of one text together, as they may come in other pieces to each."""
    joined: list[Notification] = []
    for one in notification:
        if isinstance(one, TextDelta) and joined and isinstance(joined[-1], TextDelta):
            joined[-1] = TextDelta(text=joined[-1].text + one.text)
        else:
            joined.append(one)
    return joined


class Client:
    """Attaches, listens for a while, is cut off, and comes back; answers every question that it hears of."""

    def __init__(self, jitter: random.Random, option: OptionKind) -> None:
        self.heard: list[Notification] = []
        self.answers: dict[str, Taken | Refused | None] = {}
        self._posted: dict[int, str] = {}
        self._chance = jitter
        self._option = option
        self._cursor: FeedCursor | None = None
        self.ended = False
        self.attached = False

    async def run(self) -> None:
        while not self.ended:
            await self._attached()

    async def _attached(self) -> None:
        line = SessionConnection("s")
        attached = await line.open(self._cursor)
        assert (attached.snapshot is None) is (self._cursor is not None), "what was missed is remembered"
        self._cursor = FeedCursor(run=attached.run, number=attached.number)
        self.attached = True
        for question in attached.status.questions:
            await self._answer(line, question.id)
        for _ in range(self._chance.randrange(40)):
            message = await line.hear()
            match message:
                case Notified(number=number, notification=notification):
                    assert number > self._cursor.number
                    self._cursor = FeedCursor(run=attached.run, number=number)
                    self.heard.append(notification)
                    if isinstance(notification, QuestionAsked):
                        await self._answer(line, notification.question.id)
                    if isinstance(notification, TurnEnded):
                        self.ended = True
                        break
                case Taken(number=number) | Refused(number=number):
                    self.answers[self._posted[number]] = message
                case _:
                    break
        await line.close()

    async def _answer(self, line: SessionConnection, question_id: str) -> None:
        if self.answers.get(question_id) is not None:
            return
        number = len(self._posted) + 1
        self._posted[number] = question_id
        self.answers[question_id] = None
        await line.say(Post(number=number, op=Answer(question_id=question_id, option=self._option)))


@pytest.mark.parametrize("seed", range(5))
async def test_two_surfaces_that_come_and_go_miss_nothing_and_hear_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    jitter = random.Random(seed)
    async with shared(tmp_path, monkeypatch) as session, asyncio.timeout(PATIENCE):
        reference = session.follow()
        clients = [Client(jitter, OptionKind.ALLOW_ONCE), Client(jitter, OptionKind.REJECT_ONCE)]
        running = [asyncio.create_task(client.run()) for client in clients]
        while not all(client.attached for client in clients):
            await asyncio.sleep(0.01)
        await session.post(Prompt(id="p", content=(Text(text="go"),)))
        everything = await all_of(reference)
        await asyncio.gather(*running)
    for client in clients:
        assert spelled(client.heard) == spelled(everything)
    closed = [one for one in everything if isinstance(one, QuestionClosed)]
    assert len(closed) == STEPS
    for one in closed:
        answers = [client.answers.get(one.question_id) for client in clients]
        assert sum(isinstance(answer, Taken) for answer in answers) <= 1
        assert one.by.startswith("tui:terminal ")


async def all_of(feed: Feed) -> list[Notification]:
    heard: list[Notification] = []
    async for notification in feed:
        heard.append(notification)
        if isinstance(notification, TurnEnded):
            break
    return heard


async def test_a_surface_that_comes_late_is_given_what_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shared(tmp_path, monkeypatch) as session, asyncio.timeout(PATIENCE):
        feed = session.follow()
        await session.post(Prompt(id="p", content=(Text(text="go"),)))
        question = await anext(
            notification.question async for notification in feed if isinstance(notification, QuestionAsked)
        )
        line = SessionConnection("s")
        attached = await line.open()
        await line.close()
        assert attached.snapshot is not None
        assert [call.call.name for call in attached.snapshot.calls] == ["change"]
        assert [question.id for question in attached.status.questions] == [question.id]
        assert attached.source.id == "terminal 2"
        assert attached.agents == AGENTS


def test_a_surface_that_fell_behind_is_told_how_much_is_the_sessions_own_work_now() -> None:
    past = [OwnWorkChanged(total=OwnTotal(files=n, added=n, removed=0)) for n in (1, 2)]
    now = SessionStatus(
        phase=Phase.WAITING_FOR_EVENT,
        mode=Mode.ASK,
        model=SPEC.ref,
        tool_protocol=ToolProtocol.NATIVE,
        turn_active=False,
    )
    heard = [Stamped(notification=one) for one in (past[0], Notice(text="a"), past[1])]
    told = list(caught_up("s", now, now, Snapshot(seq=9), past=heard))
    assert [one for one in told if isinstance(one, OwnWorkChanged)] == past[1:]


async def test_servers_that_take_their_time_hold_nothing_up_and_are_asked_one_question_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, asked = threading.Event(), list[str]()

    class Servers:
        def command(self, argument: str) -> ServersAnswer:
            asked.append(argument)
            assert ready.wait(PATIENCE)
            return ServersAnswer(text=f"said {argument}")

        def complete(self, prompt: tuple[str, str], said: str) -> Sequence[str]:
            raise AssertionError((prompt, said))

    async with shared(tmp_path, monkeypatch, Servers()), asyncio.timeout(PATIENCE):
        line = SessionConnection("s")
        await line.open()
        await line.say(AskServers(number=1, argument="one"))
        await line.say(Post(number=2, op=SetPresence(user_present=False)))
        await line.say(AskServers(number=3, argument="three"))
        heard: list[object] = []
        while not any(isinstance(one, ServersSaid) for one in heard):
            heard.append(await line.hear())
        assert [one.number for one in heard if isinstance(one, Taken)] == [2]
        busy = heard[-1]
        assert isinstance(busy, ServersSaid)
        assert (busy.number, busy.answer.warning, asked) == (3, True, ["one"])
        ready.set()
        while not isinstance(said := await line.hear(), ServersSaid):
            pass
        assert said == ServersSaid(number=1, answer=ServersAnswer(text="said one"))
        ready.clear()
        await line.say(AskServers(number=4, argument="four"))
        await line.close()
        again = SessionConnection("s")  # who leaves while it is asked keeps nobody
        await again.open()
        await again.say(AskServers(number=1))
        ready.set()
        while not isinstance(said := await again.hear(), ServersSaid):
            pass
        assert said.answer.text == "said "
        await again.close()


async def test_who_has_not_the_key_is_not_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shared(tmp_path, monkeypatch) as session:
        live = tmp_path / "home" / "live"
        assert (live.stat().st_mode & 0o777, (live / "s.sock").stat().st_mode & 0o777) == (0o700, 0o600)
        assert (live / "s.key").stat().st_mode & 0o777 == 0o600
        (live / "s.key").write_text("0" * 64)
        line = SessionConnection("s")
        with pytest.raises(SessionError) as raised:
            await line.open()
        await line.close()
        assert raised.value.code == "attach-key"
        for sent in (b"{}\n", b"\xff\n", b"\n", b'{"type":"post","number":1,"op":{"type":"interrupt"}}\n', b""):
            reader, writer, _ = await Address("s").connect()
            writer.write(sent)
            writer.write_eof()
            async with asyncio.timeout(PATIENCE):
                await reader.read()
            writer.close()
            await writer.wait_closed()
        assert session.state.turn is None
    with pytest.raises(SessionError) as raised:
        await SessionConnection("s").open()
    assert raised.value.code == "session-not-live"
    assert not (live / "s.sock").exists()


async def test_a_session_is_waited_for_only_while_a_process_has_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    looks: list[bool] = []

    def is_open() -> bool:
        looks.append(len(looks) < 2)
        return looks[-1]

    with pytest.raises(SessionError) as raised:
        await SessionConnection("s").reach(is_open)
    assert (raised.value.code, looks) == ("session-not-live", [True, True, False])
    monkeypatch.setattr(connection, "_LETS_IN_WITHIN", 0.0)
    with pytest.raises(SessionError) as raised:
        await SessionConnection("s").reach(lambda: True)
    assert raised.value.code == "session-not-live"


async def test_a_slow_reader_costs_bounded_memory_and_is_told_to_start_over() -> None:
    made = ports(Talker())
    session = Session(Track(), made.clock)
    slow, fast = session.attach(most=10_000), session.attach(most=10_000)
    heard = 0
    for number in range(2_000):
        session.publish(TextDelta(text=f"{number} ") if number % 2 else QuestionClosed(question_id=str(number)))
        heard += len(fast.feed.taken())
    assert (slow.feed.behind, slow.feed.closed, slow.feed.taken()) == (True, True, ())
    assert (heard, fast.feed.behind) == (2_000, False)
    again = session.attach(slow.number)
    assert again.snapshot is None
    assert len(again.feed.taken()) == 2_000
    assert session.attach(-1).snapshot is not None


async def test_what_killed_processes_left_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shared(tmp_path, monkeypatch):
        live = tmp_path / "home" / "live"
        for name in ("gone.sock", "gone.key", "gone.background", "young.key"):
            (live / name).touch()
            os.utime(live / name, None if "young" in name else (1, 1))
        for name in ("s.sock", "s.key"):
            os.utime(live / name, (1, 1))
        remove_stale_sockets({"s", "t"})
        assert sorted(file.name for file in live.iterdir()) == ["s.key", "s.sock", "young.key"]


async def test_a_session_that_is_suspended_is_named_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(connection, "_ANSWERS_WITHIN", 0.2)
    listening, _ = Address("s").listen()
    listening.listen()
    try:
        with pytest.raises(SessionError) as raised:
            await SessionConnection("s").open()
    finally:
        listening.close()
    assert raised.value.code == "session-silent"
