"""The task of a command line, in quotes. What can be a mistake is refused before it costs anything."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from treadle.door.commands import SlashCommand
    from treadle.door.trust import SessionTrust
    from treadle.protocol.errors import ConfigError

GROUPS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "work": {
            "demo": "see Treadle work on a sample project, without a key",
            "try": "run a command on a copy of the folder; show or apply what it changed",
            "review": "review what is not committed, or a range of git: findings by file and line",
            "test": "test instructions, skills, hooks and tools: a prompt, recorded replies, what must hold",
            "web": "work in the browser: a page that shows all sessions",
            "serve": "serve several users: a page for each, with a folder, limits and a log of their own",
            "acp": "work for an editor that speaks ACP, such as Zed or a JetBrains IDE",
            "schedule": "begin tasks at certain times, while `treadle web` or `serve` runs; each run is a session",
            "batch": "do many tasks from a file side by side, within a limit in money; it continues after a stop",
            "worker": "do tasks of batches that share a database with other workers",
            "start": "work interactively; without a terminal and a model, run the demo",
            "stop": "stop sessions: those in the background or of a page close, others are interrupted",
            "jobs": "list the commands in the background; show their output, stop them",
        },
        "sessions": {
            "sessions": "list sessions, and search in them",
            "show": "show what happened in a session",
            "checkpoint": "list the checkpoints of a session, show what changed since one, restore it",
            "copies": "list the copies in which subagents worked; show what one changed, apply it, discard it",
            "fork": "copy a session, to go on from one of its turns",
            "rename": "give a session another name",
            "archive": "archive sessions that are not needed for now",
            "delete": "delete a session for good",
            "export": "export a session as Markdown, HTML or JSON, or as a test; or all of them",
            "import": "import sessions, or what another agent has: rules, servers, permissions",
        },
        "look inside": {
            "usage": "show what all sessions used and cost",
            "context": "show the request to the model, block by block",
            "prompt": "show the system prompt, part by part",
            "tools": "list the tools; show what a model reads about one",
            "audit": "verify the logs, or show what was approved and run",
            "doctor": "check the installation and the configured providers",
            "explain": "explain an error code",
            "help": "show this; `help --all` shows rare commands too, `help COMMAND` shows one",
        },
        "set up": {
            "login": "store a provider's key after trying it",
            "logout": "remove a provider's stored key",
            "models": "list models with their window, abilities and prices",
            "providers": "list the providers, and which are configured",
            "config": "show each setting and where it comes from; set one",
            "trust": "trust a folder, or stop trusting it; list the trusted folders",
            "policy": "show what would be allowed and why; show and suggest rules",
            "mcp": "add, list, test and approve MCP servers; serve tasks to MCP clients",
            "memory": "list what is remembered; add to it, edit it, forget something",
            "hooks": "list the hooks: programs of yours that run at moments of a session",
            "update": "print the command that brings this copy up to date, or adds an extra to it",
            "completion": "print a completion script for your shell",
        },
        "rarely": {
            "replay": "play a session again without a model; check that its log can be rebuilt",
            "edits": "show how well models edit; apply an edit without a model",
            "parse": "parse model replies without a model",
            "docs": "print the generated pages: errors, schema",
            "scripted": "serve a scripted model over HTTP",
        },
    }
)
"""The commands besides the main one by what they are for, in the order in which help shows them."""

SELDOM = "rarely"
"""The group that only `treadle help --all` shows."""

COMMANDS: Mapping[str, str] = MappingProxyType(
    {name: about for rows in GROUPS.values() for name, about in rows.items()}
)
"""What each does; each is the module `NAME_command` of `treadle.cli`."""

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

_MEANT_EXACTLY: Mapping[str, str] = MappingProxyType(
    {
        "ask": "-p TASK",
        "chat": "start",
        "diff": "checkpoint diff N",
        "init": "-p /init",
        "permissions": "policy show",
        "undo": "checkpoint list",
        "upgrade": "update",
    }
)
"""The same; these words are so usual that one which is only like them is not taken for a mistake."""

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
    near = _MEANT_EXACTLY.get(word.lower()) or _nearest(word, commands)
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
    from treadle.door.commands import Surfaces, find_slash, is_shell_line, slash_word

    name = slash_word(text)
    if not name:
        if is_shell_line(text):
            raise _refused("A task cannot be a command of a shell.", f"Say what to do in words. {_AS_TEXT}")
        return None
    from treadle.door.commands import WRITTEN_HERE

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
    from treadle.door.commands import named_texts, nearest_slash

    named = {one.name: one for one in named_texts(trust)}
    if name not in named:
        raise _refused(f"There is no command /{name}.", nearest_slash(name, named) or _AS_TEXT)
    if named[name].unused:
        why = f"/{name} is not used: {named[name].unused}."
        raise _refused(why, "Look at it, and trust the folder: `treadle trust`, or --trust for one run.")


def _refused(what: str, fix: str) -> "ConfigError":
    return _mistake("task-sign", what, fix, "Nothing was sent to a model.")
