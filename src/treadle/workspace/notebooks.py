"""Notebooks (nbformat 4): their cells as they are read, and changes of a cell that leave every other byte as it is."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.workspace.files.extract import cell_heading, cell_outputs, cell_text

CODE, MARKDOWN, RAW = "code", "markdown", "raw"
CELL_TYPES = (CODE, MARKDOWN, RAW)

_DECODER = json.JSONDecoder()
_SPACE = regex(r"[ \t\n\r]*")
_FIRST_KEY = regex(r'\{[ \t]*(\r?\n)([ \t]*)"')
_ESCAPED = regex(r"\\u(?:00[89a-fA-F]|0[1-9a-fA-F]|[1-9a-fA-F])")
_RUN: Mapping[str, Any] = {"execution_count": None, "outputs": []}
"""What a code cell has that was not run."""

_WITH_IDS = (4, 5)


class Member(Struct, frozen=True):
    """A member of a JSON object in the text: where its key begins, and where its value begins and ends."""

    start: int
    value: int
    end: int


class Cell(Struct, frozen=True):
    """A cell: where it begins and ends in the text, its members there, and its data."""

    start: int
    end: int
    members: Mapping[str, Member]
    data: Mapping[str, Any]

    @property
    def source(self) -> str:
        """What is written in it."""
        return cell_text(self.data["source"])


class CellChange(Struct, frozen=True):
    """What is to become of a cell; `source` or `cell_type` of None stays."""

    source: str | None = None
    cell_type: str | None = None


class _Form(Struct, frozen=True):
    """How the JSON is written: line ends (none for one line), indentation, colon, comma, and if with ASCII alone."""

    newline: str
    indent: str
    colon: str
    comma: str
    ascii_only: bool

    def value(self, value: Any, prefix: str) -> str:
        """Write a value whose further lines begin with `prefix`."""
        text = json.dumps(
            value,
            ensure_ascii=self.ascii_only,
            indent=self.indent if self.newline else None,
            separators=(self.comma, self.colon),
        )
        return text.replace("\n", f"{self.newline}{prefix}")

    def whole(self, brackets: str, items: Sequence[str], prefix: str) -> str:
        """Write an object or an array of items that are written already."""
        if not self.newline:
            return f"{brackets[0]}{self.comma.join(items)}{brackets[1]}"
        begin = f"{self.newline}{prefix}{self.indent}"
        return f"{brackets[0]}{begin}{f'{self.comma}{begin}'.join(items)}{self.newline}{prefix}{brackets[1]}"


class Notebook(Struct, frozen=True, kw_only=True):
    """A notebook as its file has it: the text, its cells, where their array is, and `rest`, its data without them."""

    text: str
    cells: tuple[Cell, ...]
    array: Member
    rest: Mapping[str, Any]
    form: _Form

    @property
    def has_ids(self) -> bool:
        """Whether its cells have ids by its format."""
        return (self.rest["nbformat"], self.rest.get("nbformat_minor", 0)) >= _WITH_IDS

    def find(self, name: str) -> int:
        """Find a cell by its id, or by its number as read; gives its place from 0. Raises `ToolError`."""
        by_id = [place for place, cell in enumerate(self.cells) if cell.data.get("id") == name]
        number = int(name) if name.isdecimal() and len(name) < 10 else 0
        by_number = [number - 1] if 0 < number <= len(self.cells) else []
        found = list(dict.fromkeys((*by_id, *by_number)))
        if len(found) > 1:
            raise ToolError(
                f"{name} names cells {' and '.join(str(place + 1) for place in found)}: one by its number, or several "
                "have it as their id. Nothing was changed; name the cell by its other name."
            )
        if not found:
            there = f"cells 1 to {len(self.cells)}" if self.cells else "no cells"
            raise ToolError(f"There is no cell {name}: it has {there}. Nothing was changed; read it again.")
        return found[0]

    def shown(self, *, numbered: bool = True) -> str:
        """Give the cells as `read_file` shows them, without the numbers of the lines, and perhaps of the cells."""
        return "".join(f"{piece}\n" for _, piece in self._pieces(numbered=numbered))

    def changed(self, changes: Mapping[int, CellChange]) -> str:
        """Give the text with some cells changed; a cell that becomes another has no outputs. Raises `ToolError`."""
        spans = [span for place, change in changes.items() for span in self._change(self.cells[place], change)]
        return self._with(spans)

    def inserted(self, at: int, source: str, cell_type: str) -> str:
        """Give the text with a new cell at this place, from 0."""
        data: dict[str, Any] = {"cell_type": cell_type, **(_RUN if cell_type == CODE else {}), "metadata": {}}
        if self.has_ids:
            data["id"] = self._new_id(at, source)
        data["source"] = _as_list(source)
        prefix = self._prefix_of_cells()
        new = self.form.value(dict(sorted(data.items())), prefix)
        if not self.cells:
            first = self.form.whole("[]", [new], self._indentation(self.array.start))
            return self._with([(self.array.value, self.array.end, first)])
        between = f"{self.form.newline}{prefix}" if self.form.newline else self.form.comma.removeprefix(",")
        if at == 0:
            start = self.cells[0].start
            return self._with([(start, start, f"{new},{between}")])
        end = self.cells[at - 1].end
        return self._with([(end, end, f",{between}{new}")])

    def without(self, place: int) -> str:
        """Give the text without a cell."""
        cells = self.cells
        if len(cells) == 1:
            return self._with([(self.array.value, self.array.end, "[]")])
        if place + 1 < len(cells):
            return self._with([(cells[place].start, cells[place + 1].start, "")])
        return self._with([(cells[place - 1].end, cells[place].end, "")])

    def places(self) -> Iterator[tuple[int, int]]:
        """Give the lines of each cell's source in `shown`, from 1: the first and the last."""
        line = 1
        for is_source, piece in self._pieces():
            last = line + piece.count("\n")
            if is_source:
                yield line, last
            line = last + 1

    def _pieces(self, *, numbered: bool = True) -> Iterator[tuple[bool, str]]:
        for number, cell in enumerate(self.cells, 1):
            yield False, cell_heading(number if numbered else 0, cell.data)
            yield True, cell.source
            yield from ((False, piece) for piece in cell_outputs(cell.data))

    def _change(self, cell: Cell, change: CellChange) -> Iterator[tuple[int, int, str]]:
        source = cell.source if change.source is None else change.source
        kind = cell.data["cell_type"] if change.cell_type is None else change.cell_type
        if (source, kind) == (cell.source, cell.data["cell_type"]):
            return
        values: dict[str, Any] = {"source": source if isinstance(cell.data["source"], str) else _as_list(source)}
        if kind == CODE:
            values |= _RUN
        if kind == cell.data["cell_type"]:
            for name, value in values.items():
                if name in cell.members and cell.data[name] != value:
                    member = cell.members[name]
                    yield member.value, member.end, self.form.value(value, self._indentation(member.start))
            return
        if kind == CODE and cell.data.get("attachments"):
            raise ToolError(
                "The cell has attachments, which a code cell cannot have. Nothing was changed. Add a new cell, and "
                "delete this one if its attachments may go."
            )
        yield cell.start, cell.end, self._another_type(cell, {**values, "cell_type": kind})

    def _another_type(self, cell: Cell, values: Mapping[str, Any]) -> str:
        prefix = self._indentation(cell.start)
        inner = f"{prefix}{self.form.indent}"
        gone = {"attachments", *_RUN} if values["cell_type"] == CODE else set(_RUN)
        kept = {name: self.text[at.value : at.end] for name, at in cell.members.items() if name not in gone}
        raw = {**kept, **{name: self.form.value(value, inner) for name, value in values.items()}}
        names = sorted(raw) if list(cell.members) == sorted(cell.members) else list(raw)
        return self.form.whole("{}", [f"{json.dumps(name)}{self.form.colon}{raw[name]}" for name in names], prefix)

    def _with(self, spans: Sequence[tuple[int, int, str]]) -> str:
        pieces, at = [], 0
        for start, end, new in sorted(spans):
            pieces += [self.text[at:start], new]
            at = end
        return "".join([*pieces, self.text[at:]])

    def _indentation(self, at: int) -> str:
        """Give what stands before a place in its line, where that is only space."""
        before = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return "" if before.strip(" \t") else before

    def _prefix_of_cells(self) -> str:
        return (
            self._indentation(self.cells[0].start)
            if self.cells
            else self._indentation(self.array.start) + self.form.indent
        )

    def _new_id(self, at: int, source: str) -> str:
        """Make an id that no cell has; the same each time, as what is agreed to must be what is done."""
        taken = {cell.data.get("id") for cell in self.cells}
        number = 0
        while True:
            made = hashlib.sha256(f"{number}:{at}:{source}:{self.text}".encode(errors="replace")).hexdigest()[:8]
            if made not in taken:
                return made
            number += 1


