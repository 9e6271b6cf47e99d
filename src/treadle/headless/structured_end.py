"""The end of a task whose answer has to have a form: the model is asked again where it has not given it."""

import uuid
from collections.abc import Awaitable, Callable

from treadle.door.hosts import AGAIN, MOST_TRIES, StructuredAnswer
from treadle.door.open_session import LiveSession
from treadle.protocol.events import Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import TurnOutcome


async def until_answered(
    live: LiveSession,
    outcome: TurnOutcome,
    structured: StructuredAnswer,
    *,
    next_end: Callable[[], Awaitable[TurnOutcome]],
    source: Source,
) -> TurnOutcome:
    """Ask for the answer until it is there, a few times; gives the end of the last turn."""
    for _ in range(MOST_TRIES):
        if not structured.is_missing(outcome):
            break
        await live.wake(Prompt(id=uuid.uuid4().hex, content=(Text(text=AGAIN),)), source)
        outcome = await next_end()
    return outcome
