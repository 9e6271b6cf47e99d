"""What running calls ask the user, and who waits for the answers."""

import asyncio
from itertools import count

from treadle.engine.core.machine_effects import PassAnswer
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
        self._waiting: dict[str, asyncio.Future[PassAnswer | None]] = {}
        self._numbers = count(1)

    async def ask(self, call_id: str, asked: Asked, /) -> PersonReply:
        """Put a question of a running call to the user; who is cancelled meanwhile withdraws it.

        What outlives its call is asked once more when that is over.
        """
        said = await self._ask(call_id, asked, after=False)
        if said is None and asked.outlives:
            said = await self._ask(call_id, asked, after=True)
        if said is None:
            return PersonReply()
        return PersonReply(
            answer=said.whole,
            accepted=said.option in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS),
            declined=said.option is OptionKind.REJECT_ONCE,
            withdrawn=said.option is None and self._session.state.cancelling,
            scope=said.scope if said.option is OptionKind.ALLOW_ALWAYS else None,
            values=said.values,
        )

    async def _ask(self, call_id: str, asked: Asked, *, after: bool) -> PassAnswer | None:
        """Ask; None where the call is over, or not yet."""
        question_id = f"{call_id}-asks-{next(self._numbers)}"
        answer: asyncio.Future[PassAnswer | None] = asyncio.get_running_loop().create_future()
        self._waiting[question_id] = answer
        text = f"{asked.who} asks: {asked.text}" if asked.who else asked.text
        text = self._ports.redactor().redact(text)[:_LONGEST]  # a part of a secret looks like none
        wanted = CallAsked(
            call_id=call_id,
            question_id=question_id,
            text=f"{text} (in the background)" if after else text,
            form=dict(asked.form),
            url=asked.url,
            offers=asked.offers,
            after=after,
            relayed=asked.relayed,
        )
        try:
            await self._session.post(wanted)
            return await answer
        except RefusedError:
            return None
        finally:
            if self._waiting.pop(question_id, None) is not None:
                self._session.post_soon(CallAsked(call_id=call_id, question_id=question_id))

    def answer(self, said: PassAnswer) -> None:
        """Give the answer to who waits for it."""
        waiting = self._waiting.pop(said.question_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(said)

    def end(self, call_id: str) -> None:
        """Let go of who still waits for an answer to a question of a call that is over."""
        for question_id in [one for one in self._waiting if one.startswith(f"{call_id}-asks-")]:
            waiting = self._waiting.pop(question_id)
            if not waiting.done():
                waiting.set_result(None)
