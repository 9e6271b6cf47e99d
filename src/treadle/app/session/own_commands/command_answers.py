"""What a slash command gives: a text, ops to post, a message to send, or something for the surface to do."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from treadle.app.session.shared.access import SessionAccess
from treadle.protocol.events import Op

if TYPE_CHECKING:
    from treadle.app.config.sections import Colours
    from treadle.present.context_use import ContextUse


class TextToEdit(Struct, frozen=True, kw_only=True):
    """A text for the person's editor; `save` takes what became of it and says what came of that."""

    text: str
    suffix: str
    save: Callable[[str], str]


class CommandAnswer(Struct, frozen=True, kw_only=True):
    """What a command gives. `send` is a message to send; `warning`: the text says what is wrong with the command.

    `draft` is the message that its ops take back, for whoever wants to send it again in other words. `context` is what
    a surface may show of the text as a picture above it. `copies` is a text for the clipboard of the person, which
    `text` then names. `diff` is a unified diff with which the text ends. `edit` stands in the place of the text where
    the person's editor can be opened. `colours` are those in which the terminal draws from now on, `opens` is the
    session that continues in this one's place. `later` goes on beside the work, and
    gives another answer; until then the text says so.
    """

    text: str = ""
    ops: tuple[Op, ...] = ()
    send: str = ""
    draft: str = ""
    copies: str = ""
    diff: str = ""
    warning: bool = False
    context: "ContextUse | None" = None
    edit: TextToEdit | None = None
    colours: "Colours | None" = None
    opens: str = ""
    later: "Callable[[], Awaitable[CommandAnswer]] | None" = None


Handler: TypeAlias = Callable[[SessionAccess, str], CommandAnswer]
"""Does a command, given the session and what follows the name. May raise `ConfigError`."""


def while_working(command: str) -> CommandAnswer:
    """Say that a command has to wait until the model does not work."""
    return wrong(f"The model is working. Interrupt it first, then {command}.")


def wrong(text: str) -> CommandAnswer:
    """Say what is wrong with a command."""
    return CommandAnswer(text=text, warning=True)
