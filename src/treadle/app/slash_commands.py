"""The slash commands of the terminal, in one table for every surface, and how a prompt is told from one."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.protocol.patterns import regex
from treadle.protocol.permissions import Mode

SLASH_COMMANDS = (
    ("/steer TEXT", "send TEXT at the next step instead of after the turn (Ctrl-S does the same)"),
    ("/queue", "list the queued prompts"),
    ("/drop N", "drop a queued prompt"),
    ("/edit N", "move a queued prompt to the input line to change it"),
    ("/mode NAME", f"{', '.join(Mode)} (Shift-Tab: the next of plan, ask, edits)"),
    ("/model [NAME]", "choose the model from a list, or by its name, provider/name (Alt-P: the list)"),
    ("/resume [WORDS]", "choose another session from a list and continue it"),
    ("/trust", "show what this folder's files would run or set, and whether you trust it"),
    ("/rules [off N]", "list the rules for the model, with their tokens; `off N` and `on N` turn one off and on"),
    ("/skills", "list the skills"),
    ("/todo", "show the task's checklist, and the file in which you can change it"),
    ("/approvals", "list what you have allowed for this session"),
    ("/revoke N", "remove something that you allowed"),
    ("/help", "show this"),
    ("/quit", "quit; the session is kept and can be resumed"),
)
"""Each as it is written, and what it does."""

LISTED_COMMANDS = ("rules", "skills")
"""Commands whose answer is text, also without a session."""

_INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "models": "To choose a model: /model",
        "continue": "To continue the last session of this folder: treadle --continue",
        "sessions": "To choose another session: /resume",
        "clear": "To start a new session: treadle",
        "new": "To start a new session: treadle",
        "compact": "Older messages are removed automatically when the conversation gets too long.",
        "cost": "To see what sessions cost: treadle sessions",
        "usage": "To see what sessions cost: treadle sessions",
        "login": "To store a provider's key: treadle login PROVIDER",
        "config": "To see and change settings: treadle config",
        "doctor": "To check the installation: treadle doctor",
    }
)
"""Commands that other programs have, and what does it here."""

_WORD = regex(r"/[A-Za-z?][\w-]*")
_SHELL = regex(r"![A-Za-z./~]")


def slash_names() -> tuple[str, ...]:
    """Give the names, without the slash."""
    return tuple(usage[1:].partition(" ")[0] for usage, _ in SLASH_COMMANDS)


def slash_word(text: str) -> str:
    """Give the slash command that a text begins with, without the slash; empty for a path and any other text."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return first[1:] if _WORD.fullmatch(first) else ""


def is_shell_line(text: str) -> bool:
    """Whether a text begins as other programs take a command of the user's own: `!ls`."""
    return _SHELL.match(text.lstrip()) is not None


def nearest_slash(name: str) -> str:
    """Say what is meant by a slash command that there is not, as a sentence; empty when nothing is like it."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), [*slash_names(), *_INSTEAD], n=1)
    if not near:
        return ""
    return _INSTEAD.get(near[0], f"Did you mean /{near[0]}?")
