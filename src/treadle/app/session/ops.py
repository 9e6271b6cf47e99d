"""What the ops of surfaces hold: a question beside the work, words that may mention something. And what comes first."""

from collections.abc import Awaitable, Callable, Sequence

from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Answer, EditQueued, EventData, Interrupt, Op, Prompt
from treadle.protocol.messages import text_of, without_own_commands

_ASIDE = "/btw "

NOT_SENT = "Nothing that came along with the command was sent."
"""What is said of files and images that came with a command that sends nothing, or only words."""


def asked_beside(text: str) -> str:
    """Give the question that a text asks beside the work: it is no message. Empty for any other text."""
    return text.removeprefix(_ASIDE).strip() if text.startswith(_ASIDE) else ""


def asked_aside(op: Op) -> str:
    """Give the question of a message that is one beside the work."""
    return asked_beside(text_of(without_own_commands(op.content))) if isinstance(op, Prompt) else ""


def has_more_than_words(op: Op) -> bool:
    """Whether anything but a text is in a message."""
    return isinstance(op, Prompt) and (bool(op.enclosed) or len(op.content) > 1)


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
