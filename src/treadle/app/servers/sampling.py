"""An answer of the model for a server, which the person agreed to: logged, priced and within the budgets."""

import os
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from treadle.context.log_reader import TranscriptReader
from treadle.engine.core.state import State
from treadle.engine.ports import Ports
from treadle.engine.runtime.whole_reply import AsideLog, whole_reply
from treadle.mcp.callbacks import SampleAsked
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ModelRequest
from treadle.protocol.sealed import SideAnswered, SideAsked

_MOST_TOKENS = 4_096

AskAside: TypeAlias = Callable[
    [Callable[[Ports, State, TranscriptReader, AsideLog], Awaitable[SideAnswered]]], Awaitable[SideAnswered]
]
"""Has a question answered beside the conversation, which does not learn of it; the log does."""


async def sample_for(aside: AskAside, asked: SampleAsked) -> tuple[str, str] | None:
    """Ask the session's model, without the conversation; gives its name and its answer, None where there is none."""
    models: list[str] = []

    async def ask(ports: Ports, state: State, reader: TranscriptReader, log: AsideLog) -> SideAnswered:
        models.append(state.choice.model)
        text = asked.texts[-1][1] if asked.texts else asked.system
        logged = SideAsked(question=f"[{asked.who}] {text}")
        reply = await whole_reply(
            ports,
            state,
            reader,
            _request(asked, ports, state),
            asked=logged,
            log=log,
            alone=True,
        )
        return reply.answer_to(logged)

    answered = await aside(ask)
    return (models[0], answered.text) if answered.text else None


def _request(asked: SampleAsked, ports: Ports, state: State) -> ModelRequest:
    messages = [
        Message(role=Role.ASSISTANT if role == "assistant" else Role.USER, content=(Text(text=text),))
        for role, text in asked.texts
    ]
    return ModelRequest(
        id=f"{state.session_id}-server-{os.urandom(4).hex()}",
        model=ports.model(state.choice.model).name,
        system=asked.system,
        messages=tuple(messages),
        max_tokens=min(asked.most, _MOST_TOKENS),
    )
