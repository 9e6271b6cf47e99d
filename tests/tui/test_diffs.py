"""Diffs as numbered rows, the words that changed, and long ones cut in the middle."""

import difflib

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.tui.paint.code_lines import MOST_COLOURED, code_lines, code_places, in_roles, without_tabs
from treadle.tui.paint.diff_rows import DiffRow, FileDiff, diff_lines, read_diff
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.theme import Signs
from treadle.workspace.checkpoints.comparing import entry_diff
from treadle.workspace.checkpoints.trees import TreeEntry, TreeKind

SMALL = (
    "--- a/x.py\n+++ b/x.py\n@@ -3,2 +3,3 @@\n same\n-total += item.price\n+total += item.price * item.count\n+new\n"
)


def test_rows_have_the_number_of_their_side_and_changed_words_are_marked() -> None:
    assert read_diff(SMALL) == (
        FileDiff(
            "x.py",
            (
                DiffRow(" ", 3, (("same", False),)),
                DiffRow("-", 4, (("total += item.price", False),)),
                DiffRow("+", 4, (("total += item.price", False), (" * item.count", True))),
                DiffRow("+", 5, (("new", False),)),
            ),
        ),
    )


def test_lines_that_have_little_in_common_are_marked_as_a_whole() -> None:
    (file,) = read_diff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-alpha beta\n+gamma delta epsilon\n")
    assert [row.pieces for row in file.rows] == [(("alpha beta", False),), (("gamma delta epsilon", False),)]


def test_lines_that_look_like_the_head_of_a_file_are_lines_of_it() -> None:
    diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,1 @@\n--- a comment\n-++ b\n+one\n"
    (file,) = read_diff(diff)
    assert [(row.sign, "".join(text for text, _ in row.pieces)) for row in file.rows] == [
        ("-", "-- a comment"),
        ("-", "++ b"),
        ("+", "one"),
    ]


def test_a_new_file_a_deleted_one_and_a_missing_line_feed_are_told() -> None:
    new = "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"
    old = "--- a/o.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    first, second = read_diff(new + old)
    assert (first.path, first.counted, first.notes) == ("n.py", "+1 -0", ("no line feed at the end of the file",))
    assert (second.path, second.counted) == ("o.py", "+0 -1")


def test_a_long_diff_shows_its_beginning_and_its_end() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -0,0 +1,92 @@\n" + "".join(f"+line {number}\n" for number in range(92))
    shown = [line_text(row) for row in diff_lines(diff, 80, Signs())]
    assert len(shown) == 1 + 20 + 1 + 8
    assert shown[21] == "      … 64 more lines, ctrl-o shows all"
    assert (shown[20].endswith("line 19"), shown[22].endswith("line 84")) == (True, True)
    assert len(diff_lines(diff, 80, Signs(), whole=True)) == 93


def test_a_changed_line_is_never_cut_but_wrapped_under_its_text() -> None:
    diff = f"--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+{'word ' * 30}end\n"
    shown = [line_text(row) for row in diff_lines(diff, 40, Signs())][1:]
    assert " ".join(row[9:] for row in shown).split() == ["word"] * 30 + ["end"]
    assert all(row.startswith("       ↳ ") for row in shown[1:])


TEXTS = st.lists(st.sampled_from(["", "a", "--- a", "+++ b", "@@ -1 +1 @@", " x", "same line of words"]), max_size=12)


@settings(max_examples=200)
@given(TEXTS, TEXTS)
def test_every_line_of_a_diff_is_in_its_rows(before: list[str], after: list[str]) -> None:
    lines = list(difflib.unified_diff(before, after, "a/x", "b/x", lineterm=""))
    files = read_diff("".join(f"{one}\n" for one in lines))
    if before == after:
        assert files == ()
        return
    (file,) = files
    rows = [(row.sign, "".join(text for text, _ in row.pieces)) for row in file.rows if row.sign != "⋯"]
    hunks = [one for one in lines[2:] if not one.startswith("@@ -") or one[:1] in "+- "]
    marked = sorted((one[:1], one[1:]) for one in _body(lines))
    assert sorted(rows) == marked, hunks


def _body(lines: list[str]) -> list[str]:
    """The lines of a diff of one file that are content: the head of a part has two numbers in front of it."""
    return [one for one in lines[2:] if one[:1] in "+- " and one[:1]]


PYTHON = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n def f():\n-    return 1  # one\n+    return 2  # one\n"


def roles_of(diff: str, text: str) -> set[str]:
    """The roles of the pieces that are this text."""
    return {roles for row in diff_lines(diff, 80, Signs()) for roles, piece in row if piece == text}


