"""A session that a host drives over standard input and output, as the SDKs for Claude Code do: both ways at once."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.open_session import LiveSession
from treadle.door.program import Exit, describe_crash, exit_code
from treadle.door.trust import SessionTrust
from treadle.headless.channel import Channel, Frame
from treadle.headless.frames import FrameMaker
from treadle.headless.host_asking import REQUIRES_ACTION, OpenQuestions
from treadle.headless.host_control import BESIDE, control, init_fields
from treadle.headless.host_messages import HostMessages
from treadle.headless.host_prompts import host_trust
from treadle.headless.host_questions import HOST_MODES, NOBODY
from treadle.headless.host_start import HostStart
from treadle.headless.progress import goes_on, is_at_work, turns_together
from treadle.headless.result_frames import TurnCount, command_fields, denied_words, failed_fields, result_fields
from treadle.protocol.checkpoints import Restore
from treadle.protocol.errors import RefusedError, SessionError, TreadleError
from treadle.protocol.events import EditQueued, Interrupt, SetMode, SetPresence, Source
from treadle.protocol.notifications import (
    Notice,
    Notification,
    Phase,
    PhaseChanged,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    TurnStop,
)

if TYPE_CHECKING:
    from treadle.door.hosts import StructuredAnswer

HOST = Source(kind="sdk", id="main")


class Hosting(Struct, frozen=True, kw_only=True):
    """What the command line of a host says that is not about the session itself.

    `asks`: the host answers questions about permissions; `denies`: not yet, by its mode. `task` is the only message, of
    a host that says nothing. `state_frames`: it follows the state of the session, and shows that to nobody.
    """

    asks: bool = False
    denies: bool = False
    partial: bool = False
    replay: bool = False
    hook_events: bool = False
    state_frames: bool = False
    task: str | None = None
    structured: "StructuredAnswer | None" = None


class SessionOpener(Struct, frozen=True, kw_only=True):
    """How the session is opened: `trust` is how its folder is trusted now, `open` takes the host's word on it."""

    trust: Callable[[], SessionTrust]
    open: Callable[[SessionTrust, "HostedSession"], Awaitable[LiveSession]]


