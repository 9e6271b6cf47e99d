"""What a line means that the user enters: a prompt, or a command that begins with a slash."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from msgspec import Struct

from treadle.app.slash_commands import SLASH_COMMANDS, nearest_slash, slash_word
from treadle.protocol.events import Delivery
from treadle.protocol.permissions import Mode

HELP = SLASH_COMMANDS

_NUMBERED = {
    "drop": ("a prompt that waits", "/queue"),
    "edit": ("a prompt that waits", "/queue"),
    "revoke": ("something that is allowed", "/approvals"),
}


MODE_TEXTS = {
    Mode.PLAN: "nothing is changed",
    Mode.ASK: "everything that changes something is asked about",
    Mode.EDITS: "file edits run without asking",
    Mode.AUTO: "commands run without asking where there is a sandbox",
    Mode.FULL: "everything but what is dangerous runs without asking",
}
"""What each mode means."""


class SendPrompt(Struct, frozen=True):
    """Send a prompt."""

    text: str
    delivery: Delivery


class ListQueue(Struct, frozen=True):
    """Show what waits."""


class DropPrompt(Struct, frozen=True):
    """Drop the prompt that waits at `position`, from 1."""

    position: int


class EditPrompt(Struct, frozen=True):
    """Change the prompt that waits at `position`, from 1."""

    position: int


class UseMode(Struct, frozen=True):
    """Change the mode."""

    mode: Mode


class ChooseModel(Struct, frozen=True):
    """Choose a model from a list."""


class ChooseSession(Struct, frozen=True):
    """Choose another session from a list, of those that `text` fits."""

    text: str = ""


class UseModel(Struct, frozen=True):
    """Change the model."""

    name: str


class ShowTrust(Struct, frozen=True):
    """Show whether the folder is trusted, and what of it would act."""


class ShowChecklist(Struct, frozen=True):
    """Show the task's checklist."""


class ListApprovals(Struct, frozen=True):
    """Show what is allowed for this session."""


class Revoke(Struct, frozen=True):
    """Take back what is allowed, by its `position` in the list, from 1."""

    position: int


class ShowHelp(Struct, frozen=True):
    """Show the help."""


class Quit(Struct, frozen=True):
    """Leave."""


class Wrong(Struct, frozen=True):
    """It means nothing; `text` says why and what would."""

    text: str


InputCommand: TypeAlias = (
    SendPrompt
    | ListQueue
    | DropPrompt
    | EditPrompt
    | UseMode
    | UseModel
    | ChooseModel
    | ChooseSession
    | ShowTrust
    | ShowChecklist
    | ListApprovals
    | Revoke
    | ShowHelp
    | Quit
    | Wrong
)

_PLAIN: Mapping[str, InputCommand] = MappingProxyType(
    {
        "queue": ListQueue(),
        "trust": ShowTrust(),
        "todo": ShowChecklist(),
        "approvals": ListApprovals(),
        "help": ShowHelp(),
        "?": ShowHelp(),
        "quit": Quit(),
        "exit": Quit(),
    }
)


def parse_input(line: str, *, steer: bool = False) -> InputCommand:
    """Say what a line means. Only a slash at the very beginning, with a word after it, makes a command."""
    if not (line.startswith("/") and (slash_word(line) or line.strip() == "/")):
        # As it was written: blanks at the beginning indent what was pasted, and a line feed at the end loses nothing.
        return SendPrompt(line, Delivery.STEER if steer else Delivery.QUEUE)
    name, _, rest = line[1:].partition(" ")
    argument = rest.strip()
    match name.strip():
        case "steer":
            return SendPrompt(argument, Delivery.STEER) if argument else Wrong("/steer needs a text: /steer TEXT")
        case "drop" | "edit" | "revoke" as numbered:
            return _numbered(numbered, argument)
        case "mode":
            return _mode(argument)
        case "model":
            return UseModel(argument) if argument else ChooseModel()
        case "resume":
            return ChooseSession(argument)
        case plain if plain in _PLAIN:
            return _PLAIN[plain]
        case other:
            near = nearest_slash(other)
            return Wrong(f"There is no /{other}. {near or '/help lists the commands.'}")


def _numbered(name: str, argument: str) -> InputCommand:
    what, lister = _NUMBERED[name]
    if not argument.isdecimal() or int(argument) < 1:
        return Wrong(f"/{name} needs the number of {what}: /{name} N ({lister} lists them).")
    position = int(argument)
    match name:
        case "drop":
            return DropPrompt(position)
        case "edit":
            return EditPrompt(position)
        case _:
            return Revoke(position)


def _mode(argument: str) -> InputCommand:
    if argument in list(Mode):
        return UseMode(Mode(argument))
    return Wrong(f"/mode needs one of {', '.join(Mode)}.")


def next_mode(mode: Mode) -> Mode:
    """Give the mode that Shift-Tab goes to; the wide modes are only reached by name."""
    cycle = (Mode.PLAN, Mode.ASK, Mode.EDITS)
    return cycle[(cycle.index(mode) + 1) % len(cycle)] if mode in cycle else Mode.ASK


def as_table(rows: tuple[tuple[str, str], ...]) -> str:
    """Write names and their explanations in two columns."""
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)
