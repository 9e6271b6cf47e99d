"""The task of a command line, in quotes. What can be a mistake is refused before it costs anything."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from treadle.app.security.trusting import SessionTrust
    from treadle.app.slash_commands import SlashCommand
    from treadle.protocol.errors import ConfigError

_MEANT: Mapping[str, str] = MappingProxyType(
    {
        "resume": "--resume ID",
        "continue": "--continue",
        "version": "--version",
        "run": "-p TASK",
        "exec": "-p TASK",
        "print": "-p TASK",
        "background": "--bg TASK",
        "attach": "--attach ID",
        "kill": "stop ID",
        "list": "sessions",
        "ps": "sessions",
        "ls": "sessions",
        "history": "sessions",
        "cost": "usage",
        "auth": "login",
        "verify": "audit verify",
        "check": "doctor",
        "status": "doctor",
        "settings": "config",
    }
)
"""Words that other programs know, and what does it here."""

_WITHOUT_BLANKS = 0x0E00
"""From this character on (Thai) there are scripts that put no blanks between words: one word may be a whole task."""


_SENTENCE_ENDS = frozenset(".!?")
"""No command ends so: `Go on!` may be one word in another language."""

_AS_TEXT = "To send it as text, put another word before it."

_NOT_SENT = "Words without quotes may be a mistyped command, so nothing was sent to a model."


def task_of(words: Sequence[str], commands: Collection[str]) -> str:
    """Give the task of a session; raises `ConfigError`, which nothing was sent for, when it can be a mistyped command.

    A task is one argument, in quotes. So no command that is mistyped, or given behind its flags, is sent to a model.
    """
    if not words or (len(words) == 1 and _is_task(words[0], commands)):
        return words[0] if words else ""
    first = words[0]
    if first in commands:
        fix = f"Write: treadle {first}"
        raise _mistake("command-unknown", f"The command {first!r} must come first.", fix)
    if len(words) == 1 or _nearest(first, commands):
        raise unknown_command(first, commands, why=_NOT_SENT)
    from shlex import quote

    fix = f"Write: treadle {quote(' '.join(words))}"
    raise _mistake("task-unquoted", "A task is one argument: put it in quotes.", fix)


def _mistake(code: str, what: str, fix: str, why: str = _NOT_SENT) -> "ConfigError":
    from treadle.protocol.errors import ConfigError

    return ConfigError(code, what, why=why, fix=fix)


def _is_task(word: str, commands: Collection[str]) -> bool:
    if not word or any(char.isspace() or ord(char) >= _WITHOUT_BLANKS for char in word.strip()):
        return True
    return word[-1] in _SENTENCE_ENDS and word[0].isalpha() and not _nearest(word[:-1], commands, alike=0.8)


def unknown_command(word: str, commands: Collection[str], *, why: str = "") -> "ConfigError":
    """Say that there is no such command, and which is the nearest."""
    near = _nearest(word, commands)
    fix = f"Did you mean: treadle {near}" if near else "`treadle --help` lists the commands."
    return _mistake("command-unknown", f"There is no command {word!r}.", fix, why)


def _nearest(word: str, commands: Collection[str], *, alike: float = 0.65) -> str:
    """Give the command that a word is most like, empty when it is like none."""
    from difflib import get_close_matches

    word = word.lower().rstrip("".join(_SENTENCE_ENDS))
    near = get_close_matches(word, [*commands, *_MEANT], n=1, cutoff=alike)
    return _MEANT.get(near[0], near[0]) if near else ""


def slash_task(text: str, trust: "SessionTrust", *, headless: bool) -> "tuple[SlashCommand, str] | None":
    """Say which command of the table a task is, with what follows it; None for a text that goes to the model.

    Raises `ConfigError` for a task that begins with what is neither: a mistyped command, one that does not work here,
    `!command`.
    """
    if not text.lstrip().startswith(("/", "!")):
        return None
    from treadle.app.slash_commands import Surfaces, find_slash, is_shell_line, slash_word

    name = slash_word(text)
    if not name:
        if is_shell_line(text):
            raise _refused("A task cannot be a command of a shell.", f"Say what to do in words. {_AS_TEXT}")
        return None
    from treadle.app.session.command_files import WRITTEN_HERE

    row = find_slash(name)
    if row is None:
        _require_text(name, trust)
        return None
    if name in WRITTEN_HERE:
        return None
    if not headless or Surfaces.HEADLESS not in row.where:
        fix = row.instead or "Start `treadle` and enter it there."
        raise _refused(f"/{row.name} is a command of the terminal.", fix)
    return row, text[1 + len(name) :].strip()


def _require_text(name: str, trust: "SessionTrust") -> None:
    """Raise `ConfigError` unless there is a text of this name that may be used."""
    from treadle.app.slash import named_texts
    from treadle.app.slash_commands import nearest_slash

    named = {one.name: one for one in named_texts(trust)}
    if name not in named:
        raise _refused(f"There is no command /{name}.", nearest_slash(name, named) or _AS_TEXT)
    if named[name].unused:
        why = f"/{name} is not used: {named[name].unused}."
        raise _refused(why, "Look at it, and trust the folder: `treadle trust`, or --trust for one run.")


def _refused(what: str, fix: str) -> "ConfigError":
    return _mistake("task-sign", what, fix, "Nothing was sent to a model.")