class HostedSession:
    """One host and its session, which is opened when it is first needed: by then the host can say whether to trust.

    `goes_back_to` is the event after which the conversation of a session that is resumed goes on, 0 for its end.
    """

    source = HOST

    def __init__(self, channel: Channel, hosting: Hosting, opener: SessionOpener, warn: Callable[[str], None]) -> None:
        self.channel = channel
        self.hosting = hosting
        self.warn = warn
        self.began = HostStart()
        self.live: LiveSession | None = None
        self.first_model = ""
        self.goes_back_to = 0
        self.frames = FrameMaker("", "", str)
        self._opener = opener
        self._opening = asyncio.Lock()
        self.messages = HostMessages(self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._questions = OpenQuestions(self)
        self._quiet = asyncio.Event()
        self._left = self._skips = self._over = self.speaks = False
        self._denies = hosting.denies
        self._state = ""
        self._in_tools = False
        self._count = TurnCount()
        self._code = Exit.DONE
        self._denied = False
        self._turns: list[TurnOutcome] = []
        self._between = self._in_turn = self._answered = self._rests = False

    @property
    def present(self) -> bool:
        """Whether somebody can answer."""
        return self.hosting.asks and not (self._left or self._denies)

    @property
    def denies_itself(self) -> bool:
        """Whether a call that nobody approves is denied by the word of a host that could be asked: it does not want to.

        One that wanted to be asked and has gone has said nothing, and neither has a script.
        """
        return self.speaks and (self._denies or not self.hosting.asks)

    @property
    def waits_for_trust(self) -> bool:
        """Whether the session is not opened before the first message, with which the host is asked about the folder."""
        return self.live is None and self.present and self._opener.trust().asks

    async def run(self) -> int:
        """Do what the host says until it has nothing more to say; returns the exit code. Raises `TreadleError`."""
        self.start(self.messages.send_all(), "messages")
        reading = asyncio.create_task(self._read(), name="host")
        gone = asyncio.create_task(self.channel.gone.wait(), name="host gone")
        try:
            ends: list[asyncio.Future[Any]] = [reading, gone, self._failed]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for one in (self._failed, reading):
                if one.done():
                    one.result()
        except asyncio.CancelledError:  # by a signal
            if self.messages.owes:
                self._cut_off(TreadleError("ended", "The program was ended before the task was done."))
            raise
        except (Exception, BaseExceptionGroup) as error:  # the task owner: a host waits for the end of its turn
            self._cut_off(error)
            raise
        finally:
            self._over = True
            for task in (reading, gone, *self._tasks):
                task.cancel()
            await asyncio.gather(reading, gone, *self._tasks, return_exceptions=True)
            try:
                if self.live is not None:
                    await self.live.__aexit__(None, None, None)
            finally:
                await self.channel.close()
        if self.channel.gone.is_set():
            return Exit.FAILED
        return Exit.PERMISSION if self._code is Exit.DONE and self._denied else self._code

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Do something beside the reading; what fails there ends the program."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended_task)
        return task

    def _ended_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if self._over or self._failed.done():  # another failure is told already: this one is for the log
            describe_crash(error)
        else:
            self._failed.set_exception(error)

    async def _read(self) -> None:
        """Take what the host says; at its end do what it has asked for, without anybody to ask."""
        if self.hosting.task is not None:
            self.messages.put({"message": {"content": self.hosting.task}})
        async for frame in self.channel.frames():
            match frame:
                case str(problem):
                    self.warn(f"A line of the host is skipped: {problem}.")
                case {"type": "control_request", "request": {"subtype": str(kind)}} if kind in BESIDE:
                    self.start(control(self, frame), "control")
                case {"type": "control_request"}:
                    await control(self, frame)
                case {"type": "user"}:
                    self.messages.put(frame)
                case _:
                    self.warn(f"A frame of the host is skipped: its type {frame.get('type')!r} is not known.")
        self._left = True
        self.messages.put(None)
        if self.live is not None:
            await self._tell_presence(self.live)
        named = ("messages", "control")
        while (wanted := [task for task in self._tasks if task.get_name() in named]) and not self._failed.done():
            await asyncio.wait([*wanted, self._failed], return_when=asyncio.FIRST_COMPLETED)
        await self.messages.until_idle()
        while self._answered and not self._rests:
            self._quiet.clear()
            await self._quiet.wait()

    async def _tell_presence(self, live: LiveSession) -> None:
        if self.hosting.asks:
            with suppress(RefusedError):
                await live.post(SetPresence(user_present=self.present), HOST)

    async def ask_nobody(self, live: LiveSession) -> None:
        """End what only somebody here could answer as it ends without anybody."""
        await live.post(SetPresence(user_present=False), HOST)
        await self._tell_presence(live)

    async def change_mode(self, live: LiveSession, wanted: str) -> None:
        """Change the mode to one of `HOST_MODES`. Raises `TreadleError`."""
        await live.post(SetMode(mode=HOST_MODES[wanted]), HOST)
        self._denies = wanted == NOBODY
        await self._tell_presence(live)

    async def session(self) -> LiveSession:
        """Give the session; opens it first. Raises `TreadleError`."""
        async with self._opening:
            if self.live is None:
                trust = self._opener.trust()
                if trust.asks and self.present:
                    trust = await host_trust(trust, self.channel, self.warn)
                return await self._open(trust)
            return self.live

    async def _open(self, trust: SessionTrust) -> LiveSession:
        live = await self._opener.open(trust, self)
        feed = live.follow()
        self.live = await live.__aenter__()
        hosting = self.hosting
        if hosting.structured is not None:
            hosting.structured.join(live.id, live.awaits_subagents)
        self.frames = FrameMaker(
            live.id,
            str(live.workspace),
            lambda: live.status.model,
            partial=hosting.partial,
            replay=hosting.replay,
        )
        self.first_model = live.status.model
        for notice in live.notices:
            self.warn(notice)
        if hosting.task is None or self.goes_back_to:
            await self._end_past(live)
        elif is_at_work(live):
            self.messages.owe_resumed()
            self._begin(live)
            self._in_turn = live.status.turn_active
            self._between = not self._in_turn
        self.start(self._follow(live, feed), "frames")
        if self.goes_back_to:
            await self.until_quiet(live)
            await live.post(Restore(files=False, conversation=True, to=self.goes_back_to), HOST)
            await self.until_quiet(live)
        if self._left:
            await self._tell_presence(live)
        return live

    async def _end_past(self, live: LiveSession) -> None:
        """End what was going on when the session was left: what its host reads next is about its next message."""
        for waiting in live.status.queue:
            self.warn("A message that was waiting when the session ended is not sent.")
            await live.post(EditQueued(prompt_id=waiting.id), HOST)
        if live.status.turn_active:
            self._skips = True
            await self.interrupt(live)

    async def until_quiet(self, live: LiveSession) -> None:
        """Wait until what was posted besides a message is done, such as a summary or a restored file."""
        while not live.quiet:
            self._quiet.clear()
            await self._quiet.wait()

    async def _follow(self, live: LiveSession, feed: Any) -> None:
        async with feed:
            async for notification in feed:
                await self._take(live, notification)
                rests = feed.is_read and not (self._in_turn or is_at_work(live))
                if rests and self._between:  # nothing has come of it: it woke nobody, or the goal is met
                    self._conclude()
                self._rests = rests
                self._quiet.set()
        await live.failure()
        raise SessionError("session-closed", "The session was closed before the task was done.")

    async def _take(self, live: LiveSession, notification: Notification) -> None:
        match notification:
            case _ if self._skips:
                self._skips = not isinstance(notification, TurnEnded)
                return
            case TurnStarted():
                self._begin(live)
            case PhaseChanged(phase=phase):
                self._count.phase(phase)
                self._in_tools = phase is Phase.EXECUTING_TOOL or (self._in_tools and phase is Phase.CANCELLING)
            case QuestionAsked() | QuestionClosed():
                await self._questions.take(notification)
            case TurnEnded(outcome=outcome):
                await self._ended(live, outcome)
            case _:
                if isinstance(notification, Notice):
                    self._count.add_outside(notification, live.status.model, live.status.window)
                if isinstance(notification, PromptDelivered):
                    self.messages.delivered(notification.prompt_id)
                for frame in self.frames.take(notification):
                    self.channel.send(frame)
        self._questions.put(live)

    def _begin(self, live: LiveSession) -> None:
        """Say that a turn begins, and with what; one that follows on another of the same run only goes on."""
        self._in_turn, self._between, self._rests = True, False, False
        if self._turns:
            return
        self._count.begin()
        self.frames.begin_turn()
        if self.hosting.structured is not None:
            self.hosting.structured.forget()
        self.announce(live)

    def show_hook(self, subtype: str, **fields: Any) -> None:
        """Say that a hook of the host runs, or what it said, where the host wants to see that."""
        if self.hosting.hook_events:
            self.channel.send(self.frames.system(subtype, **fields))

    def announce(self, live: LiveSession) -> None:
        """Say that something begins."""
        self.state("running")
        self.channel.send(self.frames.system("init", **init_fields(self, live)))

    @property
    def asks_now(self) -> bool:
        """Whether the host has read that something waits for it."""
        return self._state == REQUIRES_ACTION

    def state(self, state: str) -> None:
        """Say in which state the session is; hosts that do not follow that do not see it."""
        if self.hosting.state_frames and state != self._state:
            self._state = state
            self.channel.send(self.frames.system("session_state_changed", state=state, sdk_host_only=True))

    async def interrupt(self, live: LiveSession) -> None:
        """Stop what is going on, if anything is."""
        with suppress(RefusedError):
            await live.post(Interrupt(), HOST)

    async def _ended(self, live: LiveSession, outcome: TurnOutcome) -> None:
        """Take the end of a turn. A script reads one for its whole run, as far as that goes on by itself."""
        await self._questions.withdraw()
        self._count.add(outcome, live.status.model, live.status.window)
        self._turns.append(outcome)
        self._in_turn, self._answered = False, outcome.stop is TurnStop.END_TURN
        self._between = self.hosting.task is not None and goes_on(live, outcome)
        if not self._between:
            self._conclude()

    def _conclude(self) -> None:
        structured = self.hosting.structured
        outcome = turns_together(self._turns or [TurnOutcome(stop=TurnStop.END_TURN)])
        self._turns, self._between = [], False
        missing = structured is not None and structured.is_missing(outcome)
        if outcome.denied and self.denies_itself:
            self.warn(f"{denied_words(outcome)}: the host answers no questions about permissions.")
            outcome = replace(outcome, denied=0)
        fields = result_fields(outcome, no_value=missing, in_tools=self._in_tools)
        if structured is not None and structured.given and outcome.stop is TurnStop.END_TURN:
            fields["structured_output"] = structured.value
        fields["user_message_uuids"] = self.messages.in_turn()
        self._code = Exit.FAILED if missing else exit_code(outcome)
        self._denied = self._denied or outcome.denied > 0
        self.result(fields)
        self.messages.settle_turn()

    def _cut_off(self, error: BaseException) -> None:
        """Say why a turn has no end, with what it has come to by now."""
        live = self.live
        by_now = None if live is None else live.by_now
        if live is not None and by_now is not None:
            self._count.add(by_now, live.status.model, live.status.window)
        elif not self._turns:
            self._count.begin()
            self.frames.begin_turn()
        self.result({**failed_fields(error), "user_message_uuids": self.messages.in_turn()})

    def answer_alone(self, live: LiveSession, text: str, frame: Frame, code: Exit = Exit.DONE) -> None:
        """Say what came of a message that was not sent to a model, such as a command; nothing else is going on."""
        self._count.begin()
        self.frames.begin_turn()
        self.announce(live)
        if text:
            self.channel.send(self.frames.answer(text))
        named = [str(frame["uuid"])] if frame.get("uuid") else []
        self.result({**command_fields(text, failed=code is not Exit.DONE), "user_message_uuids": named})
        self._code = code
        self.state("idle")

    def result(self, fields: Frame) -> None:
        """Send the end of a turn."""
        said = {**self._count.taken(), **fields, "permission_denials": self.frames.denials}
        self.channel.send(self.frames.frame("result", **said))
