"""A session that a host drives over standard input and output, as the SDKs for Claude Code do: both ways at once."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.app.exits import Exit, exit_code
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.live import LiveSession
from treadle.app.structured import AGAIN, MOST_TRIES
from treadle.headless.channel import Channel, Frame, HostError
from treadle.headless.frames import FrameMaker
from treadle.headless.host_asking import REQUIRES_ACTION, OpenQuestions
from treadle.headless.host_prompts import content_of, trust_request
from treadle.headless.results import TurnCount, command_fields, failed_fields, result_fields
from treadle.protocol.errors import RefusedError, SessionError, TreadleError
from treadle.protocol.events import Delivery, Interrupt, Prompt, SetPresence, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import (
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
    from treadle.app.structured import StructuredAnswer

HOST = Source(kind="sdk", id="main")
_RESUMED = "the turn that was cut off"


class Hosting(Struct, frozen=True, kw_only=True):
    """What the command line of a host says that is not about the session itself.

    `asks`: the host answers questions about permissions. `task` is the only message, of a host that says nothing.
    `state_frames`: it follows the state of the session, and shows that to nobody.
    """

    asks: bool = False
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
    """One host and its session, which is opened when it is first needed: by then the host can say whether to trust."""

    source = HOST

    def __init__(self, channel: Channel, hosting: Hosting, opener: SessionOpener, warn: Callable[[str], None]) -> None:
        self.channel = channel
        self.hosting = hosting
        self.warn = warn
        self.hooks: Frame = {}
        self.live: LiveSession | None = None
        self.first_model = ""
        self.frames = FrameMaker("", "", str)
        self._opener = opener
        self._opening = asyncio.Lock()
        self._messages: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._questions = OpenQuestions(self)
        self._owed: set[str] = set()
        self._delivered: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._quiet = asyncio.Event()
        self._left = self._skips = False
        self._state = ""
        self._tries = 0
        self._in_tools = False
        self._count = TurnCount()
        self._code = Exit.DONE
        self._denied = False

    @property
    def present(self) -> bool:
        """Whether somebody can answer."""
        return self.hosting.asks and not self._left

    @property
    def waits_for_trust(self) -> bool:
        """Whether the session is not opened before the first message, with which the host is asked about the folder."""
        return self.live is None and self.present and self._opener.trust().asks

    async def run(self) -> int:
        """Do what the host says until it has nothing more to say; returns the exit code. Raises `TreadleError`."""
        self.start(self._send_messages(), "messages")
        reading = asyncio.create_task(self._read(), name="host")
        gone = asyncio.create_task(self.channel.gone.wait(), name="host gone")
        try:
            ends: list[asyncio.Future[Any]] = [reading, gone, self._failed]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for one in (self._failed, reading):
                if one.done():
                    one.result()
        except TreadleError as error:
            self.result(failed_fields(error))
            raise
        except BaseExceptionGroup:
            self.result(failed_fields(TreadleError("crash", "Something went wrong inside Treadle.")))
            raise
        finally:
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
        if not task.cancelled() and (error := task.exception()) is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def _read(self) -> None:
        """Take what the host says; at its end do what it has asked for, without anybody to ask."""
        from treadle.headless.host_control import control

        if self.hosting.task is not None:
            self._messages.put_nowait({"message": {"content": self.hosting.task}})
        async for frame in self.channel.frames():
            match frame:
                case str(problem):
                    self.warn(f"A line of the host is skipped: {problem}.")
                case {"type": "control_request"}:
                    await control(self, frame)
                case {"type": "user"}:
                    self._messages.put_nowait(frame)
                case _:
                    self.warn(f"A frame of the host is skipped: its type {frame.get('type')!r} is not known.")
        self._left = True
        self._messages.put_nowait(None)
        if self.live is not None:
            await self._leave(self.live)
        while (messages := [task for task in self._tasks if task.get_name() == "messages"]) and not self._failed.done():
            await asyncio.wait([*messages, self._failed], return_when=asyncio.FIRST_COMPLETED)
        await self._idle.wait()

    async def _leave(self, live: LiveSession) -> None:
        if self.hosting.asks:
            with suppress(RefusedError):
                await live.post(SetPresence(user_present=False), HOST)

    async def session(self) -> LiveSession:
        """Give the session; opens it first. Raises `TreadleError`."""
        async with self._opening:
            if self.live is None:
                trust = self._opener.trust()
                if trust.asks and self.present:
                    trust = await self._asked_trust(trust)
                self.live = await self._open(trust)
            return self.live

    async def _open(self, trust: SessionTrust) -> LiveSession:
        live = await self._opener.open(trust, self)
        feed = live.follow()
        await live.__aenter__()
        hosting = self.hosting
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
        if live.status.turn_active and hosting.task is None:
            # A turn that was cut off is over for its host, whose next message says how it goes on.
            self._skips = True
            await self.interrupt(live)
        elif live.status.turn_active:
            self._owe(_RESUMED)
            self._delivered.add(_RESUMED)
            self._begin(live)
        self.start(self._follow(live, feed), "frames")
        if self._left:
            await self._leave(live)
        return live

    async def _asked_trust(self, trust: SessionTrust) -> SessionTrust:
        """Ask the host whether what is in the folder may take effect; anything but a yes is a no."""
        from msgspec.structs import replace

        try:
            said = await self.channel.ask(trust_request(trust))
        except HostError as error:
            self.warn(f"The folder is not trusted: {error}")
            return trust
        return replace(trust, once=said.get("behavior") == "allow")

    async def _send_messages(self) -> None:
        while (frame := await self._messages.get()) is not None:
            live = await self.session()
            content = content_of(frame, self.warn)
            if not content and self._owed:
                continue  # nothing but to finish what was cut off
            if not content:
                self.warn("A message without a text, an image or a document is skipped.")
                continue
            text = content[0].text if len(content) == 1 and isinstance(content[0], Text) else ""
            if text.startswith("/"):
                from treadle.headless.host_commands import do_host_command

                text = await do_host_command(self, live, text)
                if not text:
                    continue
                content = (Text(text=text),)
            soon = frame.get("priority") in ("now", "next")
            delivery = Delivery.STEER if soon else Delivery.QUEUE
            prompt = Prompt(id=str(frame.get("uuid") or uuid.uuid4()), content=content, delivery=delivery)
            try:
                await self._prompt(live, prompt)
            except RefusedError as error:
                if live.closed:
                    raise
                # A hook keeps it back: for the host that is a turn without a model.
                self.answer_command(live, error.why or error.what, failed=False)

    async def _prompt(self, live: LiveSession, prompt: Prompt) -> None:
        self._owe(prompt.id)
        try:
            await live.post(prompt, HOST)
        except RefusedError:
            self._settle({prompt.id})
            raise

    def _owe(self, prompt_id: str) -> None:
        self._owed.add(prompt_id)
        self._idle.clear()

    def _settle(self, prompts: set[str]) -> None:
        self._owed -= prompts
        if not self._owed:
            self.state("idle")
            self._idle.set()

    async def until_quiet(self, live: LiveSession) -> None:
        """Wait until what was posted besides a message is done, such as a summary or a restored file."""
        while not live.quiet:
            self._quiet.clear()
            await self._quiet.wait()

    async def until_idle(self) -> None:
        """Wait until the turns of every message are over."""
        await self._idle.wait()

    async def _follow(self, live: LiveSession, feed: AsyncIterator[Notification]) -> None:
        async for notification in feed:
            await self._take(live, notification)
        await live.failure()
        raise SessionError("session-closed", "The session was closed before the task was done.")

    async def _take(self, live: LiveSession, notification: Notification) -> None:
        self._quiet.set()
        match notification:
            case _ if self._skips:
                self._skips = not isinstance(notification, TurnEnded)
                return
            case TurnStarted():
                if not self._tries:
                    self._begin(live)
            case PhaseChanged(phase=phase):
                self._count.phase(phase)
                self._in_tools = phase is Phase.EXECUTING_TOOL or (self._in_tools and phase is Phase.CANCELLING)
            case QuestionAsked() | QuestionClosed():
                await self._questions.take(notification)
            case TurnEnded(outcome=outcome):
                await self._ended(live, outcome)
            case _:
                if isinstance(notification, PromptDelivered):
                    self._delivered.add(notification.prompt_id)
                for frame in self.frames.take(notification):
                    self.channel.send(frame)
        self._questions.put(live)

    def _begin(self, live: LiveSession) -> None:
        """Say that a turn begins, and with what."""
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
        from treadle.headless.host_control import init_fields

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
        await self._questions.withdraw()
        status, structured = live.status, self.hosting.structured
        self._count.add(outcome, status.model, status.window)
        missing = structured is not None and structured.is_missing(outcome)
        if missing and self._tries < MOST_TRIES:
            self._tries += 1
            await self._prompt(live, Prompt(id=uuid.uuid4().hex, content=(Text(text=AGAIN),)))
            return
        self._tries = 0
        fields = result_fields(outcome, no_value=missing, in_tools=self._in_tools)
        if structured is not None and structured.given and outcome.stop is TurnStop.END_TURN:
            fields["structured_output"] = structured.value
        fields["user_message_uuids"] = sorted(self._delivered - {_RESUMED})
        self._code = Exit.FAILED if missing else exit_code(outcome)
        self._denied = self._denied or outcome.denied > 0
        self.result(fields)
        self._settle(self._delivered)
        self._delivered.clear()

    def answer_command(self, live: LiveSession, text: str, *, failed: bool) -> None:
        """Say what came of a command that was done instead of sent."""
        self._count.begin()
        self.frames.begin_turn()
        self.announce(live)
        if text:
            self.channel.send(self.frames.answer(text))
        self.result(command_fields(text, failed=failed))
        self._code = Exit.USAGE if failed else Exit.DONE
        self.state("idle")

    def result(self, fields: Frame) -> None:
        """Send the end of a turn."""
        said = {**self._count.facts(), **fields, "permission_denials": self.frames.denials}
        self.channel.send(self.frames.frame("result", **said))
