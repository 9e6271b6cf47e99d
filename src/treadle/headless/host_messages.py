"""The messages of a host: they reach its session one after the other, and each is answered by one result."""

import asyncio
import uuid
from typing import TYPE_CHECKING

from treadle.door.open_session import LiveSession
from treadle.door.program import Exit
from treadle.headless.channel import Frame
from treadle.headless.continuing import NOTHING_LEFT, words_to_continue
from treadle.headless.host_prompts import content_of
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Delivery, Prompt
from treadle.protocol.messages import Text, UserContent

if TYPE_CHECKING:
    from treadle.headless.hosting import HostedSession

_RESUMED = "the turn that was cut off"


class HostMessages:
    """Those that wait, and those that the session owes a result for."""

    def __init__(self, host: "HostedSession") -> None:
        self._host = host
        self._waiting: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._owed: set[str] = set()
        self._delivered: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._posting = self._interrupted = False

    @property
    def owes(self) -> bool:
        """Whether the host waits for a result."""
        return self._posting or bool(self._owed)

    def put(self, frame: Frame | None) -> None:
        """Take a message; None says that there are no more."""
        self._waiting.put_nowait(frame)

    async def send_all(self) -> None:
        """Bring them to the session until there are no more. Raises `TreadleError`."""
        while (frame := await self._waiting.get()) is not None:
            self._posting, self._interrupted = True, False
            live = await self._host.session()
            await self._send(live, frame, str(frame.get("uuid") or uuid.uuid4()))
            self._posting = False
            if self._interrupted:
                await self._host.interrupt(live)

    def interrupt(self) -> None:
        """Stop the message that is on its way to the session, too: a hook or a question may hold it up."""
        self._interrupted = self._posting

    async def _send(self, live: LiveSession, frame: Frame, message_id: str) -> None:
        host = self._host
        if message_id in self._owed:
            host.warn(f"A message is skipped: one with its uuid, {message_id}, is being worked on.")
            return
        content = await self._content(live, frame)
        if not content:
            return
        first = next((block for block in content if isinstance(block, Text)), None)
        if first is not None and first.text.startswith("/"):
            from treadle.headless.host_commands import do_host_command

            text = await do_host_command(host, live, first.text, frame, more=len(content) > 1)
            if not text:
                return
            content = tuple(Text(text=text) if block is first else block for block in content)
        soon = frame.get("priority") in ("now", "next")
        try:
            await self._post(live, message_id, content, Delivery.STEER if soon else Delivery.QUEUE)
        except RefusedError as error:
            if live.closed:
                raise
            # A hook keeps it back: for a host that is a turn without a model, for a script that nothing was done.
            await self.until_idle()
            if host.hosting.task is None:
                host.answer_alone(live, error.why or error.what, frame)
            else:
                host.answer_alone(live, str(error), frame, Exit.FAILED)

    async def _content(self, live: LiveSession, frame: Frame) -> tuple[UserContent, ...]:
        """Read a message; without a task a script continues the session where it was stopped."""
        host = self._host
        content = content_of(frame, host.warn)
        if content or (self._owed and host.hosting.task is not None):  # there is something to finish
            return content
        if host.hosting.task is None or not live.resumed:
            await self._answer(live, "There is nothing to do: the message has no text, image or document.", frame)
            return ()
        content = words_to_continue(live)
        if not content:
            await self.until_idle()
            host.answer_alone(live, NOTHING_LEFT, frame)
        return content

    async def _answer(self, live: LiveSession, text: str, frame: Frame) -> None:
        await self.until_idle()
        self._host.answer_alone(live, text, frame, Exit.USAGE)

    async def _post(
        self, live: LiveSession, message_id: str, content: tuple[UserContent, ...], delivery: Delivery
    ) -> None:
        self._owe(message_id)
        try:
            await live.post(Prompt(id=message_id, content=content, delivery=delivery), self._host.source)
        except RefusedError:
            self._settle({message_id})
            raise

    def owe_resumed(self) -> None:
        """Owe a result for a turn that was cut off, which goes on now."""
        self._owe(_RESUMED)
        self._delivered.add(_RESUMED)

    def delivered(self, prompt_id: str) -> None:
        """Take note that the model reads a message in this turn."""
        self._delivered.add(prompt_id)

    def in_turn(self) -> list[str]:
        """Name the host's messages that the model has read in this turn."""
        return sorted((self._delivered & self._owed) - {_RESUMED})

    def settle_turn(self) -> None:
        """Owe nothing any more for what was in the turn, whose result is sent."""
        self._settle(self._delivered)
        self._delivered.clear()

    def _owe(self, message_id: str) -> None:
        self._owed.add(message_id)
        self._idle.clear()

    def _settle(self, messages: set[str]) -> None:
        self._owed -= messages
        if not self._owed:
            self._host.state("idle")
            self._idle.set()

    async def until_idle(self) -> None:
        """Wait until the turns of every message are over."""
        await self._idle.wait()