def read_notebook(text: str) -> Notebook | None:
    """Read the text of a notebook; None for what is none, or of another format than 4."""
    try:
        members, data, end = _members(text, _skip(text, 0))
        del data["cells"]
        if _skip(text, end) != len(text) or not _is_format_4(data):
            return None
        cells = tuple(_cells(text, members["cells"].value))
    except (ValueError, KeyError, IndexError, RecursionError):
        return None
    if not all(map(_is_cell, cells)):
        return None
    return Notebook(text=text, cells=cells, array=members["cells"], rest=data, form=_form_of(text, members))


def differ_as_shown(before: Notebook, after: Notebook) -> bool:
    """Whether all that differs between two notebooks is in what is shown of cells, but for runs that are dropped."""
    known = {shape for cell in before.cells for shape in (_unshown(cell.data), _unshown({**cell.data, **_RUN}))}
    known.add(_unshown({"metadata": {}}))
    return before.rest == after.rest and all(_unshown(cell.data) in known for cell in after.cells)


def _unshown(data: Mapping[str, Any]) -> str:
    parts = [data.get(name) or None for name in ("metadata", "attachments", "outputs", "execution_count")]
    return json.dumps(parts, sort_keys=True)


def _is_format_4(data: Mapping[str, Any]) -> bool:
    return data.get("nbformat") == 4 and isinstance(data.get("nbformat_minor", 0), int)


