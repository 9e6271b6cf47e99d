"""What the ops of surfaces hold: a question beside the work, and words that may mention something."""

from treadle.protocol.events import Answer, EditQueued, Op, Prompt
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
