"""What is in the file once, exactly, is replaced as it stands: no other byte changes, and it is never refused."""

import pytest
from bench.drift import library_sources
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from treadle.editing import Edit, EditFormat, EditResult, Tier, apply_edit

MANY = settings(max_examples=150, suppress_health_check=[HealthCheck.filter_too_much])
SOURCES = library_sources(6)
LINES = [
    "a = 1",
    "b",
    "    return b",
    "\tb",
    "}",
    "});",
    "",
    "  \t",
    "# ...",
    "    # ... existing code ...",
    "...",
    "// rest unchanged",
    "<!-- unchanged -->",
    "total = 1",
    "x",
    "é — “q”",
    "def f():",
    "    pass",
    "print('\\n')",
    "\x0c",
    "1 | 2: b",
    "&lt;b&gt;",
    "a = '\\\"'",
    "-- old",
    "++ new",
    "",
]
NEW_LINES = ["zq = 1", "    zq(", "\tzq", "}", "", "  ", "'&lt;'", "zq:", "zé", "  zq {"]
lines = st.lists(st.sampled_from(LINES) | st.text("ab (){}:\t.", max_size=9), min_size=1, max_size=14)
# New text: not a placeholder, which is refused, and nothing that reads as escaped by mistake.
new_texts = st.lists(st.sampled_from(NEW_LINES), max_size=5)
ends = st.sampled_from(["\n", "\r\n"])


def written(form: EditFormat, old: list[str], new: list[str]) -> str:
    if form is EditFormat.SEARCH_REPLACE:
        return "\n".join(("------- SEARCH", *old, "=======", *new, "+++++++ REPLACE", ""))
    body = [f"-{line}" for line in old] + [f"+{line}" for line in new]
    if form is EditFormat.UNIFIED:
        return "\n".join(("--- a/f", "+++ b/f", "@@ -1 +1 @@", *body, ""))
    return "\n".join(("*** Begin Patch", "*** Update File: f", "@@", *body, "*** End Patch", ""))


def applied(form: EditFormat, pre: str, edit: str | list[Edit]) -> str:
    result = apply_edit(form, pre, edit, file_name="f")
    assert isinstance(result, EditResult), result
    return result.text


def stands_already(pre: str, old: str, new: str) -> bool:
    """Whether the file reads as the new text already: that is refused, for edits are often sent twice."""
    at = pre.find(old)
    return old in new and any(
        new.startswith(old, shift) and at >= shift and pre.startswith(new, at - shift) for shift in range(len(new))
    )


@MANY
@given(st.data(), lines, st.lists(ends, min_size=14, max_size=14), st.booleans(), st.booleans(), new_texts)
def test_a_string_that_is_in_the_file_once_is_replaced_as_it_stands(
    data: st.DataObject, rows: list[str], row_ends: list[str], final: bool, bom: bool, written_new: list[str]
) -> None:
    mixed = data.draw(st.booleans())
    row_ends = row_ends if mixed else row_ends[:1] * 14
    pre = "".join(row + end for row, end in zip(rows, row_ends, strict=False))
    pre = pre if final or not pre.endswith("\n") else pre.removesuffix("\n").removesuffix("\r")
    start = data.draw(st.integers(0, len(pre)))
    stop = data.draw(st.integers(start, len(pre)))
    before, old, after = pre[:start], pre[start:stop], pre[stop:]
    plain, wanted = pre.replace("\r\n", "\n"), old.replace("\r\n", "\n")
    new = "\n".join(written_new)
    assume(old and not before.endswith("\r") and not old.endswith("\r") and old != new)
    assume(sum(plain.startswith(wanted, at) for at in range(len(plain))) == 1 and wanted != new)
    assume(not stands_already(plain, wanted, new))
    end = "\r\n" if "\r\n" in pre else "\n"
    expected = before + (new if mixed else new.replace("\n", end)) + after

    result = applied(EditFormat.OLD_NEW, "\ufeff" * bom + pre, [Edit(old, new)])

    assert result.startswith("\ufeff") is bom
    result = result.removeprefix("\ufeff")
    if mixed:
        assert result.startswith(before)
        assert result.endswith(after)
        result, expected = result.replace("\r\n", "\n"), expected.replace("\r\n", "\n")
    assert result == expected


