"""Addresses and paths that can be clicked (OSC 8), in rows that are painted already. What is opened is what is read."""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path
from urllib.parse import quote, urlsplit

from prompt_toolkit.utils import get_cwidth

from treadle.protocol.patterns import regex

_SGR = regex(r"\x1b\[[0-9;]*m")
_ADDRESS = regex(r"(?<![\w/.-])https?://[A-Za-z0-9._~:/?#!$&'()*+,;=%@\[\]-]{1,2000}")
_PATH = regex(r"(?<![\w/.~+@…-])(?:\.{1,2}/|/)?[\w.+@-]+(?:/[\w.+@-]+)*")
_AFTER = frozenset(" \t\n,;:.)]}>\"'`*!?|")
_CLOSING = {")": "(", "]": "["}
_MOST = 20
"""Names on one row that are looked up."""

_OPENED_AS_PROGRAM = frozenset(
    (
        *(".app", ".command", ".desktop", ".jar", ".scpt", ".terminal", ".tool", ".url", ".webloc", ".workflow"),
        *(
            ".bat",
            ".cmd",
            ".com",
            ".exe",
            ".hta",
            ".js",
            ".lnk",
            ".msi",
            ".pif",
            ".ps1",
            ".reg",
            ".scr",
            ".vbs",
            ".wsf",
        ),
        *(".htm", ".html", ".svg", ".xhtml"),
    )
)
"""Files that some system runs, or shows as a page with scripts, when they are opened."""

_KNOWN = frozenset(
    ("WezTerm", "iTerm.app", "vscode", "ghostty", "Hyper", "Tabby", "WarpTerminal", "rio", "zed", "mintty")
)
_KNOWN_TERM = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour", "rio")
_TMUX = (3, 4)
_VTE = 5000


def supports_links(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is one that is known to take OSC 8."""
    program, term = environment.get("TERM_PROGRAM", ""), environment.get("TERM", "")
    if program == "tmux":
        version = tuple(int(one) for one in regex(r"\d+").findall(environment.get("TERM_PROGRAM_VERSION", ""))[:2])
        return version >= _TMUX
    if "STY" in environment or "TMUX" in environment or term in ("", "dumb", "linux"):
        return False
    vte = environment.get("VTE_VERSION", "")
    return (
        program in _KNOWN
        or term.startswith(_KNOWN_TERM)
        or any(environment.get(name) for name in ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM"))
        or (vte.isdecimal() and int(vte) >= _VTE)
    )


def visible_width(row: str) -> int:
    """Count the cells of a painted row."""
    return get_cwidth(_SGR.sub("", row))


def linkable_names(text: str) -> frozenset[str]:
    """Give what is written in a text that may be an address or a path, each whole."""
    return frozenset(one for _, _, one in (*_addresses(text), *_names(text)))


class FileLinks:
    """Where names of files below a folder lead, as far as that was looked up; painting looks nothing up."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, str] = {}
        self._unknown: set[str] = set()

    def target(self, name: str) -> str:
        """Give the address that a name leads to; empty where it leads nowhere, or that was not looked up yet."""
        if name not in self._known:
            self._unknown.add(name)
        return self._known.get(name, "")

    def asked_for(self) -> frozenset[str]:
        """Give the names that were asked for since the last time, and are not known."""
        names, self._unknown = frozenset(self._unknown), set()
        return names

    def look_up(self, names: Collection[str]) -> Mapping[str, str]:
        """Look up where names lead; for any thread."""
        return {name: _target(name, self._root) for name in names}

    def know(self, found: Mapping[str, str]) -> None:
        """Take what was looked up."""
        self._known |= found

    def forget(self) -> None:
        """Know nothing any more: files may have changed."""
        self._known.clear()


def linked(row: str, links: FileLinks, *, full: bool, names: frozenset[str] | None = None) -> str:
    """Give a painted row with its addresses and the paths of files that `links` knows as links.

    A `full` row may go on in the next one: what is at its end is no link, since its other half is not known. With
    `names` nothing else is one: they are those of the text that was painted, some of which are cut in the row.
    """
    plain = _SGR.sub("", row)
    if "\x1b" in plain:
        return row
    addresses = [*_addresses(plain)]
    found = [(begin, end, text) for begin, end, text in addresses if names is None or text in names]
    for begin, end, text in islice(_names(plain), _MOST):
        apart = not any(begin < one[1] and one[0] < end for one in addresses)
        if apart and (names is None or text in names) and (target := links.target(text)):
            found.append((begin, end, target))
    marks: dict[int, str] = {}
    for begin, end, target in found:
        if not (full and end == len(plain)):
            marks[begin], marks[end] = f"{marks.get(begin, '')}\x1b]8;;{target}\x1b\\", "\x1b]8;;\x1b\\"
    return _with_marks(row, marks) if marks else row


def _addresses(plain: str) -> Iterator[tuple[int, int, str]]:
    for one in _ADDRESS.finditer(plain):
        text = one[0]
        if text.endswith("...") or _goes_on(plain, one.end()):
            continue
        while text[-1] in ".,;:!?'\"*_)]":
            opening = _CLOSING.get(text[-1])
            if opening is not None and text.count(opening) >= text.count(text[-1]):
                break
            text = text[:-1]
        try:
            parts = urlsplit(text)
            named = bool(parts.hostname) and "@" not in parts.netloc
        except ValueError:
            continue
        if named:
            yield one.start(), one.start() + len(text), text


def _names(plain: str) -> Iterator[tuple[int, int, str]]:
    for one in _PATH.finditer(plain):
        text = one[0].rstrip(".")
        is_name = "/" in text or "." in text.strip(".")
        if is_name and not one[0].endswith("...") and not _goes_on(plain, one.end()):
            yield one.start(), one.start() + len(text), text


def _goes_on(plain: str, end: int) -> bool:
    return bool(plain[end:]) and plain[end] not in _AFTER


def _target(text: str, root: str) -> str:
    """Give the address of a file below the root that opening does not run; empty for any other."""
    try:
        folder = Path(root).resolve()
        path = (folder / text).resolve(strict=True)
        mode = path.stat().st_mode
    except (OSError, ValueError, RuntimeError):
        return ""
    runs = path.suffix.lower() in _OPENED_AS_PROGRAM or (stat.S_ISREG(mode) and mode & 0o111)
    if runs or not path.is_relative_to(folder) or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return ""
    return f"file://{quote(os.uname().nodename)}{quote(str(path))}"


def _with_marks(row: str, marks: Mapping[int, str]) -> str:
    """Put marks at places that are counted without colours."""
    pieces: list[str] = []
    place = begin = 0
    for colour in [*_SGR.finditer(row), None]:
        text = row[begin : colour.start() if colour is not None else len(row)]
        for offset, char in enumerate(text):
            pieces += [marks.get(place + offset, ""), char]
        place += len(text)
        if colour is not None:
            pieces.append(colour[0])
            begin = colour.end()
    pieces.append(marks.get(place, ""))
    return "".join(pieces)
