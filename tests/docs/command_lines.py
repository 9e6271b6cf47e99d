"""Command lines of documents, read by the parsers of the program itself."""

import argparse
import contextlib
import io
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from treadle.cli import host_flags
from treadle.cli.main import parser_of
from treadle.cli.parser import CommandParser
from treadle.cli.task_words import COMMANDS, task_of
from treadle.protocol.errors import ConfigError

WHOLE = re.compile(r"treadle(?![\w./-])")
ANY_NUMBER = ("N", "S", "USD", "DAYS")
"""Words that stand for a number; other words of capitals stand for themselves, which every text may be."""
ONLY_INCOMPLETE = ("Something is missing: ", "-p or --print needs a value.")
_END = re.compile(r"^(#|\||\|\||&&|;|<|>|2>|\))")
_HOSTS = {"--input-format", "--verbose"}


def parts(line: str) -> Iterator[Sequence[str]]:
    """Each command of Treadle in a line of a shell, as words; placeholders are filled, and optional parts are given."""
    text = line.strip().removeprefix("$ ")
    text = re.sub(r"^\w+=\$\((.*)\)", r"\1", text)  # id=$(treadle ...)
    text = re.sub(r"\s#\s.*$", "", text)
    text = re.sub(r"\[--[\w-]+ …\]", "", text).replace("…", "")  # a flag whose value is left open
    text = re.sub(r"(?<=\w)(?:\|[\w/.…-]+)+", "", text)  # one of several words: the first
    text = re.sub(r"\[([^\[\]]*)\]", r"\1", text)
    begins = [
        match for match in WHOLE.finditer(text) if not match.start() or text[: match.start()].endswith((" -- ", "( "))
    ]
    for match in begins:
        words: list[str] = []
        with contextlib.suppress(ValueError):
            words = shlex.split(text[match.end() :])
        ended = next((at for at, word in enumerate(words) if _END.match(word)), len(words))
        yield [("7" if word in ANY_NUMBER else word) for word in words[:ended]]


def mistake(words: Sequence[str], incomplete: Sequence[str] = ONLY_INCOMPLETE) -> str:
    """What the program says is wrong with a command line; empty where it takes it, or says what is `incomplete`."""
    name = words[0] if words and words[0] in COMMANDS else ""
    flags = {word.partition("=")[0] for word in words}
    if not name and "--output-format" in flags and flags & _HOSTS:
        return "; ".join(host_flags.HostFlags(words).notes)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            arguments = parser_of(name).read(list(words[1:] if name else words))
            if not name:
                task_of([] if arguments.task is None else _words(arguments.task), COMMANDS)
    except SystemExit as end:
        text = said.getvalue().strip()
        return "" if not end.code or any(one in text for one in incomplete) else text.splitlines()[0]
    except ConfigError as error:
        return str(error)
    return ""


def _words(task: str | Sequence[str]) -> Sequence[str]:
    return [task] if isinstance(task, str) else task


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action.choices, Mapping):
            for inner in action.choices.values():
                if isinstance(inner, argparse.ArgumentParser):
                    yield from _options(inner)


@cache
def parsers() -> Mapping[str, CommandParser]:
    """The parser of each command; the main one under the empty name."""
    return {name: parser_of(name) for name in ("", *COMMANDS)}


@cache
def known_flags() -> frozenset[str]:
    """Every flag that some command takes, and those that hosts send."""
    own = {flag for parser in parsers().values() for flag in _options(parser)}
    sent = host_flags._SWITCHES | host_flags._VALUES | frozenset(host_flags._ALSO)
    hosts = {f"--{name.replace('_', '-')}" for name in sent if len(name) > 1} | {
        f"-{name}" for name in sent if len(name) == 1
    }
    humps = {"--" + "".join(word.title() for word in name.split("_")) for name in sent}
    return frozenset(own | hosts | {flag[:2] + flag[2:3].lower() + flag[3:] for flag in humps} | {"--help", "-h"})
