"""The numbers of documents, and what each is bound to: a constant, a line of the source, a test, or a reason.

`numbers.txt` beside this file has a part for each page and a row for each phrase: `PHRASE | BINDING`. The phrase is as
the page has it, line ends as blanks, and the binding is one of

- `file.py: EXPRESSION`, evaluated in the module of that file; several, separated by `;`, for the numbers of the phrase
  in their order. A unit behind a number (kB, KiB, %, minutes ...) may be in the constant or not.
- `file.py ~ TEXT`, a piece of the file, any file of the source, with `{}` where the number is
- `tests/…py::test_name`, a test that fails where the number is wrong
- `= REASON`, for what is not ours: another program's number, an example, a count in the sentence itself
"""

import ast
import contextlib
import importlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

from tests.architecture.test_shape import ROOT, SOURCE
from tests.docs.pages import MEASURED, Page, exists
from treadle.app.errors.exits import Exit

TABLE = Path(__file__).with_name("numbers.txt")
WORDS = {
    word: number
    for number, word in enumerate("three four five six seven eight nine ten eleven twelve".split(), 3)  # noqa: SIM905
}
NUMBER = re.compile(
    r"(?<![\w.#@$/-])\$?(\d+(?:[,_]\d{3})*(?:\.\d+)*)(?![\w/]*[A-Za-z_]\w)|\b(" + "|".join(WORDS) + r")\b",
    re.IGNORECASE,
)
UNITS = {
    "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "%": 0.01, "ms": 1e-3, "s": 1,
    "second": 1, "seconds": 1, "minute": 60, "minutes": 60, "hour": 3600, "hours": 3600, "days": 86_400,
}  # fmt: skip
_UNIT = re.compile(r"\s?(%|[A-Za-z]+)")
_CODE = re.compile(
    r"(?:exit codes?(?: is)?|exits? with|ends with(?: 0 or)?|[Ee]xit status) \d+$|never 0$|code is not 0$"
)
_LIST = re.compile(r"^\s*(?:> )?\d+\.$")
_COUNTED = re.compile(r"^\| (\d+) \|")
_CODES = re.compile(r"^\| [\d, ]+ \|")
_DECISION = re.compile(r"\[decision \d+$|\[\d{4}$")


@dataclass(frozen=True)
class Number:
    """A number in the prose of a page: its value, its unit, where it begins in the flat text, and its place."""

    page: str
    line: int
    start: int
    end: int
    value: float
    unit: str
    text: str
    around: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}: …{self.around}…"


@dataclass(frozen=True)
class Row:
    """A row of the table, with its line there."""

    page: str
    phrase: str
    binding: str
    line: int


def flat(page: Page) -> str:
    """The prose of a page with each line end as one blank; pieces of code are blanked out, the lengths stay."""
    blank = re.sub(r"(``?)(?!`)(.+?)\1", lambda span: "`" * len(span[0]), page.prose, flags=re.DOTALL)
    blank = re.sub(r"\]\([^)\s]*\)", lambda link: "]" + "`" * (len(link[0]) - 1), blank)
    return blank.replace("\n", " ")


def numbers_of(page: Page) -> Iterator[Number]:
    """Each number that claims something: not those of lists, of table rows that count, of exit codes and decisions."""
    text, lines = flat(page), page.prose.split("\n")
    counted = 0
    for match in NUMBER.finditer(text):
        line = page.prose.count("\n", 0, match.start())
        begun = page.prose.rfind("\n", 0, match.start()) + 1
        before = text[begun : match.end()]
        if _LIST.match(before + text[match.end() : match.end() + 1]) or _DECISION.search(before):
            continue
        if (row := _COUNTED.match(lines[line])) and before == f"| {row[1]}" and int(row[1]) == counted + 1:
            counted += 1
            continue
        if _CODES.match(lines[line]) and page.name == "headless.md" and "|" not in before[1:]:
            continue  # tests/docs/test_tables.py
        word = match[2]
        value = WORDS[word.lower()] if word else _read(match[1])
        if _CODE.search(before) and value in list(Exit):
            continue
        unit = _UNIT.match(text, match.end())
        yield Number(
            page=page.path,
            line=line + 1,
            start=match.start(),
            end=match.end(),
            value=value,
            unit=unit[1] if unit and unit[1] in UNITS else "",
            text=match[0],
            around=" ".join(page.prose[max(0, match.start() - 40) : match.end() + 30].split()),
        )


def _read(text: str) -> float:
    plain = text.rstrip(",.").replace(",", "").replace("_", "")
    return float(plain) if plain.count(".") < 2 else math.nan


