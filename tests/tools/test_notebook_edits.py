"""Editing notebooks: by cell, and by the tools that edit texts."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tools.calls import call, prepare, text
from tests.workspace.test_notebooks import LINES, notebooks

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import EditReport, WritePath
from treadle.tools.edit_apply import apply_blocks
from treadle.workspace.notebooks import differ_as_shown, read_notebook
from treadle.workspace.workspace import Workspace

NOTEBOOK: dict[str, Any] = {
    "cells": [
        {"cell_type": "markdown", "id": "intro", "metadata": {}, "source": ["# Sums\n", "of numbers"]},
        {
            "cell_type": "code",
            "execution_count": 3,
            "id": "sum",
            "metadata": {"tags": ["a"]},
            "outputs": [{"output_type": "stream", "name": "stdout", "text": ["3\n"]}],
            "source": ["x = 1 + 2\n", 'print("x")'],
        },
        {"cell_type": "code", "execution_count": 4, "id": "last", "metadata": {}, "outputs": [], "source": ["y = x"]},
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture
def notebook(workspace: Workspace) -> Path:
    file = Path(workspace.root, "a.ipynb")
    file.write_text(json.dumps(NOTEBOOK, indent=1) + "\n")
    return file


def sources(file: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(file.read_text())["cells"]]


def blocks(old: str, new: str) -> str:
    return f"------- SEARCH\n{old}\n=======\n{new}\n+++++++ REPLACE"


async def test_a_notebook_is_read_with_the_names_of_its_cells(workspace: Workspace, notebook: Path) -> None:
    shown = await text(workspace, "read_file", path="a.ipynb")
    assert "1 | # Cell 1 (markdown, id intro)\n2 | # Sums\n" in shown
    assert "4 | # Cell 2 (code, id sum)\n" in shown


async def test_a_replaced_cell_is_shown_as_it_is_read(workspace: Workspace, notebook: Path) -> None:
    before = notebook.read_text()
    prepared = await prepare(
        workspace, "edit_notebook", path="a.ipynb", action="replace", cell="sum", content="x = 2\n"
    )
    assert prepared.preview.title == "Edit a.ipynb (+1 -5)"
    assert prepared.preview.is_diff
    assert prepared.preview.text == (
        "--- a/a.ipynb\n+++ b/a.ipynb\n@@ -2,10 +2,6 @@\n # Sums\n of numbers\n # Cell 2 (code, id sum)\n"
        '-x = 1 + 2\n-print("x")\n-# Output\n-3\n-\n+x = 2\n # Cell 3 (code, id last)\n y = x\n'
    )
    result = await prepared.run(lambda _: None)
    assert result.content[0].text == (  # type: ignore[union-attr]
        "Saved a.ipynb (+1 -5 lines). The changed places now read:\n...\n2 | # Sums\n3 | of numbers\n"
        "4 | # Cell 2 (code, id sum)\n5 | x = 2\n6 | # Cell 3 (code, id last)\n7 | y = x"
    )
    assert result.edits == (EditReport(path="a.ipynb", format="notebook"),)
    expected = before.replace('"x = 1 + 2\\n",\n    "print(\\"x\\")"', '"x = 2"').replace(": 3,", ": null,")
    start, end = expected.index('"outputs": [\n'), expected.index(',\n   "source": [\n    "x = 2"')
    assert notebook.read_text() == f'{expected[:start]}"outputs": []{expected[end:]}'


async def test_cells_come_and_go_where_they_are_wanted(workspace: Workspace, notebook: Path) -> None:
    edit = {"path": "a.ipynb"}
    await call(workspace, "edit_notebook", **edit, action="insert", cell="0", content="first", cell_type="markdown")
    await call(workspace, "edit_notebook", **edit, action="insert", cell="sum", content="between\n")
    await call(workspace, "edit_notebook", **edit, action="delete", cell="2")
    await call(workspace, "edit_notebook", **edit, action="replace", cell="1", cell_type="raw")
    assert sources(notebook) == ["first", 'x = 1 + 2\nprint("x")', "between", "y = x"]
    found = json.loads(notebook.read_text())["cells"]
    assert [cell["cell_type"] for cell in found] == ["raw", "code", "code", "code"]
    assert [cell.get("execution_count", "-") for cell in found] == ["-", 3, None, 4]
    assert len({cell["id"] for cell in found}) == 4


async def test_a_diff_does_not_show_that_the_numbers_of_cells_change(workspace: Workspace, notebook: Path) -> None:
    prepared = await prepare(workspace, "edit_notebook", path="a.ipynb", action="insert", cell="0", content="new")
    assert prepared.preview.title == "Edit a.ipynb (+2 -0)"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"action": "insert", "cell": "1"}, "insert needs `content`"),
        ({"action": "replace", "cell": "1"}, "replace needs `content`, `cell_type` or both"),
        ({"action": "delete", "cell": "1", "content": "x"}, "delete takes no `content`"),
    ],
)
async def test_arguments_that_do_not_fit_together_are_refused(
    workspace: Workspace, notebook: Path, arguments: dict[str, str], why: str
) -> None:
    with pytest.raises(ToolError, match=why) as refused:
        await prepare(workspace, "edit_notebook", path="a.ipynb", **arguments)
    assert refused.value.invalid


async def test_what_cannot_be_edited_by_cell_is_refused_with_the_way_on(workspace: Workspace, notebook: Path) -> None:
    Path(workspace.root, "old.ipynb").write_text('{"nbformat": 3, "worksheets": []}')
    for arguments, why in (
        ({"path": "b.ipynb", "cell": "1"}, "give write_to_file its JSON"),
        ({"path": "old.ipynb", "cell": "1"}, "convert it with `jupyter nbconvert"),
        ({"path": "a.ipynb", "cell": "9"}, "it has cells 1 to 3"),
        ({"path": "a.ipynb", "cell": "last", "content": "y = x\n"}, "Nothing needs to change"),
    ):
        with pytest.raises(ToolError, match=why):
            await call(workspace, "edit_notebook", action="replace", **{"content": "", **arguments})


async def test_a_notebook_that_somebody_changed_must_be_read_again(workspace: Workspace, notebook: Path) -> None:
    edit = {"path": "a.ipynb", "action": "replace", "cell": "3", "content": "z"}
    await call(workspace, "read_file", path="a.ipynb")
    notebook.write_text(notebook.read_text().replace("y = x", "y = 0"))
    with pytest.raises(ToolError, match="changed by someone else"):
        await call(workspace, "edit_notebook", **edit)
    await call(workspace, "read_file", path="a.ipynb")
    await call(workspace, "edit_notebook", **edit)
    assert sources(notebook)[2] == "z"


async def test_the_text_of_a_cell_is_edited_in_the_cell(workspace: Workspace, notebook: Path) -> None:
    diff = blocks('x = 1 + 2\nprint("x")', 'x = "three"\nprint(x)') + "\n" + blocks("# Sums", "# Totals")
    prepared = await prepare(workspace, "replace_in_file", path="a.ipynb", diff=diff)
    assert '+x = "three"\n' in prepared.preview.text
    result = await prepared.run(lambda _: None)
    assert result.edits[0].format == "search_replace"
    assert sources(notebook) == ["# Totals\nof numbers", 'x = "three"\nprint(x)', "y = x"]
    found = json.loads(notebook.read_text())["cells"]
    assert [(cell.get("outputs"), cell.get("execution_count")) for cell in found] == [
        (None, None),
        ([], None),
        ([], 4),
    ]


async def test_a_patch_edits_cells_too(workspace: Workspace, notebook: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: a.ipynb\n@@\n-y = x\n+y = x * 2\n+y\n*** End Patch"
    await call(workspace, "apply_patch", patch=patch)
    assert sources(notebook)[1:] == ['x = 1 + 2\nprint("x")', "y = x * 2\ny"]


async def test_a_text_that_two_cells_have_is_ambiguous(workspace: Workspace, notebook: Path) -> None:
    await call(workspace, "edit_notebook", path="a.ipynb", action="insert", cell="3", content="y = x")
    with pytest.raises(ToolError, match=r"(?s)\[ambiguous\].*edit_notebook changes a cell of it by its number or id"):
        await call(workspace, "replace_in_file", path="a.ipynb", diff=blocks("y = x", "y = 0"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Output\n3", "# Output\n4"),
        ("# Cell 3 (code, id last)", "# Cell 3 (code, id first)"),
        ('print("x")\n# Output\n3', 'print("y")'),
    ],
)
async def test_headings_and_outputs_are_no_text_to_edit(
    workspace: Workspace, notebook: Path, old: str, new: str
) -> None:
    before = notebook.read_text()
    with pytest.raises(ToolError, match="more than the text of cells"):
        await call(workspace, "replace_in_file", path="a.ipynb", diff=blocks(old, new))
    assert notebook.read_text() == before


async def test_what_is_only_in_the_json_is_edited_there_and_shown_as_json(workspace: Workspace, notebook: Path) -> None:
    old, new = ' "metadata": {},\n "nbformat": 4,', ' "metadata": {"authors": []},\n "nbformat": 4,'
    prepared = await prepare(workspace, "replace_in_file", path="a.ipynb", diff=blocks(old, new))
    assert '+ "metadata": {"authors": []},\n' in prepared.preview.text
    with pytest.raises(ToolError, match="would be no notebook any more"):
        await call(workspace, "replace_in_file", path="a.ipynb", diff=blocks(old, new.replace("[]", "[")))


async def test_a_whole_notebook_is_json(workspace: Workspace, notebook: Path) -> None:
    with pytest.raises(ToolError, match="not the JSON of a notebook"):
        await call(workspace, "write_to_file", path="a.ipynb", content="print(1)\n")
    with pytest.raises(ToolError, match="not the JSON of a notebook"):
        await call(workspace, "write_to_file", path="new.ipynb", content="print(1)\n")
    patch = "*** Begin Patch\n*** Add File: new.ipynb\n+print(1)\n*** End Patch"
    with pytest.raises(ToolError, match="not the JSON of a notebook"):
        await call(workspace, "apply_patch", patch=patch)
    empty = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'
    await call(workspace, "write_to_file", path="new.ipynb", content=empty)
    await call(workspace, "edit_notebook", path="new.ipynb", action="insert", cell="0", content="x")
    assert sources(Path(workspace.root, "new.ipynb")) == ["x"]


async def test_a_broken_notebook_is_edited_as_text(workspace: Workspace, notebook: Path) -> None:
    notebook.write_text('{"cells": [],\n "nbformat": 4,}\n')
    await call(workspace, "replace_in_file", path="a.ipynb", diff=blocks(' "nbformat": 4,}', ' "nbformat": 4}'))
    assert json.loads(notebook.read_text()) == {"cells": [], "nbformat": 4}


async def test_the_hidden_part_of_a_change_is_not_left_out_of_what_is_shown(
    workspace: Workspace, notebook: Path
) -> None:
    changed = json.loads(notebook.read_text())
    changed["cells"][2]["source"] = ["y = 0"]
    changed["cells"][2]["metadata"] = {"collapsed": True}
    await call(workspace, "read_file", path="a.ipynb")
    content = json.dumps(changed, indent=1) + "\n"
    prepared = await prepare(workspace, "write_to_file", path="a.ipynb", content=content)
    assert any(isinstance(access, WritePath) for access in prepared.accesses)
    assert '+    "collapsed": true\n' in prepared.preview.text


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(notebooks(), LINES, st.data())
def test_an_edit_of_a_line_changes_its_cell_alone_or_nothing(written: str, new: str, data: st.DataObject) -> None:
    before = read_notebook(written)
    assert before is not None
    lines = [(at, line) for at, cell in enumerate(before.cells) for line in cell.source.split("\n") if line.strip()]
    if not lines:
        return
    place, old = data.draw(st.sampled_from(lines))
    try:
        changed, report = apply_blocks(written, blocks(old, new), "a.ipynb")
    except ToolError:
        return
    assert report.code == "ok"
    after = read_notebook(changed)
    assert after is not None
    assert differ_as_shown(before, after)
    for at, (one, other) in enumerate(zip(before.cells, after.cells, strict=True)):
        if at != place:
            assert changed[other.start : other.end] == written[one.start : one.end]
    assert changed[: after.array.value] == written[: before.array.value]
    assert changed[after.array.end :] == written[before.array.end :]
    wanted = before.cells[place].source.split("\n")
    wanted[wanted.index(old)] = new
    wanted = "\n".join(wanted).split("\n")
    kept = [line for line in wanted if line] if not new else wanted
    assert [line for line in after.cells[place].source.split("\n") if line or new] == kept
