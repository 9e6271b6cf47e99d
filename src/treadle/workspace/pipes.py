"""How the parts of a command's last pipe ended: its own status is that of the last part alone."""

import shlex
from collections.abc import Sequence
from itertools import dropwhile, islice, takewhile

from treadle.protocol.patterns import regex
from treadle.workspace.text import visible

_READER_LEFT = 141
"""128 + SIGPIPE: the part after it had read enough, as `head` does."""
_WORDS = 3
_ASSIGNMENT = regex(r"[A-Za-z_]\w*\+?=")
_ENDS = frozenset(";&()\n")
_REDIRECTS = frozenset("<>")
_KEYWORDS = frozenset(["if", "then", "else", "elif", "while", "until", "do", "!", "time", "{"])
_WIDTH = 60


def describe_pipe(line: str, statuses: Sequence[int]) -> str:
    """Say which parts before the last one failed; empty where none did."""
    failed = [(at, status) for at, status in enumerate(statuses[:-1]) if status not in (0, _READER_LEFT)]
    if not failed:
        return ""
    names = next((names for names in reversed(_pipes(line)) if len(names) == len(statuses)), [])
    said = [f"{names[at] if names and names[at] else f'part {at + 1}'} exited {status}" for at, status in failed]
    return f" (but in the pipe {' and '.join(said)})"


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
