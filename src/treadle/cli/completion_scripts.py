"""Completion scripts for shells, written from the parsers themselves."""

import argparse
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from treadle.cli.parser import CommandParser
from treadle.protocol.base import Record


class Option(Record, frozen=True, kw_only=True):
    """One flag or word: its spellings, its help, whether it takes a value, and what values it takes."""

    names: tuple[str, ...]
    help: str
    takes_value: bool = False
    values: tuple[str, ...] = ()
    is_path: bool = False


class CommandWords(Record, frozen=True, kw_only=True):
    """What can stand after a command: its flags, and the words for its operands (with what they mean)."""

    options: tuple[Option, ...]
    operands: Mapping[str, str]


def completion_script(shell: str, commands: Mapping[str, str], parsers: Mapping[str, CommandParser]) -> str:
    """Write the script of a shell; `parsers` has the main command under the empty name."""
    table = {name: _words(parser) for name, parser in parsers.items()}
    main = table[""]
    table[""] = CommandWords(options=main.options, operands={**main.operands, **commands})
    match shell:
        case "bash":
            return "\n".join(_bash(table)) + "\n"
        case "zsh":
            return "\n".join(_zsh(table)) + "\n"
        case "fish":
            return "\n".join(_fish(table)) + "\n"
        case _:
            raise AssertionError(f"no script for {shell}")


def _words(parser: CommandParser) -> CommandWords:
    options, operands = [], {}
    for action in parser.actions:
        if action.option_strings:
            options.append(_option(action))
        elif isinstance(action.choices, Mapping):
            operands.update(dict.fromkeys(action.choices, ""))
            for inner in action.choices.values():
                options += [_option(one) for one in inner.actions if one.option_strings]
        elif action.choices is not None:
            operands.update(dict.fromkeys(map(str, action.choices), action.help or ""))
    unique = {option.names: option for option in options}
    return CommandWords(options=tuple(unique.values()), operands=operands)


def _option(action: argparse.Action) -> Option:
    return Option(
        names=tuple(action.option_strings),
        help=(action.help or "").replace("%%", "%"),
        takes_value=action.nargs != 0,
        values=tuple(map(str, action.choices or ())),
        is_path=action.type is Path,
    )


def _bash(table: Mapping[str, CommandWords]) -> Iterator[str]:
    yield "# Completion of treadle for bash, written by `treadle completion bash`."
    yield "_treadle() {"
    yield '  local word="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command="" words=""'
    yield '  [ "$COMP_CWORD" -gt 1 ] && command="${COMP_WORDS[1]}"'
    yield f'  case "$command" in {_pattern(table)}) ;; *) command="" ;; esac'
    yield '  case "$command $previous" in'
    for name, words in table.items():
        for option in words.options:
            if option.takes_value:
                patterns = "|".join(shlex.quote(f"{name} {spelling}") for spelling in option.names)
                yield f"    {patterns}) COMPREPLY=({_bash_values(option)}); return ;;"
    yield "  esac"
    yield from _cases(table)
    yield '  COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o default -F _treadle treadle"


def _pattern(table: Mapping[str, CommandWords]) -> str:
    return "|".join(shlex.quote(name) for name in table if name)


def _bash_values(option: Option) -> str:
    if option.is_path:
        return '$(compgen -f -- "$word")'
    return f'$(compgen -W {shlex.quote(" ".join(option.values))} -- "$word")' if option.values else ""


def _cases(table: Mapping[str, CommandWords]) -> Iterator[str]:
    """Set `words` to what may follow `command`; bash and zsh read this alike."""
    yield '  case "$command" in'
    for name, words in table.items():
        spellings = [spelling for option in words.options for spelling in option.names]
        yield f"    {shlex.quote(name)}) words={shlex.quote(' '.join([*words.operands, *spellings]))} ;;"
    yield "  esac"


def _zsh(table: Mapping[str, CommandWords]) -> Iterator[str]:
    yield "#compdef treadle"
    yield "# Completion of treadle for zsh, written by `treadle completion zsh`."
    yield "_treadle() {"
    yield '  local command="" words_before="${words[CURRENT-1]}" chosen=""'
    yield '  (( CURRENT > 2 )) && command="${words[2]}"'
    yield f'  case "$command" in {_pattern(table)}) ;; *) command="" ;; esac'
    yield '  case "$command $words_before" in'
    for name, words in table.items():
        for option in words.options:
            if option.takes_value:
                patterns = "|".join(shlex.quote(f"{name} {spelling}") for spelling in option.names)
                values = f"compadd -- {' '.join(map(shlex.quote, option.values))}" if option.values else "_files"
                yield f"    {patterns}) {values}; return ;;"
    yield "  esac"
    yield from (line.replace(") words=", ") chosen=") for line in _cases(table))
    yield "  compadd -- ${=chosen}"
    yield "  _files"
    yield "}"
    yield 'if [[ "${funcstack[1]}" == _treadle ]]; then _treadle "$@"; else compdef _treadle treadle; fi'


def _fish(table: Mapping[str, CommandWords]) -> Iterator[str]:
    yield "# Completion of treadle for fish, written by `treadle completion fish`."
    commands = " ".join(name for name in table if name)
    for name, words in table.items():
        seen = f"__fish_seen_subcommand_from {name}" if name else f"not __fish_seen_subcommand_from {commands}"
        start = f"complete -c treadle -n {shlex.quote(seen)}"
        for operand, text in words.operands.items():
            yield f"{start} -f -a {shlex.quote(operand)} -d {shlex.quote(text)}"
        for option in words.options:
            yield f"{start} {' '.join(_fish_option(option))}"


def _fish_option(option: Option) -> Iterator[str]:
    for spelling in option.names:
        yield f"-l {spelling[2:]}" if spelling.startswith("--") else f"-s {spelling[1:]}"
    if option.values:
        yield f"-x -a {shlex.quote(' '.join(option.values))}"
    elif option.takes_value:
        yield "-r" if option.is_path else "-x"
    yield f"-d {shlex.quote(option.help)}"
