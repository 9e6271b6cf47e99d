"""Danger by shape in mode full: many files at once, work discarded, home and devices, whatever the program.

The files of `lines/` hold one line per row under headings, `⏎` for a line break.
"""

from pathlib import Path

import pytest

from tests.policy.views import ROOT, MemoryView, context
from treadle.policy.classify import classify_command
from treadle.policy.findings import CommandClass

_LINES = Path(__file__).parent / "lines"
_NAMES = ("a.txt", "b.txt", "README.md", "src/a.py", "src/b.py", "docs/x.md", ".git/HEAD", ".git/refs/heads/side")
_FOLDERS = ("src", "docs", ".git", "sub", "old")
_FILES = MemoryView(
    files={
        **{f"{ROOT}/{name}": "" for name in _NAMES},
        **{f"{ROOT}/{name}": None for name in _FOLDERS},
        **dict.fromkeys(("/home/user/other", "/home/user/other/.git", "/home/user/lib")),
    }
)


def _families(name: str) -> dict[str, list[str]]:
    families: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in (_LINES / name).read_text().splitlines():
        if line.startswith("## "):
            rows = families.setdefault(line[3:], [])
        else:
            rows.append(line.replace("⏎", "\n"))
    return families


def _class(line: str) -> CommandClass:
    return classify_command(line, ROOT, context(files=_FILES)).command_class


@pytest.mark.parametrize(("family", "lines"), _families("destroys.txt").items())
def test_what_destroys_much_is_dangerous_whatever_the_program(family: str, lines: list[str]) -> None:
    assert (family, [line for line in lines if _class(line) is not CommandClass.DANGEROUS]) == (family, [])


@pytest.mark.parametrize(("family", "lines"), _families("spares.txt").items())
def test_what_spares_the_rest_is_not_dangerous(family: str, lines: list[str]) -> None:
    assert (family, [line for line in lines if _class(line) is CommandClass.DANGEROUS]) == (family, [])


def test_everyday_lines_are_not_dangerous() -> None:
    lines = (_LINES / "everyday.txt").read_text().splitlines()
    assert [line for line in lines if _class(line) is CommandClass.DANGEROUS] == []
