"""How the parts of a command's pipes ended: its own status is that of the last part of the last one alone."""

import shlex
from collections.abc import Sequence
from itertools import dropwhile, islice, takewhile

from treadle.protocol.patterns import regex
from treadle.workspace.files.text import visible

_READER_LEFT = 141
"""128 + SIGPIPE: the part after it had read enough, as `head` does."""
_WORDS = 3
_ASSIGNMENT = regex(r"[A-Za-z_]\w*\+?=")
_ENDS = frozenset(";&()\n")
_REDIRECTS = frozenset("<>")
_KEYWORDS = frozenset(["if", "then", "else", "elif", "while", "until", "do", "!", "time", "{"])
_WIDTH = 60


def describe_pipes(line: str, reported: Sequence[Sequence[int]]) -> str:
    """Say which parts but the last one of a pipe failed; empty where none did.

    `reported` are the statuses of each pipe that ended, in that order, and those of the last command.
    """
    ended = [statuses for statuses in reported if len(statuses) > 1]
    failed = [
        f"{name or f'part {at + 1}'} exited {status}"
        for statuses, names in zip(ended, _names(line, ended), strict=True)
        for at, (status, name) in enumerate(zip(statuses[:-1], names, strict=False))
        if status not in (0, _READER_LEFT)
    ]
    where = "in the pipe" if len(ended) == 1 else "in pipes"
    return f" (but {where} {' and '.join(dict.fromkeys(failed))})" if failed else ""


def _names(line: str, ended: Sequence[Sequence[int]]) -> list[list[str]]:
    """Name the parts of the pipes that ended, where it is clear which of the line they are."""
    written = [names for names in _pipes(line) if len(names) > 1]
    lengths = [len(statuses) for statuses in ended]
    if [len(names) for names in written] == lengths:
        return written
    alike = [names for names in written if [len(names)] == lengths]
    return alike if len(alike) == 1 else [[""] * length for length in lengths]


def _pipes(line: str) -> list[list[str]]:
    """Name the parts of each pipe that is written in a shell line, by their first words."""
    scanner = shlex.shlex(line, posix=False, punctuation_chars="|&;()<>\n")
    scanner.whitespace, scanner.commenters, scanner.whitespace_split = " \t", "", True
    pipes: list[list[list[str]]] = [[[]]]
    try:
        for word in scanner:
            if word in ("|", "|&"):
                pipes[-1].append([])
            elif word == "||" or (_ENDS & set(word) and not _REDIRECTS & set(word)):
                pipes.append([[]])
            else:
                pipes[-1][-1].append(word)
    except ValueError:  # a quote that is not closed: bash says so
        return []
    return [[_name(words) for words in parts] for parts in pipes]


def _name(words: Sequence[str]) -> str:
    plain = list(takewhile(lambda word: not _REDIRECTS & set(word), words))
    if len(plain) < len(words) and plain and plain[-1].isdigit():
        plain.pop()  # of a redirection, as in `2>&1`
    named = dropwhile(lambda word: _ASSIGNMENT.match(word) or word in _KEYWORDS, plain)
    shown = visible(" ".join(islice(named, _WORDS)))[:_WIDTH]
    return f"`{shown}`" if shown else ""
