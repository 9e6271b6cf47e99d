"""How edits are written: block markers, patches over several files, diffs."""

import pytest

from treadle.editing import (
    AddFile,
    DeleteFile,
    EditBlock,
    EditError,
    EditFormat,
    EditResult,
    ErrorCode,
    Section,
    UpdateFile,
    apply_edit,
    parse_blocks,
    parse_patch,
    parse_unified,
)

PLAIN = Section((EditBlock(("old line",), ("new line",)),))


@pytest.mark.parametrize(
    ("start", "separator", "end"),
    [
        ("------- SEARCH", "=======", "+++++++ REPLACE"),
        ("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"),
        ("--- SEARCH", "===", "+++ REPLACE"),
        ("-------- SEARCH", "========", "++++++++ REPLACE"),
        ("<<<<<<< SEARCH>", "=======", ">>>>>>> REPLACE>"),
        ("------- SEARCH  ", "=======  ", "+++++++ REPLACE  "),
        ("  ------- SEARCH", "  =======", "  +++++++ REPLACE"),
        ("<<<<<<< ORIGINAL", "=======", ">>>>>>> UPDATED"),
        ("------- SEARCH", "=======", ">>>>>>> REPLACE"),
    ],
)
def test_markers_are_read_as_models_write_them(start: str, separator: str, end: str) -> None:
    assert parse_blocks(f"Here it is:\n{start}\nold line\n{separator}\nnew line\n{end}\n") == (PLAIN,)


def test_a_path_above_a_fenced_block_is_kept() -> None:
    text = "src/app.py\n```python\n<<<<<<< SEARCH\nold line\n=======\nnew line\n>>>>>>> REPLACE\n```\n"

    assert parse_blocks(text) == (Section(PLAIN.readings, "src/app.py"),)


def test_a_block_ended_by_its_fence_is_whole() -> None:
    text = "```python\n<<<<<<< SEARCH\nold line\n=======\nnew line\n```\n"

    assert parse_blocks(text) == (PLAIN,)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (ErrorCode.NO_MARKER, "I changed the file."),
        (ErrorCode.TRUNCATED, "------- SEARCH\nold line\n"),
        (ErrorCode.TRUNCATED, "------- SEARCH\nold line\n=======\n"),
        (ErrorCode.TRUNCATED, "------- SEARCH\nold line\n=======\nnew li"),
        (ErrorCode.MALFORMED, "------- SEARCH\nold line\n+++++++ REPLACE\n"),
        (ErrorCode.MALFORMED, "------- SEARCH\nold line\n=======\nnew\n------- SEARCH\n"),
        (ErrorCode.MALFORMED, "+++++++ REPLACE\n"),
    ],
)
def test_cut_and_broken_blocks_are_refused(code: ErrorCode, text: str) -> None:
    result = parse_blocks(text)

    assert isinstance(result, EditError)
    assert result.code is code


def test_content_that_looks_like_a_separator_is_told_by_the_file() -> None:
    pre = "Title\n=======\nfirst\n"
    text = "------- SEARCH\nTitle\n=======\nfirst\n=======\nTitle\n=======\nsecond\n+++++++ REPLACE\n"

    result = apply_edit(EditFormat.SEARCH_REPLACE, pre, text)

    assert isinstance(result, EditResult)
    assert result.text == "Title\n=======\nsecond\n"


PATCH = """\
*** Begin Patch
*** Add File: new.py
+a = 1
+
*** Delete File: old.py
*** Update File: app.py
*** Move to: main.py
@@ class App
@@     def run(self):
     before()
-    old()
+    new()
*** End of File
*** End Patch
"""


def test_a_patch_becomes_file_operations() -> None:
    block = EditBlock(
        ("    before()", "    old()"),
        ("    before()", "    new()"),
        anchors=("class App", "def run(self):"),
        at_end=True,
        lines_only=True,
    )

    assert parse_patch(PATCH) == (
        AddFile("new.py", "a = 1\n\n"),
        DeleteFile("old.py"),
        UpdateFile("app.py", (Section((block,), "app.py"),), "main.py"),
    )


