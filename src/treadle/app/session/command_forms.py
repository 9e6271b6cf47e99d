"""The texts of commands of several programs, read and filled as their own programs do it: pure."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from treadle.context.frontmatter import read_header
from treadle.protocol.patterns import regex

_ARGUMENT = regex(r"\$ARGUMENTS(?:\[(\d{1,2})\])?|\$(\d{1,2})(?!\d)")
_INPUT = regex(r"\$\{input:([\w.-]+)(?::[^}]*)?\}")
_ALL_OF_GEMINI = "{{args}}"
_SHELL_OF_GEMINI = regex(r"!\{((?:[^{}`\n]|\{\{args\}\}|\{[^{}`\n]*\})*)\}")
_FILE_OF_GEMINI = regex(r"@\{([^{}\n]+)\}")
_NOT_IN_NAMES = regex(r"[^\w.-]+")


class CommandForm(Struct, frozen=True, kw_only=True):
    """What a command file says: the text that is `filled` with what follows the name, and what it says of itself.

    `counting` says how the words that follow are counted, `problem` why it cannot be used.
    """

    filled: Callable[[str], str] = str
    about: str = ""
    hint: str = ""
    model: str = ""
    counting: str = ""
    problem: str = ""


def command_name(below: PurePosixPath, ending: str) -> str:
    """Name a command by the path of its file in the folder of commands; what cannot be typed becomes a hyphen."""
    parts = [*below.parts[:-1], below.name[: -len(ending)]]
    return ":".join(_NOT_IN_NAMES.sub("-", part).strip("-.") or "unnamed" for part in parts)


def read_command(path: str, text: str) -> CommandForm:
    """Read a command; its path says whose it is."""
    if path.casefold().endswith(".toml"):
        return _of_gemini(text)
    header = read_header(text)
    first = 0 if "/.claude/" in f"/{path}" else 1
    inputs = list(dict.fromkeys(found[1] for found in _INPUT.finditer(header.body)))

    def filled(argument: str) -> str:
        if inputs:
            return _with_inputs(header.body, inputs, argument)
        return fill_arguments(header.body, argument, first=first)

    return CommandForm(
        filled=filled,
        about=header.text("description") or _first_line(header.body),
        hint=header.text("argument-hint") or " ".join(f"[{name.upper()}]" for name in inputs),
        model=header.text("model"),
        counting=f"In its text ${first} is the first word after the name, and $ARGUMENTS all of them.",
    )


def _of_gemini(text: str) -> CommandForm:
    """Read a command of Gemini: TOML with a `prompt`; `{{args}}`, `!{...}` and `@{...}` in it are filled in."""
    import tomllib

    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return CommandForm(problem=f"it is not valid TOML ({error})")
    prompt, about = table.get("prompt"), table.get("description")
    if not isinstance(prompt, str) or not prompt.strip():
        return CommandForm(problem="it has no `prompt`")

    def filled(argument: str) -> str:
        def shell(found: "re.Match[str]") -> str:
            return f"!`{found[1].strip().replace(_ALL_OF_GEMINI, shlex.quote(argument) if argument else '')}`"

        body = _FILE_OF_GEMINI.sub(r"@\1", _SHELL_OF_GEMINI.sub(shell, prompt))
        return body.replace(_ALL_OF_GEMINI, argument)

    return CommandForm(
        filled=filled,
        about=about if isinstance(about, str) and about.strip() else _first_line(prompt),
        counting="In its text {{args}} is what follows the name.",
    )


def _with_inputs(text: str, inputs: Sequence[str], argument: str) -> str:
    """Put what follows the name into a prompt of Copilot: each input a word, the last one the rest; others stay."""
    words = _words(argument)
    given = dict(zip(inputs, words, strict=False))
    if len(words) >= len(inputs):
        given[inputs[-1]] = argument if len(inputs) == 1 else " ".join(words[len(inputs) - 1 :])
    return _INPUT.sub(lambda found: given.get(found[1], found[0]), text)


def fill_arguments(text: str, argument: str, *, first: int) -> str:
    """Put what follows a command's name into its text: `$ARGUMENTS` is all of it, `$N` a word, counted from `first`.

    Words are cut as a shell does it. `$ARGUMENTS[N]` counts from 0. What nothing was given for stays as it is written.
    """
    words = _words(argument)

    def filled(number: int, written: str) -> str:
        return words[number] if 0 <= number < len(words) else written

    def replaced(index: str | None, number: str | None, written: str) -> str:
        if number is not None:
            return filled(int(number) - first, written)
        return argument if index is None else filled(int(index), written)

    return _ARGUMENT.sub(lambda found: replaced(found[1], found[2], found[0]), text)


def _words(argument: str) -> Sequence[str]:
    try:
        return shlex.split(argument)
    except ValueError:  # a quote that is not closed, such as an apostrophe
        return argument.split()


def _first_line(body: str) -> str:
    return next((line.strip("# ").strip() for line in body.splitlines() if line.strip("# ").strip()), "")


OWN_FOLDERS: Mapping[str, str] = {
    ".claude/commands": ".md",
    ".codex/prompts": ".md",
    ".cursor/commands": ".md",
    ".gemini/commands": ".toml",
    ".config/opencode/command": ".md",
    ".config/opencode/commands": ".md",
}
"""Folders of a person's commands, below their home folder, and how the files in them end."""


def program_of(path: str) -> str:
    """Name the program that a command is of, by the path of its file, as it is typed before a name."""
    folder = path.removeprefix(".config/").partition("/")[0].strip(".")
    return {"github": "copilot", "clinerules": "cline", "": "own"}.get(folder, folder)
