"""Notebooks: their cells, and changes that leave every other byte as it is."""

import json
import uuid
from typing import Any

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.protocol.errors import ToolError
from treadle.workspace.notebooks import CellChange, Notebook, differ_as_shown, read_notebook

LINES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\r"), max_size=12)
SOURCES = st.lists(LINES, max_size=4).map("\n".join)
TYPES = st.sampled_from(["code", "markdown", "raw"])
STREAM = {"output_type": "stream", "name": "stdout", "text": ["1\n", '"cells": [{\n']}
PICTURE = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "aGk=", "text/plain": "<Figure>"}}


@st.composite
def cells(draw: st.DrawFn, *, ids: bool) -> dict[str, Any]:
    kind, source = draw(TYPES), draw(SOURCES)
    cell: dict[str, Any] = {"cell_type": kind, "metadata": draw(st.sampled_from([{}, {"tags": ["a", "]"]}]))}
    cell["source"] = source if draw(st.booleans()) else source.splitlines(keepends=True)
    if kind == "code":
        cell["execution_count"] = draw(st.none() | st.integers(1, 99))
        cell["outputs"] = draw(st.lists(st.sampled_from([STREAM, PICTURE]), max_size=2))
    elif draw(st.booleans()):
        cell["attachments"] = {"a.png": {"image/png": "aGk="}}
    if ids:
        cell["id"] = uuid.UUID(int=draw(st.integers(0, 2**64))).hex[-12:]
    return dict(sorted(cell.items())) if draw(st.booleans()) else cell


@st.composite
def notebooks(draw: st.DrawFn) -> str:
    minor = draw(st.sampled_from([2, 4, 5]))
    own = draw(st.lists(cells(ids=minor == 5), max_size=4, unique_by=(lambda cell: cell.get("id", id(cell)))))
    data: dict[str, Any] = {"cells": own, "metadata": {"é": 1}, "nbformat": 4, "nbformat_minor": minor}
    if draw(st.booleans()):
        data = dict(reversed(data.items()))
    indent = draw(st.sampled_from([None, 1, 2, "\t", 0]))
    narrow = draw(st.booleans())
    text = json.dumps(
        data,
        indent=indent,
        ensure_ascii=draw(st.booleans()),
        separators=("," if narrow or indent is not None else ", ", ":" if narrow else ": "),
    )
    text = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    return text + draw(st.sampled_from(["", "\n"]))


def read(text: str) -> Notebook:
    found = read_notebook(text)
    assert found is not None
    return found


def check(text: str) -> dict[str, Any]:
    """The data of a notebook, which is a valid one."""
    data: dict[str, Any] = json.loads(text)
    nbformat.validate(nbformat.from_dict(data))  # type: ignore[no-untyped-call]
    return data


def raw_cells(notebook: Notebook) -> list[str]:
    return [notebook.text[cell.start : cell.end] for cell in notebook.cells]


def around(notebook: Notebook) -> tuple[str, str]:
    return notebook.text[: notebook.array.value], notebook.text[notebook.array.end :]


FEW = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(notebooks(), st.data())
def test_a_replaced_cell_is_all_that_changes(text: str, data: st.DataObject) -> None:
    before = read(text)
    if not before.cells:
        return
    place = data.draw(st.integers(0, len(before.cells) - 1))
    change = CellChange(source=data.draw(st.none() | SOURCES), cell_type=data.draw(st.none() | TYPES))
    old = before.cells[place].data
    wanted_type = change.cell_type or old["cell_type"]
    wanted = before.cells[place].source if change.source is None else change.source
    same = (wanted_type, wanted) == (old["cell_type"], before.cells[place].source)
    if "attachments" in old and wanted_type == "code" and not same:
        with pytest.raises(ToolError, match="attachments"):
            before.changed({place: change})
        return
    after = read(before.changed({place: change}))
    check(after.text)
    assert around(after) == around(before)
    others = [raw for at, raw in enumerate(raw_cells(before)) if at != place]
    assert [raw for at, raw in enumerate(raw_cells(after)) if at != place] == others
    new = after.cells[place].data
    assert (new["cell_type"], after.cells[place].source) == (wanted_type, wanted)
    assert (new["metadata"], new.get("id")) == (old["metadata"], old.get("id"))
    if same:
        assert after.text == text
    elif wanted_type == "code":
        assert (new["outputs"], new["execution_count"]) == ([], None)
    assert differ_as_shown(before, after)
    assert type(new["source"]) is type(old["source"])


