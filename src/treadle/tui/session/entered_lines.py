"""What a line means that the user enters: a prompt, or a command that begins with a slash."""

from collections.abc import Callable, Collection
from typing import TypeAlias

from msgspec import Struct

from treadle.door.commands import find_slash, nearest_slash, slash_word
from treadle.present.mode_words import MODES_ABOUT
from treadle.protocol.events import Delivery
from treadle.protocol.permissions import Mode

_NO_KEY_HERE = (
    "/login takes the name of a provider only: /login PROVIDER. You type the key after that, and it is not shown."
)


def mode_words(mode: Mode) -> str:
    """Say that another mode applies, and what it means."""
    return f"Mode is now {mode}: {MODES_ABOUT[mode].partition(';')[0]}."


class SendPrompt(Struct, frozen=True):
    """Send a prompt."""

    text: str
    delivery: Delivery


class DoCommand(Struct, frozen=True):
    """Do a command of the table that works on every surface; `then_model`: once it went back, choose another model."""

    name: str
    argument: str = ""
    then_model: bool = False


class DropPrompt(Struct, frozen=True):
    """Drop the prompt that waits at `position`, from 1."""

    position: int


class EditPrompt(Struct, frozen=True):
    """Change the prompt that waits at `position`, from 1."""

    position: int


class ChooseModel(Struct, frozen=True):
    """Choose a model from a list."""


class ChooseSession(Struct, frozen=True):
    """Choose another session from a list, of those that `text` fits."""

    text: str = ""


class ChooseTurn(Struct, frozen=True):
    """Choose the turn that a command goes back to."""

    command: str


class AddKey(Struct, frozen=True):
    """Store the key of a provider; `provider` is empty where it is not said."""

    provider: str = ""


class StartSession(Struct, frozen=True):
    """Start a new session in the place of this one."""


class ShowHelp(Struct, frozen=True):
    """Show the help, with the keys."""


class Quit(Struct, frozen=True):
    """Leave."""


class Wrong(Struct, frozen=True):
    """It means nothing; `text` says why and what would. With `kept` the line stays in the input line."""

    text: str
    kept: bool = False


InputCommand: TypeAlias = (
    SendPrompt
    | DoCommand
    | DropPrompt
    | EditPrompt
    | ChooseModel
    | ChooseSession
    | ChooseTurn
    | AddKey
    | StartSession
    | ShowHelp
    | Quit
    | Wrong
)


_LEAVING = ("exit", "quit", ":q")
"""Words that mean to quit where they stand alone, as in a shell."""


def _no_names() -> Collection[str]:
    return ()


def parse_input(line: str, *, steer: bool = False, named: Callable[[], Collection[str]] = _no_names) -> InputCommand:
    """Say what a line means. Only a slash at the very beginning, with a word after it, makes a command.

    `named` gives the names of texts that are sent when their name is entered.
    """
    sent = SendPrompt(line, Delivery.STEER if steer else Delivery.QUEUE)
    if line.strip() in _LEAVING:
        return Quit()
    if not (line.startswith("/") and (slash_word(line) or line.strip() == "/")):
        # As it was written: blanks at the beginning indent what was pasted, and a line feed at the end loses nothing.
        return sent
    name = slash_word(line)
    row, argument = find_slash(name), line[1 + len(name) :].strip()
    if row is None:
        names = named()
        if name in names:
            return sent
        return Wrong(f"There is no /{name}. {nearest_slash(name, names) or '/help lists the commands.'}")
    refusal = row.refusal(argument)
    return Wrong(refusal, kept=True) if refusal else _command(row.name, argument)


def _command(name: str, argument: str) -> InputCommand:
    match name:
        case "steer":
            return SendPrompt(argument, Delivery.STEER) if argument else Wrong("/steer needs a text: /steer TEXT")
        case "drop" | "edit":
            return _numbered(name, argument)
        case "model" if not argument:
            return ChooseModel()
        case "resume":
            return ChooseSession(argument)
        case "rewind" | "fork" if not argument:
            return ChooseTurn(name)
        case "login":
            return AddKey(argument) if len(argument.split()) < 2 else Wrong(_NO_KEY_HERE)
        case "new" | "clear":
            return StartSession()
        case "help" if not argument:
            return ShowHelp()
        case "quit":
            return Quit()
        case _:
            return DoCommand(name, argument)


def _numbered(name: str, argument: str) -> InputCommand:
    if not argument.isdecimal() or int(argument) < 1:
        return Wrong(f"/{name} needs the number of a prompt that waits: /{name} N (/queue lists them).")
    return DropPrompt(int(argument)) if name == "drop" else EditPrompt(int(argument))


def recorded_line(line: str) -> str:
    """Give what of a line is shown and kept: a key that somebody writes behind `/login` is neither."""
    return "/login" if slash_word(line).lower() == "login" else line


def next_mode(mode: Mode) -> Mode:
    """Give the mode that Shift-Tab goes to; the wide modes are only reached by name."""
    cycle = (Mode.PLAN, Mode.ASK, Mode.EDITS)
    return cycle[(cycle.index(mode) + 1) % len(cycle)] if mode in cycle else Mode.ASK
