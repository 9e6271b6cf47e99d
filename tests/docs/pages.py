"""The documents, taken apart: blocks and spans of code, links, tables, numbers, each with its place."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tests.architecture.test_shape import ROOT

GENERATED = ("errors.md", "states.md")
"""Pages that a program writes: tests hold that they are as it would write them now."""

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)(``?)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
MEASURED = re.compile(r"`(?:make (?:bench|soak|fleet-sim)\b|ARGS=)")
"""A section that names the command which gives its figures."""


@dataclass(frozen=True)
class Claim:
    """A piece of a document: the text of a span, a block, a link or a number, with its place and what is around it."""

    page: str
    line: int
    text: str
    kind: str = ""
    around: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """A document: its path below the root, its text, and its text with blocks blanked out, line by line."""

    path: str
    text: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @cached_property
    def prose(self) -> str:
        return FENCE.sub(lambda block: "\n" * block[0].count("\n"), self.text)

    def line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def blocks(self) -> Iterator[Claim]:
        """Each fenced block, with its language."""
        for match in FENCE.finditer(self.text):
            lines = (line.removeprefix(match[1]) for line in match[3].splitlines())
            yield Claim(self.path, self.line(match.start()), "\n".join(lines) + "\n", kind=match[2])

    def spans(self) -> Iterator[Claim]:
        """Each piece of code within a line or over its end, with the line of text that it is in."""
        prose = self.prose
        for match in SPAN.finditer(prose):
            around = prose[prose.rfind("\n", 0, match.start()) + 1 : (prose.find("\n", match.end()) + 1) or None]
            line = prose.count("\n", 0, match.start()) + 1
            yield Claim(self.path, line, " ".join(match[2].split()), around=around.strip())

    def links(self) -> Iterator[Claim]:
        """Each link."""
        prose = self.prose
        for match in LINK.finditer(prose):
            yield Claim(self.path, prose.count("\n", 0, match.start()) + 1, match[1])

    def headings(self) -> frozenset[str]:
        """The anchors of its headings, as pages of repositories make them."""
        found = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return frozenset(
            re.sub(r"[^\w -]", "", one.lower().replace("`", "")).strip().replace(" ", "-") for one in found
        )


@cache
def pages() -> Sequence[Page]:
    """Every document that people write: the README, SECURITY.md and docs/*.md."""
    files = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        Page(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
        for file in files
        if file.name not in GENERATED
    ]


def page(name: str) -> Page:
    return next(one for one in pages() if one.name == name)


def exists(path: str) -> bool:
    """Whether a path of a document is one of the repository: from its root, below `src/treadle`, or `tests`."""
    return any((base / path).exists() for base in (ROOT, ROOT / "src" / "treadle", ROOT / "docs"))


@cache
def paths() -> Sequence[str]:
    """The paths of all files of the repository that documents may name, from its root."""
    folders = ("src/treadle", "tests", "bench", "scripts", "docs")
    found = [path for folder in folders for path in Path(ROOT, folder).rglob("*.*")]
    return [path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts]
