"""The page about what works, written from `features.txt`: each row with the tests that show it.

`python -m tests.docs.features` prints the page; with `--take` it first takes over what somebody wrote into the rows of
docs/features.md itself, which is how two branches that both changed the page are brought together.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.test_shape import ROOT

TABLE = Path(__file__).with_name("features.txt")
PAGE = ROOT / "docs" / "features.md"
NONE = "-"
STATES = ("not yet", "partly")
"""How the text of a row begins that does not work, or not all of it. Every other row works as its page says."""
_BEFORE = """# Features

What works today, row by row; `make docs` writes this page from `tests/docs/features.txt`. A row works as its page
says unless it begins with "not yet" or "partly"; the tests that are named show it.
"""
_HEAD = "| id | capability | today | tests |\n|---|---|---|---|\n"


@dataclass(frozen=True)
class Feature:
    """A row: its ids (one, several, or from one to another), what it is, what works today, and its test files."""

    section: str
    ids: str
    capability: str
    today: str
    tests: tuple[str, ...]

    @property
    def numbers(self) -> Iterator[str]:
        """Each id."""
        for part in self.ids.split(", "):
            first, dash, last = part.partition("–")
            end = int(re.sub(r"\D", "", last)) if dash else int(first[1:])
            yield from (f"{first[0]}{number}" for number in range(int(first[1:]), end + 1))


def features(text: str) -> Sequence[Feature]:
    """Read the table."""
    found, section = [], ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.strip():
            ids, capability, today, tests = (part.strip() for part in line.split(" | "))
            found.append(Feature(section, ids, capability, today, () if tests == NONE else tuple(tests.split())))
    return found


def features_page(rows: Sequence[Feature]) -> str:
    """Write the page."""
    page, section = _BEFORE, ""
    for row in rows:
        if row.section != section:
            section = row.section
            page += f"\n## {section}\n{_HEAD}"
        tests = ", ".join(f"`tests/{one}`" for one in row.tests) or "–"
        page += f"| {row.ids} | {row.capability} | {row.today} | {tests} |\n"
    return page


def taken_over(table: str, page: str) -> str:
    """Give the table with what the rows of a page say is there today."""
    found = re.findall(r"^\| ([A-Z]\d[^|]*?) \| ([^|]+?) \| (.*?) \|(?: [^|]* \|)?$", page, re.MULTILINE)
    said = {(ids, capability): today for ids, capability, today in found}
    lines = []
    for line in table.splitlines():
        parts = line.split(" | ")
        if len(parts) == 4:
            parts[2] = said.get((parts[0], parts[1]), parts[2])
        lines.append(" | ".join(parts))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--take" in sys.argv:
        taken = taken_over(TABLE.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8"))
        TABLE.write_text(taken, encoding="utf-8")
    sys.stdout.write(features_page(features(TABLE.read_text(encoding="utf-8"))))