@cache
def rows() -> Sequence[Row]:
    """The table."""
    found, page = [], ""
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("# "):
            page = line.removeprefix("# ")
        elif line.strip():
            phrase, _, binding = line.rpartition(" | ")
            found.append(Row(page, phrase.strip(), binding.strip(), number))
    return found


def is_measured(page: Page, line: int) -> bool:
    """Whether the paragraph of a line names the command that gives its figures."""
    lines = page.prose.split("\n")
    begun = max((at for at in range(line - 1) if not lines[at].strip()), default=0)
    end = next((at for at in range(line, len(lines)) if not lines[at].strip()), len(lines))
    return MEASURED.search("\n".join(lines[begun:end])) is not None


def bound(page: Page) -> tuple[Mapping[int, tuple[Row, int]], Sequence[Row]]:
    """For each place of a number the row that binds it, with its number in the phrase; and rows that bind nothing."""
    text = page.prose.replace("\n", " ")
    starts = [number.start for number in numbers_of(page)]
    found: dict[int, tuple[Row, int]] = {}
    idle = []
    for row in (one for one in rows() if one.page == page.name):
        phrase = re.compile(re.escape(row.phrase).replace("\\ ", r"\s+"))
        places = [
            [start for start in starts if match.start() <= start < match.end()] for match in phrase.finditer(text)
        ]
        if not any(places):
            idle.append(row)
        found.update({start: (row, index) for within in places for index, start in enumerate(within)})
    return found, idle


def trouble(number: Number, row: Row, index: int) -> str:
    """What is wrong with a number by its binding; empty where they agree."""
    binding = row.binding
    if binding.startswith("= "):
        return "" if len(binding) > 10 else "the reason is missing"
    if " ~ " in binding:
        file, _, text = binding.partition(" ~ ")
        return (
            "" if "{}" in text and any(_holds(one, text, number) for one in _files(file)) else f"no {file} has {text!r}"
        )
    if binding.startswith("tests/"):
        file, _, name = binding.partition("::")
        there = exists(file) and f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
        return "" if there and name else f"there is no test {binding}"
    parts = [part.strip() for part in binding.split(";")]
    if index >= len(parts):
        return f"the row binds {len(parts)} of the numbers of the phrase"
    if not re.search(r": .*[A-Za-z_]{3}", parts[index]):
        return f"{parts[index]} names no constant"
    try:
        value = constant(parts[index])
    except (LookupError, AttributeError, NameError, TypeError) as error:
        return f"{parts[index]}: {error}"
    if agrees(number, value):
        return ""
    return f"it is {value} by {parts[index]}"


def agrees(number: Number, value: float) -> bool:
    """Whether a number says a value, in its unit or not."""
    wanted = (number.value, number.value * UNITS.get(number.unit, 1))
    return any(math.isclose(value, one, rel_tol=1e-9) for one in wanted)


@cache
def constant(text: str) -> float:
    """Evaluate `file.py: EXPRESSION` in its module; raises `LookupError` where there is no such file."""
    file, _, expression = text.partition(": ")
    first = re.match(r"\w+", expression)
    defines = re.compile(rf"^(?:class )?(?:\w+, )*{first[0] if first else '?'}\b", re.MULTILINE)
    places = [one for one in _files(file) if defines.search(_text(one))] or _files(file)
    if len(places) != 1:
        raise LookupError(f"{len(places)} files have that name; write more of the path")
    try:
        value = eval(expression, _constants(places[0]))
    except NameError:
        name = ".".join(("treadle", *places[0].relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        value = eval(expression, dict(vars(importlib.import_module(name))))
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


@cache
def _constants(file: Path) -> dict[str, object]:
    """Run what a module gives names to by itself, without loading it or what it needs."""
    found: dict[str, object] = {"timedelta": timedelta, "MEBIBYTE": 2**20, "MappingProxyType": dict}
    for node in ast.parse(_text(file)).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            with contextlib.suppress(NameError, AttributeError, TypeError, KeyError, ValueError):
                exec(compile(ast.Module([node], []), str(file), "exec"), found)
    return found


@cache
def _files(name: str) -> Sequence[Path]:
    own = [file for file in (ROOT / name,) if file.is_file()]
    return own or [file for file in _source() if file.as_posix().endswith(f"/{name}")]


@cache
def _source() -> Sequence[Path]:
    return [file for file in SOURCE.rglob("*.*") if "__pycache__" not in file.parts]


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _holds(file: Path, text: str, number: Number) -> bool:
    whole = int(number.value) if float(number.value).is_integer() else number.value
    forms = {str(number.value), str(whole), f"{whole:_}", f"{whole:,}", number.text, number.text.lstrip("$")}
    return any(text.replace("{}", form) in _text(file) for form in forms)