@FEW
@given(notebooks(), SOURCES, TYPES, st.data())
def test_a_cell_that_is_inserted_and_deleted_again_leaves_no_trace(
    text: str, source: str, kind: str, data: st.DataObject
) -> None:
    before = read(text)
    place = data.draw(st.integers(0, len(before.cells)))
    after = read(before.inserted(place, source, kind))
    found = check(after.text)["cells"]
    assert around(after) == around(before)
    rest = raw_cells(after)
    del rest[place]
    assert rest == raw_cells(before)
    assert (after.cells[place].source, found[place]["cell_type"]) == (source, kind)
    assert ("id" in found[place]) == before.has_ids
    assert before.inserted(place, source, kind) == after.text, "what is agreed to is what is done"
    assert differ_as_shown(before, after)
    back = after.without(place)
    assert back == text or not before.cells


@FEW
@given(notebooks(), st.data())
def test_a_deleted_cell_is_all_that_goes(text: str, data: st.DataObject) -> None:
    before = read(text)
    if not before.cells:
        return
    place = data.draw(st.integers(0, len(before.cells) - 1))
    after = read(before.without(place))
    check(after.text)
    rest = raw_cells(before)
    del rest[place]
    assert (raw_cells(after), around(after)) == (rest, around(before))


@FEW
@given(notebooks())
def test_the_places_of_the_sources_are_those_in_what_is_shown(text: str) -> None:
    notebook = read(text)
    lines = notebook.shown().split("\n")
    found = ["\n".join(lines[first - 1 : last]) for first, last in notebook.places()]
    assert found == [cell.source for cell in notebook.cells]


def notebook_of(*names: str) -> Notebook:
    own = [{"cell_type": "raw", "id": name, "metadata": {}, "source": []} for name in names]
    return read(json.dumps({"cells": own, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def test_a_cell_is_found_by_its_id_and_by_its_number() -> None:
    notebook = notebook_of("a", "b", "03", "3")
    assert [notebook.find(name) for name in ("a", "b", "1", "03", "4")] == [0, 1, 0, 2, 3]
    for name in ("c", "0", "5", "-1", "²"):
        with pytest.raises(ToolError, match=f"There is no cell {name}"):
            notebook.find(name)


def test_a_name_that_may_be_two_cells_is_refused() -> None:
    with pytest.raises(ToolError, match="3 names cells"):
        notebook_of("a", "3", "c").find("3")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"nbformat": 3, "worksheets": []}',
        '{"cells": {}, "nbformat": 4}',
        '{"cells": [1], "nbformat": 4}',
        '{"cells": [{"cell_type": "code"}], "nbformat": 4}',
        '{"cells": [{"cell_type": "code", "source": [1]}], "nbformat": 4}',
        '{"cells": [{"cell_type": "odd", "source": ""}], "nbformat": 4}',
        '{"cells": [], "nbformat": 4} x',
        '{"cells": [,{"cell_type": "raw", "source": ""}], "nbformat": 4}',
        '{"cells": ' + "[" * 100_000,
    ],
)
def test_what_is_no_notebook_of_format_4_has_no_cells(text: str) -> None:
    assert read_notebook(text) is None


def test_a_change_that_is_not_shown_is_noticed() -> None:
    before = notebook_of("a", "b")
    hidden = read(before.text.replace('"metadata": {}, "source"', '"metadata": {"x": 1}, "source"', 1))
    of_all = read(before.text.replace('"metadata": {}, "nbformat"', '"metadata": {"x": 1}, "nbformat"'))
    assert not differ_as_shown(before, hidden)
    assert not differ_as_shown(before, of_all)
    assert differ_as_shown(hidden, read(hidden.without(0)))
