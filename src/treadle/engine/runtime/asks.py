"""What running calls ask the user, and who waits for the answers."""

import asyncio
from itertools import count

from treadle.engine.core.effects import PassAnswer
from treadle.engine.ports import Asked, PersonReply, Ports
from treadle.engine.runtime.assembling import SessionPort
from treadle.protocol.errors import RefusedError
from treadle.protocol.permissions import CallAsked, OptionKind

_LONGEST = 4_000
"""Characters of a question."""


class CallAsks:
    """The open questions of the running calls of one session."""

    def __init__(self, ports: Ports, session: SessionPort) -> None:
        self._ports = ports
        self._session = session
        self._waiting: dict[str, asyncio.Future[PassAnswer]] = {}
        self._numbers = count(1)

    async def ask(self, call_id: str, asked: Asked, /) -> PersonReply:
        """Put a question of a running call to the user; who is cancelled meanwhile withdraws it."""
        question_id = f"{call_id}-asks-{next(self._numbers)}"
        answer = self._waiting[question_id] = asyncio.get_running_loop().create_future()
        text = f"{asked.who} asks: {asked.text}" if asked.who else asked.text
        wanted = CallAsked(
            call_id=call_id,
            question_id=question_id,
            text=self._ports.redactor().redact(text[:_LONGEST]),
            form=dict(asked.form),
            url=asked.url,
        )
        try:
            await self._session.post(wanted)
            said = await answer
        except RefusedError:
            return PersonReply()  # the call is over
        finally:
            if self._waiting.pop(question_id, None) is not None:
                self._session.post_soon(CallAsked(call_id=call_id, question_id=question_id))
        return PersonReply(
            accepted=said.option is OptionKind.ALLOW_ONCE,
            declined=said.option is OptionKind.REJECT_ONCE,
            values=said.values,
        )

    def answer(self, said: PassAnswer) -> None:
        """Give the answer to who waits for it."""
        waiting = self._waiting.pop(said.question_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(said)

    def end(self, call_id: str) -> None:
        """Let go of who still waits for an answer to a question of a call that is over."""
        for question_id in [one for one in self._waiting if one.startswith(f"{call_id}-asks-")]:
            self.answer(PassAnswer(question_id=question_id))