def test_code_is_coloured_by_the_name_of_its_file_and_what_changed_stays_marked() -> None:
    assert roles_of(PYTHON, "def") == {"code-keyword"}
    assert roles_of(PYTHON, "return") == {"del-row code-keyword", "add-row code-keyword"}
    assert roles_of(PYTHON, "1") == {"del-row del-word code-number"}
    assert roles_of(PYTHON, "2") == {"add-row add-word code-number"}
    assert roles_of(PYTHON, "# one") == {"del-row code-comment", "add-row code-comment"}
    assert roles_of(PYTHON.replace("x.py", "x.unknown"), "def f():") == {""}


def test_each_side_is_read_by_itself_so_that_what_goes_does_not_colour_what_comes() -> None:
    diff = '--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-"""open\n+x = 1\n return\n'
    assert roles_of(diff, "return") == {"code-keyword"}


def test_a_marked_comment_has_the_plain_colour() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-value = 1  # one two three\n+value = 1  # one two four\n"
    assert roles_of(diff, "three") == {"del-row del-word"}


def test_what_is_too_long_is_plain() -> None:
    rows = "".join(f"+return {number}\n" for number in range(MOST_COLOURED // 7))
    large = f"--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,{MOST_COLOURED // 7} @@\n{rows}"
    assert {roles for row in diff_lines(large, 80, Signs())[1:] for roles, _ in row} == {
        "dim add-row",
        "add add-row",
        "add-row",
        "dim",
    }
    assert code_places(["return", "x" * 2_001], name="x.py") == ()
    assert code_places(["return", "x" * 2_000], name="x.py") != ()


ANYTHING = st.text(st.sampled_from("ab '\"#/*{}()<>=\\\t0`$;:\u202e\x1b日"), max_size=40)


@settings(max_examples=150)
@given(
    st.lists(ANYTHING, max_size=8), st.sampled_from(["x.py", "x.ts", "x.html", "x.sh", "x.md", "Makefile", "x.c", ""])
)
def test_colours_change_no_character_and_cost_one_pass(lines: list[str], name: str) -> None:
    coloured = code_lines("\n".join(lines), name=name)
    assert [line_text(row) for row in coloured] == [line_text(without_tabs([("", one)])) for one in lines or [""]]
    places = code_places(lines, name=name)
    for text, of in zip(lines, places, strict=False):
        pieces = list(in_roles([(text[:3], False), (text[3:], True)], of, "row", "word"))
        assert "".join(piece for _, piece in pieces) == text
        assert len(pieces) <= 2 * len(of) + 3


@settings(max_examples=100)
@given(st.lists(ANYTHING, max_size=6), st.lists(ANYTHING, max_size=6))
def test_a_diff_shows_the_same_text_with_and_without_colours(before: list[str], after: list[str]) -> None:
    def text(name: str) -> list[str]:
        lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
        return [line_text(row) for row in diff_lines("\n".join(lines), 40, Signs(), whole=True)][1:]

    assert text("x.py") == text("x.unknown")


def test_what_became_of_a_file_stands_above_its_lines_and_alone_where_none_changed() -> None:
    text = (
        "diff --git a/a.py b/b.py\nsimilarity index 90%\nrename from a.py\nrename to b.py\n--- a/a.py\n+++ b/b.py\n"
        "@@ -1,2 +1,2 @@\n one\n--- two\n+++ two\n"
        "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
        "diff --git a/x b/y z\nsimilarity index 100%\nrename from x\nrename to y z\n"
        "diff --git a/new b/new\nnew file mode 100644\nindex 0000000..e69de29\n"
        "diff --git a/p.png b/p.png\nindex 1..2 100644\nBinary files a/p.png and b/p.png differ\n"
        "diff --git a/c.py b/c.py\nindex 1..2 100644\n--- a/c.py\n+++ b/c.py\n@@ -1 +1 @@\n-a\n+b\n"
    )
    assert [line_text(row).rstrip() for row in diff_lines(text, 80, Signs())] == [
        "  b.py  +1 -1",
        "      renamed from a.py",
        "     1   one",
        "     2 - -- two",
        "     2 + ++ two",
        "  run",
        "      mode 100755, was 100644",
        "  y z",
        "      renamed from x",
        "  new",
        "      new file",
        "  p.png",
        "      binary: its content is not shown",
        "  c.py  +1 -1",
        "     1 - a",
        "     1 + b",
    ]


def test_what_a_checkpoint_says_of_a_file_as_a_whole_is_drawn_as_what_git_says() -> None:
    file, run = TreeEntry(TreeKind.FILE, 0o644, 2, "1"), TreeEntry(TreeKind.FILE, 0o755, 2, "1")
    for before, after, sides, head in (
        (None, file, (b"", b"a\n"), "new file"),
        (file, None, (b"a\n", b""), "deleted"),
        (file, run, (b"a\n", b"a\n"), "mode 755, was 644"),
    ):
        drawn = [line_text(row).strip() for row in diff_lines(entry_diff("a.txt", before, after, sides), 80, Signs())]
        assert (drawn[1], sum("was" in row for row in drawn)) == (head, int("was" in head)), drawn
