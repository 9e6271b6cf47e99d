"""write_to_file: what a model sends in place of a file's text never becomes the file."""

from pathlib import Path

import pytest
from tests.tools.calls import call, prepare, text

from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Text
from treadle.protocol.tools import Outcome, ReadPath
from treadle.workspace.workspace import Workspace

CODE = "import os\n\n\ndef load(path):\n    return open(path).read()\n\n\ndef save(path, text):\n    open(path, 'w')\n"
BLOCK = "------- SEARCH\nimport os\n=======\nimport io\nimport os\n+++++++ REPLACE\n"
EDITED = CODE.replace("import os\n", "import io\nimport os\n")
GUIDE = (
    "# Edits\n\nWrite blocks so:\n\n```\n{}```\n\nEach is applied once.\nThe rest stays.\nAsk where it is not clear.\n"
)


async def written(workspace: Workspace, name: str, before: str | None, content: str) -> str:
    path = Path(workspace.root, name)
    if before is not None:
        path.write_text(before)
        await call(workspace, "read_file", path=name)
    await call(workspace, "write_to_file", path=name, content=content)
    return path.read_text()


@pytest.mark.parametrize(
    "content",
    [BLOCK, f"```\n{BLOCK}```\n", f"app.py\n{BLOCK}", f"Here is the change:\n\n{BLOCK}\nThat is all.\n"],
)
async def test_blocks_instead_of_a_text_are_applied_as_an_edit(workspace: Workspace, content: str) -> None:
    assert await written(workspace, "app.py", CODE, content) == EDITED
    said = await text(workspace, "write_to_file", path="app.py", content=BLOCK.replace("import io", "import re"))
    assert "The changed places now read:" in said


@pytest.mark.parametrize(
    ("name", "before", "content", "said"),
    [
        ("app.py", CODE, BLOCK.replace("import os\n", "import sys\n", 1), "nothing was changed in app.py"),
        ("app.py", CODE, BLOCK.removesuffix("+++++++ REPLACE\n"), "Refused [truncated]: nothing was changed"),
        ("app.py", CODE, f"I think\nthat the\nimport is\nmissing.\n{BLOCK}", "blocks that match app.py"),
        ("app.py", CODE, "*** Begin Patch\n*** Update File: app.py\n@@\n-import os\n*** End Patch", "is a patch"),
        ("app.py", CODE, "--- a/app.py\n+++ b/app.py\n@@ -1 +0,0 @@\n-import os\n", "is a patch"),
    ],
)  # fmt: skip
async def test_an_edit_that_does_not_fit_is_never_written(
    workspace: Workspace, name: str, before: str, content: str, said: str
) -> None:
    with pytest.raises(ToolError) as caught:
        await written(workspace, name, before, content)
    assert said in caught.value.text
    assert Path(workspace.root, name).read_text() == before


async def test_blocks_for_a_file_that_does_not_exist_are_refused(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=r"only SEARCH/REPLACE blocks, and new\.py has no text.*write the whole text"):
        await written(workspace, "new.py", None, BLOCK)
    assert not Path(workspace.root, "new.py").exists()


async def test_a_block_without_search_text_creates_the_file(workspace: Workspace) -> None:
    content = "new.py\n<<<<<<< SEARCH\n=======\na = 1\n>>>>>>> REPLACE\n"
    assert await written(workspace, "new.py", None, content) == "a = 1\n"


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "before", "content"),
    [
        ("guide.md", None, GUIDE.format(BLOCK)),
        ("guide.md", GUIDE.format("TODO\n"), GUIDE.format(BLOCK)),
        ("guide.md", "# Edits\n", "# Edits\n\n" + BLOCK),
        ("case.txt", BLOCK, BLOCK.replace("os", "re")),
        ("merge.md", "# Merge\n", "# Merge\n\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> branch\n"),
        ("a.patch", "x\n", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"),
        ("guide.md", "# A\n", "```python\na = 1\n```\n"),
        ("guide.md", "```\na\n```\n", "```python\na = 1\n```\n"),
        ("data", "```\na\n```\n", "```python\na = 1\n```\n"),
        ("README", None, "```\na\n```\n"),
        ("a.py", "a = 1\n", "```python\na = 1\n```\nand\n```python\nb = 2\n```\n"),
    ],
)
async def test_what_is_meant_as_text_is_written_as_it_is(
    workspace: Workspace, name: str, before: str | None, content: str
) -> None:
    assert await written(workspace, name, before, content) == content


