"""One task of the server: its session, what was asked in it, and what happens, for whoever waits."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum

from treadle.door.open_session import PromptRun, SessionClient
from treadle.present.item_lines import ProgressLines
from treadle.present.words import clip_text
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import SessionError
from treadle.protocol.events import Answer, Delivery
from treadle.protocol.messages import UserContent
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.permissions import Question

_LONGEST_LINE = 200
_MOST_LINES = 500
_TICK = 10.0
"""Seconds after which whoever waits is sent a sign of life."""

Tell = Callable[[str], Awaitable[None]]
"""Takes a line of progress."""


class TaskState(StrEnum):
    """Where a task is."""

    WORKING = "working"
    NEEDS_ANSWER = "needs_answer"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    IDLE = "idle"
    CLOSED = "closed"


class ServedTask:
    """A session that clients of the server work with, its own or one that a terminal shares.

    `has_forms`: a client that began or joined it can ask its user, whose word an approval is from then on, whoever
    calls.
    """

    client: SessionClient
    has_forms: bool = False

    def __init__(self) -> None:
        self._run: PromptRun | None = None
        self._answered: set[str] = set()
        self._closing: asyncio.Future[None] | None = None
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._happened = 0
        self._progress = ProgressLines("mcp")
        self._changed = asyncio.Event()

    @property
    def id(self) -> str:
        """Its id, which is its session's."""
        return self.client.session.id

    @property
    def questions(self) -> tuple[Question, ...]:
        """What waits for a person's answer; of a session elsewhere one may be listed for a moment after its answer."""
        if self.over:
            return ()
        return tuple(one for one in self.client.session.status.questions if one.id not in self._answered)

    @property
    def doing(self) -> str:
        """The last thing that happened, in a line."""
        return self._lines[-1] if self._lines else ""

    @property
    def outcome(self) -> TurnOutcome | None:
        """The end of the turn of the last message, or that went on at joining; None where there is none yet."""
        return None if self._run is None else self._run.outcome

    @property
    def error(self) -> Exception | None:
        """Why the last message never comes to an end."""
        return None if self._run is None else self._run.error

    @property
    def over(self) -> bool:
        """Whether its session is closed, or being closed."""
        return self._closing is not None or self.client.session.closed

    @property
    def state(self) -> TaskState:
        """Where it is; of a session that is shared, what was asked here decides once it ended."""
        session, run = self.client.session, self._run
        if self.questions:
            return TaskState.NEEDS_ANSWER
        if run is not None and run.outcome is not None:
            return _ended(run.outcome)
        if session.closed:
            return TaskState.CLOSED
        waits = run is not None and not run.ended
        return TaskState.WORKING if waits or session.status.turn_active else TaskState.IDLE

    def join(self) -> None:
        """Follow the turn that goes on: one that was cut off, or that somebody else asked for."""
        self._run = self.client.join_turn()

    async def ask(self, content: tuple[UserContent, ...], client: str, *, steer: bool = False) -> None:
        """Send a message as this client. Raises `TreadleError`."""
        delivery = Delivery.STEER if steer else Delivery.QUEUE
        self._run = await self.client.ask(content, delivery, name=client)

    async def answer(self, answer: Answer, client: str) -> None:
        """Answer a question as this client. Raises `TreadleError`."""
        await self.client.post(answer, name=client)
        self._answered.add(answer.question_id)

    def hear(self, stamped: Stamped) -> None:
        """Take what happened."""
        for line in self._progress.take(stamped):
            self._happened += 1
            self._lines.append(clip_text(line.text, _LONGEST_LINE))
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seconds: float, tell: Tell) -> None:
        """Wait until it ended or needs an answer, at most so many seconds; progress goes to `tell`."""
        clock = asyncio.get_running_loop()
        end, told, seen = clock.time() + seconds, clock.time(), self._happened
        while self.state is TaskState.WORKING and (left := end - clock.time()) > 0:
            changed = self._changed
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _TICK)):
                    await changed.wait()
            count, seen = self._happened - seen, self._happened
            new = list(self._lines)[-count:] if count else []
            if not new and clock.time() - told >= _TICK:
                new = [self.doing or "working"]
            for line in new:
                told = clock.time()
                await tell(line)

    async def close(self) -> None:
        """Leave the session: its own is closed and can be continued, that of a terminal continues there.

        Once it has begun it is done to its end, whoever is cancelled that waits for it.
        """
        if self._closing is None:
            self._closing = asyncio.ensure_future(self.client.__aexit__(None, None, None))
        await asyncio.shield(self._closing)

    def question(self, question_id: str) -> Question:
        """Find an open question, by its id or as the only one; raises `SessionError`."""
        found = [one for one in self.questions if not question_id or one.id == question_id]
        if len(found) != 1:
            raise SessionError(
                "mcp-question",
                f"There is no open question {question_id!r}." if question_id else "It is not clear which question.",
                why=f"Open are: {', '.join(one.id for one in self.questions) or 'none'}.",
                fix="task_status lists them with their ids.",
            )
        return found[0]


def _ended(outcome: TurnOutcome) -> TaskState:
    match outcome.stop:
        case TurnStop.END_TURN:
            return TaskState.DONE
        case TurnStop.ERROR | TurnStop.REFUSAL:
            return TaskState.FAILED
        case _:
            return TaskState.STOPPED