def _is_cell(cell: Cell) -> bool:
    data = cell.data
    source, outputs = data.get("source"), data.get("outputs", [])
    is_text = isinstance(source, str) or (isinstance(source, list) and all(isinstance(line, str) for line in source))
    is_run = isinstance(outputs, list) and all(isinstance(one, dict) for one in outputs)
    return is_text and is_run and data.get("cell_type") in CELL_TYPES


def _form_of(text: str, members: Mapping[str, Member]) -> _Form:
    found = _FIRST_KEY.match(text, _skip(text, 0))
    wide = text[members["nbformat"].value - 1] == " "
    ascii_only = text.isascii() and _ESCAPED.search(text) is not None
    colon = ": " if wide else ":"
    if found is None:
        return _Form("", "", colon, ", " if wide else ",", ascii_only)
    return _Form(found[1], found[2], colon, ",", ascii_only)


def _as_list(source: str) -> list[str]:
    pieces = source.split("\n")
    lines = [f"{piece}\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _members(text: str, at: int) -> tuple[dict[str, Member], dict[str, Any], int]:
    """Read the object that begins here: its members, its data, and where it ends. Raises `ValueError`, `IndexError`."""
    if text[at] != "{":
        raise ValueError(text[at])
    found: dict[str, Member] = {}
    data: dict[str, Any] = {}
    at = _skip(text, at + 1)
    while text[at] != "}":
        if found and text[at] == ",":
            at = _skip(text, at + 1)
        elif found:
            raise ValueError(text[at])
        start = at
        if text[at] != '"':
            raise ValueError(text[at])
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError(text[at])
        value = _skip(text, at + 1)
        data[name], end = _DECODER.raw_decode(text, value)
        found[name] = Member(start, value, end)
        at = _skip(text, end)
    return found, data, at + 1


def _cells(text: str, at: int) -> Iterator[Cell]:
    if text[at] != "[":
        raise ValueError(text[at])
    at = _skip(text, at + 1)
    while text[at] != "]":
        start = _skip(text, at + 1) if text[at] == "," else at
        members, data, end = _members(text, start)
        yield Cell(start, end, members, data)
        at = _skip(text, end)