@pytest.mark.parametrize("before", [None, "b = 1\n"])
@pytest.mark.parametrize(
    "inner", ["a = 1\n", 'def f():\n    """F.\n\n    ```\n    f()\n    ```\n    """\n', "a = '\x0c\u2028'\n"]
)
async def test_a_fence_around_code_is_taken_off(workspace: Workspace, before: str | None, inner: str) -> None:
    assert await written(workspace, "a.py", before, f"```python\n{inner}```\n") == inner


@pytest.mark.parametrize(
    "placeholder",
    [
        "# rest unchanged",
        "// ... existing code ...",
        "<!-- unchanged -->",
        "/* ... */",
        "...",
        "    # ...",
        "# Rest of the file",
    ],
)
async def test_a_placeholder_never_replaces_an_unread_file(workspace: Workspace, placeholder: str) -> None:
    with pytest.raises(ToolError, match="stands for omitted lines, which would be lost"):
        await written(workspace, "app.py", CODE, f"import re\n{placeholder}\n")
    assert Path(workspace.root, "app.py").read_text() == CODE
    assert await written(workspace, "app.py", CODE + placeholder + "\n", f"import re\n{placeholder}\n") != CODE


async def test_a_file_that_was_not_read_is_shown_before_it_is_replaced(workspace: Workspace) -> None:
    path = Path(workspace.root, "app.py")
    path.write_text(CODE)
    prepared = await prepare(workspace, "write_to_file", path="app.py", content="import re\n")
    assert prepared.accesses == (ReadPath(path=str(path)),)
    first = await prepared.run(lambda _: None)
    shown = "".join(block.text for block in first.content if isinstance(block, Text))
    assert shown.startswith("Nothing was changed: app.py exists, and you have not read it. Send the same call again if")
    assert "1 | import os\n" in shown
    assert (first.outcome, first.changes, first.edits, path.read_text()) == (Outcome.FAILED, (), (), CODE)
    second = await call(workspace, "write_to_file", path="app.py", content="import re\n")
    assert (second.outcome, path.read_text()) == (Outcome.OK, "import re\n")


async def test_what_changed_after_it_was_shown_is_not_replaced(workspace: Workspace) -> None:
    path = Path(workspace.root, "app.py")
    path.write_text(CODE)
    await call(workspace, "write_to_file", path="app.py", content="import re\n")
    path.write_text("theirs = 1\n")
    with pytest.raises(ToolError, match="changed by someone else"):
        await call(workspace, "write_to_file", path="app.py", content="import re\n")


async def test_where_nothing_is_lost_nothing_is_shown_first(workspace: Workspace) -> None:
    Path(workspace.root, "empty.py").touch()
    Path(workspace.root, "app.py").write_text(CODE)
    for name, content in (("empty.py", "a = 1\n"), ("new.py", "a = 1\n"), ("new.py", "a = 2\n"), ("app.py", BLOCK)):
        assert (await call(workspace, "write_to_file", path=name, content=content)).outcome is Outcome.OK, name


async def test_a_body_of_dots_below_a_known_function_is_no_whole_text(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="stands for omitted lines"):
        await written(workspace, "app.py", CODE, CODE.replace("    return open(path).read()", "    ..."))
    stub = CODE + "\n\ndef stub() -> int:\n    ...\n"
    assert await written(workspace, "app.py", CODE, stub) == stub