@MANY
@given(
    st.sampled_from([EditFormat.SEARCH_REPLACE, EditFormat.APPLY_PATCH, EditFormat.UNIFIED]),
    st.data(), lines, ends, st.booleans(), st.booleans(), new_texts,
)  # fmt: skip
def test_lines_that_are_in_the_file_once_are_replaced_as_they_stand(
    form: EditFormat, data: st.DataObject, rows: list[str], end: str, final: bool, bom: bool, new: list[str]
) -> None:
    rows = rows if final else [*rows, "last"]
    low = data.draw(st.integers(0, len(rows) - 1))
    high = data.draw(st.integers(low + 1, len(rows)))
    old, new = rows[low:high], "\n".join(new).split("\n") if new else []
    assume(any(row.strip() for row in old) and old != new)
    assume(sum(rows[at : at + len(old)] == old for at in range(len(rows))) == 1)
    assume(not stands_already("\n".join(["", *rows, ""]), "\n".join(["", *old, ""]), "\n".join(["", *new, ""])))
    mark = "\ufeff" * bom

    pre = mark + end.join(rows) + end * final
    after = [*rows[:low], *new, *rows[high:]]

    assert applied(form, pre, written(form, old, new)) == mark + end.join(after) + end * (final and bool(after))


@settings(max_examples=60)
@given(st.data(), st.sampled_from(SOURCES), ends)
def test_any_piece_of_a_real_file_is_replaced_as_it_stands(data: st.DataObject, source: str, end: str) -> None:
    pre = source.replace("\n", end)
    start = data.draw(st.integers(0, len(source) - 1))
    stop = data.draw(st.integers(start + 1, min(len(source), start + 2_000)))
    old = source[start:stop]
    assume(source.count(old) == 1 and not old.isspace())

    replaced = source[:start] + "zq(\n    zq\n)" + source[stop:]

    assert applied(EditFormat.OLD_NEW, pre, [Edit(old, "zq(\n    zq\n)")]) == replaced.replace("\n", end)


PRE = """\
class Reader:
    # ... existing code ...
    def read(self):
        return self.file.read()

    def close(self):
        self.file.close()
"""


@pytest.mark.parametrize(
    ("old", "new", "post"),
    [
        ("# ... existing code ...\n    def read", "def read", "class Reader:\n    def read"),
        ("existing code ...\n    def read", "existing code ...\n    def scan", "existing code ...\n    def scan"),
        ("return self.file.read()\n", "if x:\n    return 1\n", "        if x:\n    return 1\n\n"),
        (
            "def read(self):\n        return",
            "def read(self, n):\n        return",
            "    def read(self, n):\n        return",
        ),
        ("\n    def close(self):\n        self.file.close()\n", "", "self.file.read()\n"),
        ("    def close(self):\n        self.file.close()", "", "self.file.read()\n\n\n"),
        ("        self.file.close()\n", "        pass", "(self):\n        pass"),
        ("\n\n    def close", "\n    def close", "self.file.read()\n    def close"),
        ("class Reader:\n", "", "    # ..."),
    ],
)
def test_an_exact_string_is_taken_at_its_word(old: str, new: str, post: str) -> None:
    result = applied(EditFormat.OLD_NEW, PRE, [Edit(old, new)])

    assert result == PRE.replace(old, new)
    assert post in result


def test_a_block_that_begins_within_a_line_is_not_indented_again() -> None:
    old = ["def read(self):", "        return self.file.read()"]
    new = ["def read(self, size):", "        if size:", "            return self.file.read(size)"]

    result = applied(EditFormat.SEARCH_REPLACE, PRE, written(EditFormat.SEARCH_REPLACE, old, new))

    assert result == PRE.replace("\n".join(old), "\n".join(new))


@pytest.mark.parametrize(
    ("new", "post"),
    [
        (
            ["if all:", "            return b''", "        return c"],
            "        if all:\n            return b''\n        return c",
        ),
        (["if all:", "    return b''", "return c"], "        if all:\n            return b''\n        return c"),
    ],
)
def test_one_line_without_its_indentation_takes_new_lines_as_they_are_indented(new: list[str], post: str) -> None:
    text = written(EditFormat.SEARCH_REPLACE, ["return self.file.read()"], new)

    assert applied(EditFormat.SEARCH_REPLACE, PRE, text) == PRE.replace("        return self.file.read()", post)


def test_a_whole_line_is_found_though_it_is_a_part_of_others_too() -> None:
    pre = "total = 1\nsubtotal = 1\nif x:\n    total = 1\n"
    text = written(EditFormat.SEARCH_REPLACE, ["total = 1"], ["total = 2"])

    assert applied(EditFormat.SEARCH_REPLACE, pre, text) == pre.replace("total = 1", "total = 2", 1)


def test_two_strings_of_one_line_may_be_replaced_by_one_edit() -> None:
    result = apply_edit(EditFormat.OLD_NEW, "read(a, b)\n", [Edit("read", "scan"), Edit("b)", "c)")])

    assert isinstance(result, EditResult)
    assert (result.text, [block.tier for block in result.blocks]) == ("scan(a, c)\n", [Tier.INLINE, Tier.INLINE])