def test_an_anchor_picks_the_place_below_it() -> None:
    pre = "class A:\n    def run(self):\n        go()\n\nclass B:\n    def run(self):\n        go()\n"
    text = "*** Begin Patch\n*** Update File: a.py\n@@ class B:\n-        go()\n+        stop()\n*** End Patch\n"

    result = apply_edit(EditFormat.APPLY_PATCH, pre, text, file_name="a.py")

    assert isinstance(result, EditResult)
    assert result.text == pre.removesuffix("go()\n") + "stop()\n"


@pytest.mark.parametrize(
    ("pre", "chosen"),
    [
        ("class A:\n    go()\nclass B:\n    go()\n", 2),
        ("    go()\nclass A:\n    go()\nclass B:\n    go()\n", 3),
        ("    go()\nclass A:\n    pass\nclass B:\n    go()\n", 5),
        ("    go()\nclass A:\n    pass\n", 1),
        ("class A:\n    pass\nclass B:\n    go()\nclass C:\n    go()\n", None),
        ("class A:\n    go()\n    x\n    go()\nclass B:\n    go()\n", None),
    ],
)
def test_an_anchor_picks_a_place_in_its_scope_then_below_it_then_any(pre: str, chosen: int | None) -> None:
    text = "*** Begin Patch\n*** Update File: a.py\n@@ class A:\n-    go()\n+    stop()\n*** End Patch\n"
    lines = pre.splitlines(keepends=True)

    result = apply_edit(EditFormat.APPLY_PATCH, pre, text, file_name="a.py")

    if chosen is None:
        assert isinstance(result, EditError)
        assert result.code is ErrorCode.AMBIGUOUS
    else:
        assert isinstance(result, EditResult)
        assert result.text == "".join([*lines[: chosen - 1], "    stop()\n", *lines[chosen:]])


def test_a_patch_without_its_end_is_refused() -> None:
    result = parse_patch(PATCH.removesuffix("*** End Patch\n"))

    assert isinstance(result, EditError)
    assert result.code is ErrorCode.TRUNCATED


def test_wrong_counts_in_a_diff_do_not_matter() -> None:
    text = "```diff\n--- a/app.py\n+++ b/app.py\n@@ -1,90 +4,2 @@\n one\n-two\n+2\n three\n```\n"

    result = apply_edit(EditFormat.UNIFIED, "one\ntwo\nthree\n", text, file_name="app.py")

    assert isinstance(result, EditResult)
    assert result.text == "one\n2\nthree\n"


def test_a_diff_creates_and_removes_files() -> None:
    text = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+a = 1\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n"

    assert parse_unified(text) == (AddFile("new.py", "a = 1\n"), DeleteFile("old.py"))


TWO_FILES = "--- a/lib/b.py\n+++ b/lib/b.py\n@@\n-x\n+of b\n--- a/c.py\n+++ b/c.py\n@@\n-x\n+of c\n"


@pytest.mark.parametrize(
    ("file_name", "applied"),
    [
        ("lib/b.py", "of b\n"),
        ("b.py", "of b\n"),
        ("/work/lib/b.py", "of b\n"),
        ("lib\\b.py", "of b\n"),
        ("c.py", "of c\n"),
        ("lib/c.py", "of c\n"),
    ],
)
def test_the_part_of_a_diff_that_is_about_the_file_is_applied(file_name: str, applied: str) -> None:
    result = apply_edit(EditFormat.UNIFIED, "x\n", TWO_FILES, file_name=file_name)

    assert isinstance(result, EditResult)
    assert result.text == applied


@pytest.mark.parametrize(
    ("file_name", "named"), [("d.py", "d.py"), ("lib/bb.py", "lib/bb.py"), ("ib/b.py", "ib/b.py"), (None, "this file")]
)
def test_a_patch_of_other_files_is_refused(file_name: str | None, named: str) -> None:
    assert apply_edit(EditFormat.UNIFIED, "x\n", TWO_FILES, file_name=file_name) == EditError(
        ErrorCode.WRONG_FILE, f"The patch does not update {named}. Name that file in it."
    )
