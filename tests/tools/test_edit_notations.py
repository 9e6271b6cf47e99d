"""Any notation of an edit at any edit tool: the same file as by its own, or refused with the file as it was."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.calls import call, prepare, run

from treadle.editing import EditError, parse_operations
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import WritePath
from treadle.workspace.files.text_files import sha256
from treadle.workspace.workspace import Workspace

OLD = "one\ntwo\nthree\n"
BLOCKS = "------- SEARCH\ntwo\n=======\n2\n+++++++ REPLACE"
HUNK = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
UNIFIED = f"--- a/sub/a.py\n+++ b/sub/a.py\n{HUNK}\n"
V4A = f"*** Begin Patch\n*** Update File: sub/a.py\n{HUNK}\n*** End Patch"
V4A_BLOCKS = f"*** Begin Patch\n*** Update File: sub/a.py\n{BLOCKS}\n*** End Patch"
NEW = "------- SEARCH\n=======\none\ntwo\n+++++++ REPLACE"
EVERY = [
    ("replace_in_file", {"path": "sub/a.py", "diff": BLOCKS}, "search_replace"),
    ("replace_in_file", {"path": "sub/a.py", "diff": V4A}, "apply_patch"),
    ("replace_in_file", {"path": "sub/a.py", "diff": V4A_BLOCKS}, "search_replace"),
    ("replace_in_file", {"path": "sub/a.py", "diff": UNIFIED}, "unified"),
    ("replace_in_file", {"path": "sub/a.py", "diff": f"```diff\n{UNIFIED}```"}, "unified"),
    ("replace_in_file", {"path": "sub/a.py", "diff": HUNK}, "unified"),
    ("apply_patch", {"patch": V4A}, "apply_patch"),
    ("apply_patch", {"patch": V4A_BLOCKS}, "search_replace"),
    ("apply_patch", {"patch": UNIFIED}, "unified"),
    ("apply_patch", {"patch": f"diff --git a/sub/a.py b/sub/a.py\nindex 1..2 100644\n{UNIFIED}"}, "unified"),
    ("apply_patch", {"patch": f"sub/a.py\n{BLOCKS}"}, "search_replace"),
    ("apply_patch", {"patch": f"sub/a.py\n```python\n{BLOCKS}\n```"}, "search_replace"),
]


def _file(workspace: Workspace, text: str | None = OLD) -> Path:
    path = Path(workspace.root, "sub/a.py")
    path.parent.mkdir()
    if text is not None:
        path.write_text(text)
    return path


@pytest.mark.sample(5)
@pytest.mark.parametrize(("tool", "arguments", "form"), EVERY)
async def test_each_notation_is_read_by_each_edit_tool(
    workspace: Workspace, tool: str, arguments: dict[str, str], form: str
) -> None:
    path = _file(workspace)
    prepared = await prepare(workspace, tool, **arguments)
    assert [one.path for one in prepared.accesses if isinstance(one, WritePath)] == [str(path)]
    assert "-two\n+2\n" in prepared.preview.text
    result = await run(prepared)
    assert path.read_text() == "one\n2\nthree\n"
    assert [(one.path, one.format, one.code) for one in result.edits] == [("sub/a.py", form, "ok")]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (
            "replace_in_file",
            {"path": "sub/a.py", "diff": V4A.replace("sub/a.py", "b.py")},
            "something else than change",
        ),
        (
            "replace_in_file",
            {"path": "sub/a.py", "diff": UNIFIED.replace("sub/a", "b/sub/a")},
            "something else than ch",
        ),
        (
            "replace_in_file",
            {"path": "sub/a.py", "diff": UNIFIED + UNIFIED.replace("sub/a", "b")},
            "one file with each",
        ),
        ("replace_in_file", {"path": "sub/a.py", "diff": V4A.replace("Update", "Delete")}, "belongs to no file"),
        (
            "replace_in_file",
            {"path": "sub/a.py", "diff": UNIFIED, "replace_all": True},
            "No SEARCH/REPLACE block found",
        ),
        ("replace_in_file", {"path": "sub/a.py", "diff": "change two to 2"}, "No SEARCH/REPLACE block found"),
        ("replace_in_file", {"path": "sub/a.py", "diff": UNIFIED.replace("-two", "-zwei")}, "not_found"),
        ("replace_in_file", {"path": "sub/a.py", "diff": NEW}, "The search text is empty, but the file is not."),
        ("apply_patch", {"patch": BLOCKS}, "No patch found"),
        ("apply_patch", {"patch": HUNK}, "No patch found"),
        ("apply_patch", {"patch": f"sub/a.py\n{BLOCKS}\n\nand then\n\n{BLOCKS}"}, "No patch found"),
        ("apply_patch", {"patch": V4A_BLOCKS.replace("=======\n", "")}, "not in two parts"),
    ],
)
async def test_what_could_be_meant_for_another_file_is_refused(
    workspace: Workspace, tool: str, arguments: dict[str, str], said: str
) -> None:
    path = _file(workspace)
    with pytest.raises(ToolError, match=said):
        await call(workspace, tool, **arguments)
    assert path.read_text() == OLD


async def test_an_edit_that_searches_for_nothing_makes_a_file_where_none_is(workspace: Workspace) -> None:
    path = _file(workspace, None)
    prepared = await prepare(workspace, "replace_in_file", path="sub/a.py", diff=NEW)
    assert prepared.preview.title == "Create sub/a.py (+2 -0)"
    assert prepared.accesses == (WritePath(path=str(path), before="", after=sha256(b"one\ntwo\n")),)
    await run(prepared)
    assert path.read_text() == "one\ntwo\n"
    with pytest.raises(ToolError, match="The search text is empty, but the file is not"):
        await call(workspace, "replace_in_file", path="sub/a.py", diff=NEW)


async def test_an_edit_that_searches_for_nothing_fills_an_empty_file(workspace: Workspace) -> None:
    path = _file(workspace, "")
    await call(workspace, "replace_in_file", path="sub/a.py", diff=NEW)
    assert path.read_text() == "one\ntwo\n"


async def test_other_edits_of_a_file_that_is_not_there_make_none(workspace: Workspace) -> None:
    path = _file(workspace, None)
    for diff in (BLOCKS, f"{NEW}\n{NEW}", V4A):
        with pytest.raises(ToolError, match="To create a file use write_to_file"):
            await call(workspace, "replace_in_file", path="sub/a.py", diff=diff)
    assert not path.exists()


@settings(max_examples=80)
@given(
    st.lists(
        st.sampled_from(
            [*BLOCKS.split("\n"), *UNIFIED.split("\n"), *V4A.split("\n"), "*** Add File: b", "--- /dev/null", "```", ""]
        ),
        max_size=14,
    )
)
def test_no_patch_raises_and_each_file_of_it_has_a_name(lines: list[str]) -> None:
    operations = parse_operations("\n".join(lines))
    assert isinstance(operations, EditError) or all(one.path for one in operations)
