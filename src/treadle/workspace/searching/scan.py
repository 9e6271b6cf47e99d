"""A small stand-in for ripgrep, run as a program of its own so that it can be stopped like it.

`python -I -S scan.py OPTIONS -- PATH` understands the options that `search.py` gives and prints what ripgrep would.
It skips hidden and well-known generated directories and binary files; it does not know ignore files.
"""

import fnmatch
import os
import re
import sys
from collections.abc import Iterator

_SKIPPED = {"node_modules", "__pycache__", "venv", "target", "dist", "build", "vendor"}
_LARGEST = 16 * 1024 * 1024


def _options(arguments: list[str]) -> tuple[dict[str, str], list[str], str]:
    """Read the options with their values, the globs, and the path."""
    named: dict[str, str] = {}
    globs = []
    for argument in arguments[: arguments.index("--")]:
        name, _, value = argument.partition("=")
        if name == "--glob":
            globs.append(value)
        else:
            named[name] = value
    return named, globs, arguments[-1]


def _files(path: str, globs: list[str]) -> Iterator[str]:
    if not os.path.isdir(path):  # noqa: PTH112 - loads fast, like the rest here
        yield path
        return
    for directory, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(names):
            full = f"{directory.rstrip('/')}/{name}"
            if not name.startswith(".") and _wanted(os.path.relpath(full, path), globs):
                yield full


def _wanted(relative: str, globs: list[str]) -> bool:
    """Whether the globs let a file through: excluded by none that starts with `!`, and included if any includes."""
    excluded = [glob[1:] for glob in globs if glob.startswith("!")]
    included = [glob for glob in globs if not glob.startswith("!")]
    if any(_matches(relative, glob) for glob in excluded):
        return False
    return not included or any(_matches(relative, glob) for glob in included)


def _matches(relative: str, glob: str) -> bool:
    glob = glob.removeprefix("**/")
    name = relative if "/" in glob else relative.rpartition("/")[2]
    return fnmatch.fnmatchcase(name, glob.lstrip("/"))


def _print_matches(path: str, regex: re.Pattern[str], context: int, width: int) -> bool:
    """Print the matches in a file; False when it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            raw = file.read(_LARGEST)
    except OSError:
        return False
    if b"\0" in raw:
        return True
    text = raw.decode("utf-8", errors="replace").removesuffix("\n")
    lines = text.split("\n")
    hits = _hits(text, lines, regex)
    last = None
    for number in sorted({n for hit in hits for n in range(hit - context, hit + context + 1) if 0 <= n < len(lines)}):
        if last is not None and number != last + 1 and context:
            sys.stdout.write("\0\n")
        mark = f":{hits[number]}:" if number in hits else "-"
        sys.stdout.write(f"{path}\0{number + 1}{mark}{lines[number][:width]}\n")
        last = number
    return True


def _hits(text: str, lines: list[str], regex: re.Pattern[str]) -> dict[int, int]:
    """Find the lines that match, with the column; a match over several lines counts for each of them."""
    if not regex.flags & re.MULTILINE:
        found = ((number, regex.search(line)) for number, line in enumerate(lines))
        return {number: match.start() + 1 for number, match in found if match}
    hits: dict[int, int] = {}
    for match in regex.finditer(text):
        begin, first = text.rfind("\n", 0, match.start()) + 1, text.count("\n", 0, match.start())
        hits.setdefault(first, match.start() - begin + 1)
        for number in range(first + 1, first + 1 + match.group().rstrip("\n").count("\n")):
            hits.setdefault(number, 1)
    return hits


def main() -> None:
    """Search or list as the arguments say; exit status 2 for an invalid expression or a file that cannot be read."""
    named, globs, path = _options(sys.argv[1:])
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    if "--files" in named:
        for file in _files(path, globs):
            sys.stdout.write(f"{file}\0")
        return
    try:
        regex = re.compile(named["--regexp"], re.MULTILINE if "--multiline" in named else 0)
    except re.error as error:
        sys.stderr.write(f"invalid regular expression: {error}")
        sys.exit(2)
    read = [
        _print_matches(file, regex, int(named["--context"]), int(named["--max-columns"]))
        for file in _files(path, globs)
    ]
    if not all(read):
        sys.exit(2)


if __name__ == "__main__":
    main()
