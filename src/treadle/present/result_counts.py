"""How much a result brought, counted in its text."""

from treadle.protocol.patterns import regex

_MATCH = regex(r"\d+: ")
_FOUND_LINE = regex(r"\d+[:-] |\.\.\.$|\[|$")
_NUMBERED = regex(r"(?m)^\d+ \| ")
_SAID_OF_FILES = regex(r"(?m)^(?:=== .*|\[.*\])$")


def count_read_lines(text: str) -> int:
    """Count the lines of files in what a read brought: those with a number, without what is said of the files.

    What another tool reads has no numbers: there all lines count, unless notes are all there is.
    """
    read = len(_NUMBERED.findall(text))
    return read if read or not _SAID_OF_FILES.sub("", text).strip() else text.count("\n") + 1


def count_matches(text: str) -> tuple[int, int]:
    """Count the matches and the files of what a search found: a file's name, then numbered lines."""
    lines = text.split("\n")
    return sum(_MATCH.match(line) is not None for line in lines), sum(_FOUND_LINE.match(line) is None for line in lines)
