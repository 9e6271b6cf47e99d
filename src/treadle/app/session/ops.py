"""What the ops of surfaces hold: a question beside the work, words that may mention something. And what comes first."""

from collections.abc import Awaitable, Callable, Sequence

from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Answer, EditQueued, EventData, Interrupt, Op, Prompt
from treadle.protocol.messages import text_of, without_own_commands

_BTW = "/btw "


def asked_aside(op: Op) -> str:
    """Give the question of a message that is one beside the work."""
    text = text_of(without_own_commands(op.content)) if isinstance(op, Prompt) else ""
    return text.removeprefix(_BTW).strip() if text.startswith(_BTW) else ""


def own_words(op: Op) -> str:
    """Give the user's own words where they may mention something, or begin with a command."""
    match op:
        case Prompt(content=content) | EditQueued(content=content):
            text = text_of(without_own_commands(content))
        case Answer(text=text):
            pass
        case _:
            return ""
    return text if "@" in text or text.startswith("/") else ""


async def post_first(post: Callable[[EventData], Awaitable[None]], events: Sequence[EventData]) -> None:
    """Post what a session begins with; what is to be interrupted may end by itself as it is taken up."""
    for event in events:
        try:
            await post(event)
        except RefusedError:
            if not isinstance(event, Interrupt):
                raise
