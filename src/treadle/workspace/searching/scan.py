"""A small stand-in for ripgrep, run as a program of its own so that it can be stopped like it.

`python -I -S scan.py OPTIONS -- PATH` understands the options that `search.py` gives and prints what ripgrep would.
It skips hidden and well-known generated directories, what is no regular file, and binary files; it does not know
ignore files. The expression comes in the syntax of Python.
"""

import os
import re
import stat
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


_Shapes = list[tuple[bool, re.Pattern[str]]]
"""Globs in their order, each with whether it includes what it matches."""


def _files(path: str, shapes: _Shapes) -> Iterator[str]:
    if not os.path.isdir(path):  # noqa: PTH112 - loads fast, like the rest here
        yield path
        return
    left = [path]  # and not `os.walk`, which nests a call for each folder that a folder lies in
    while left:
        directory = left.pop()
        # Patterns are relative to where the search runs, or to the folder that is searched elsewhere.
        place = os.path.relpath(directory, path if path.startswith("/") else ".")
        beginning = "" if place == "." else f"{place}/"
        below = []
        for name, is_folder in _entries(directory):
            full = f"{directory.rstrip('/')}/{name}"
            if is_folder:
                if name not in _SKIPPED and _decided(f"{beginning}{name}/", shapes) is not False:
                    below.append(full)
            elif _wanted(f"{beginning}{name}", shapes) and _is_regular(full):
                yield full
        left += reversed(below)


def _entries(directory: str) -> list[tuple[str, bool]]:
    """Give the names that are not hidden, each with whether it is a folder and no link."""
    try:
        with os.scandir(directory) as entries:
            return sorted((one.name, one.is_dir(follow_symlinks=False)) for one in entries if one.name[:1] != ".")
    except OSError:
        return []


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _wanted(relative: str, shapes: _Shapes) -> bool:
    """Whether the globs let a file through: the last that it matches says so, or none of them includes any."""
    decided = _decided(relative, shapes)
    return not any(includes for includes, _ in shapes) if decided is None else decided


def _decided(relative: str, shapes: _Shapes) -> bool | None:
    return next((includes for includes, shape in reversed(shapes) if shape.fullmatch(relative)), None)


_SIGN = re.compile(
    r"(?P<any>(?:^|(?<=/))\*\*/)|(?P<end>(?<=/)\*\*$)|(?P<some>\*+)|\\.|\[(?P<not>[!^]?)(?P<of>\]?[^]]*)\]|.", re.DOTALL
)
_WRITTEN = {"?": "[^/]", "{": "(?:", "}": ")"}
_IN_CLASS = re.compile(r"([][&~|^])")


def _shape(glob: str) -> re.Pattern[str]:
    """Write a glob as an expression; one without a slash before its end matches at any depth, as in ignore files."""
    written, depth = "" if "/" in glob.rstrip("/") else "(?:.*/)?", 0
    for found in _SIGN.finditer(glob.removeprefix("/")):
        depth += (found[0] == "{") - (found[0] == "}")
        if depth < 0 or found[0] == "[":
            break
        written += "|" if depth and found[0] == "," else _written(found)
    else:
        if depth == 0:
            return re.compile(written if glob.endswith("/") else f"{written}/?", re.DOTALL)
    raise ValueError(f"the pattern {glob} has a brace or bracket without its other half")


def _written(found: re.Match[str]) -> str:
    """Write one sign of a glob."""
    if found["any"]:
        return "(?:.*/)?"
    if found["end"]:
        return ".+"
    if found["some"]:
        return "[^/]*"
    if found["of"]:
        inside = _IN_CLASS.sub(r"\\\1", found["of"])
        return f"(?!/)[{'^' if found['not'] else ''}{inside}]"
    return _WRITTEN.get(found[0]) or re.escape(found[0][-1])


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
    try:
        shapes = [(not glob.startswith("!"), _shape(glob.removeprefix("!"))) for glob in globs]
        regex = re.compile(named.get("--regexp", ""), re.MULTILINE if "--multiline" in named else 0)
    except (re.error, ValueError) as error:
        told = error if isinstance(error, ValueError) else f"the expression is not valid without ripgrep: {error}"
        sys.stderr.write(str(told))
        sys.exit(2)
    if "--files" in named:
        for file in _files(path, shapes):
            sys.stdout.write(f"{file}\0")
        return
    read = [
        _print_matches(file, regex, int(named["--context"]), int(named["--max-columns"]))
        for file in _files(path, shapes)
    ]
    if not all(read):
        sys.exit(2)


if __name__ == "__main__":
    main()
