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


def _print_matches(path: str, regex: re.Pattern[str], context: int, width: int) -> None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            raw = file.read(_LARGEST)
    except OSError:
        return
    if b"\0" in raw:
        return
    lines = raw.decode("utf-8", errors="replace").removesuffix("\n").split("\n")
    hits = {number for number, line in enumerate(lines) if regex.search(line)}
    last = None
    for number in sorted({n for hit in hits for n in range(hit - context, hit + context + 1) if 0 <= n < len(lines)}):
        if last is not None and number != last + 1 and context:
            sys.stdout.write("--\n")
        mark = ":" if number in hits else "-"
        sys.stdout.write(f"{path}\0{number + 1}{mark}{lines[number][:width]}\n")
        last = number


def main() -> None:
    """Search or list as the arguments say; exit status 2 for an invalid expression."""
    named, globs, path = _options(sys.argv[1:])
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    if "--files" in named:
        for file in _files(path, globs):
            sys.stdout.write(f"{file}\0")
        return
    try:
        regex = re.compile(named["--regexp"])
    except re.error as error:
        sys.stderr.write(f"invalid regular expression: {error}")
        sys.exit(2)
    for file in _files(path, globs):
        _print_matches(file, regex, int(named["--context"]), int(named["--max-columns"]))


if __name__ == "__main__":
    main()
