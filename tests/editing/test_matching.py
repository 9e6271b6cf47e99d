"""Matching tiers: what a model gets slightly wrong still lands, and only the change reaches the file."""

import pytest
from msgspec.structs import replace

from treadle.editing import AppliedBlock, Edit, EditError, EditFormat, EditResult, LineRange, Tier, apply_edit

PRE = """\
import os

class Reader:
    def __init__(self, path):
        self.path = path
        self.name = "plain"

    def read(self):
        with open(self.path) as file:
            return file.read()
"""
NEW = PRE.replace("return file.read()", "return file.read().strip()")


def edited(old: str, new: str, pre: str = PRE) -> EditResult:
    result = apply_edit(EditFormat.OLD_NEW, pre, [Edit(old, new)])
    assert isinstance(result, EditResult), result
    return result


def drift(change: object) -> tuple[str, str]:
    assert callable(change)
    old = '        self.name = "plain"\n\n    def read(self):\n        with open(self.path) as file:\n'
    tail = "            return file.read()"
    return change(old + tail), change(old + tail + ".strip()")


def numbered(text: str) -> str:
    return "\n".join(f"{at:>4} | {line}" for at, line in enumerate(text.split("\n"), 6))


@pytest.mark.parametrize(
    ("tier", "change"),
    [
        (Tier.EXACT, lambda text: text),
        (Tier.TRAILING, lambda text: text.replace(":\n", ":   \n")),
        (Tier.INDENTATION, lambda text: text.replace("\n    ", "\n").removeprefix("    ")),
        (Tier.INDENTATION, lambda text: "    " + text.replace("\n    ", "\n        ")),
        (Tier.INDENTATION, lambda text: text.replace("    ", "\t")),
        (Tier.INLINE, lambda text: text.lstrip()),
        (Tier.BLANK_LINES, lambda text: text.replace("\n\n", "\n")),
        (Tier.BLANK_LINES, lambda text: f"\n\n{text}\n\n"),
        (Tier.TYPOGRAPHY, lambda text: text.replace('"plain"', "“plain”")),
        (Tier.LINE_NUMBERS, numbered),
        (Tier.FENCE, lambda text: f"```python\n{text}\n```"),
        (Tier.ENTITIES, lambda text: text.replace('"', "&quot;")),
        (Tier.ESCAPES, lambda text: text.replace("\n", "\\n")),
        (Tier.ESCAPES, lambda text: text.replace('"', '\\"')),
        (Tier.SIMILAR, lambda text: text.replace("plain", "plan")),
    ],
)
def test_a_drift_in_both_texts_is_taken_out(tier: Tier, change: object) -> None:
    result = edited(*drift(change))

    assert (result.text, [block.tier for block in result.blocks]) == (NEW, [tier])


def test_a_replacement_in_the_files_indentation_is_not_indented_again() -> None:
    old = "def read(self):\n    with open(self.path) as file:\n        return file.read()"
    new = "    def read(self):\n        with open(self.path) as file:\n            return file.read().strip()"

    assert edited(old, new).text == NEW


def test_the_files_own_context_lines_stay_where_the_model_misquotes_them() -> None:
    pre = PRE.replace("def read(self):", "def read(self):  # “quoted” — here")

    result = edited(*drift(lambda text: text.replace("read(self):", 'read(self):  # "quoted" - here')), pre)

    assert result.text == pre.replace("return file.read()", "return file.read().strip()")


def test_part_of_a_line_is_replaced_where_it_stands() -> None:
    result = edited("open(self.path)", "open(self.path, 'rb')")

    assert result.text == PRE.replace("open(self.path)", "open(self.path, 'rb')")
    assert result.blocks == (AppliedBlock(Tier.INLINE, LineRange(9, 9)),)


def test_an_elision_in_both_texts_keeps_the_lines_it_stands_for() -> None:
    old = "class Reader:\n    # ... existing code ...\n            return file.read()"

    result = edited(old, old + ".strip()")

    assert (result.text, result.blocks[0].tier) == (NEW, Tier.ELISION)


def test_an_elision_in_the_replacement_alone_keeps_the_lines_it_stands_for() -> None:
    old = PRE.removeprefix("import os\n\n").removesuffix("\n")
    new = "class Reader:\n    def __init__(self, path):\n    # ...\n        with open(self.path) as file:\n"

    assert edited(old, new + "            return file.read().strip()").text == NEW


def test_an_empty_body_of_dots_is_code() -> None:
    new = "class Reader:\n    def close(self):\n        ...\n"

    assert edited("class Reader:", new.removesuffix("\n")).text == PRE.replace("class Reader:\n", new)


def test_a_line_hint_picks_one_of_several_places() -> None:
    pre = "a = 1\nb = 2\n" * 6
    text = "<<<<<<< SEARCH\n:start_line:7\n-------\na = 1\n=======\na = 3\n>>>>>>> REPLACE\n"

    result = apply_edit(EditFormat.SEARCH_REPLACE, pre, text)

    assert isinstance(result, EditResult)
    assert result.text.split("\n")[6] == "a = 3"
    assert result.text.count("a = 3") == 1


def test_blocks_may_come_in_any_order_and_build_on_each_other() -> None:
    edits = [
        Edit("            return file.read()", "            return file.read().strip()"),
        Edit("import os", "import os\nimport sys"),
        Edit("import sys", "import sys  # later"),
    ]

    result = apply_edit(EditFormat.OLD_NEW, PRE, edits)

    assert isinstance(result, EditResult)
    assert result.text == NEW.replace("import os\n", "import os\nimport sys  # later\n")


def test_two_blocks_may_share_context_that_one_of_them_changes() -> None:
    edits = [
        Edit("        self.path = path\n        self.name", "        self.path = str(path)\n        self.name"),
        Edit(
            '        self.path = path\n        self.name = "plain"',
            '        self.path = path\n        self.name = ""',
        ),
    ]

    result = apply_edit(EditFormat.OLD_NEW, PRE, edits)

    assert isinstance(result, EditResult)
    assert result.text == PRE.replace("= path", "= str(path)").replace('"plain"', '""')


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("final", [True, False])
def test_line_ends_byte_order_mark_and_final_newline_are_kept(end: str, bom: str, final: bool) -> None:
    def file(text: str) -> str:
        return bom + (text if final else text.removesuffix("\n")).replace("\n", end)

    old = "        with open(self.path) as file:\n            return file.read()"
    new = "        with open(self.path) as file:\n            file.seek(0)\n            return file.read()"

    result = edited(old, new, file(PRE))

    assert result.text == file(PRE.replace("as file:\n", "as file:\n            file.seek(0)\n"))


def test_mixed_line_ends_outside_the_change_are_kept() -> None:
    pre = "a\r\nb\nc\r\nd\n"

    assert edited("b\nc", "b\nx\nc", pre).text == "a\r\nb\nx\nc\r\nd\n"


def test_a_deletion_leaves_no_empty_line() -> None:
    assert edited("import os\n", "").text == PRE.removeprefix("import os\n")


def test_an_empty_file_takes_any_text() -> None:
    assert edited("", "a = 1\n", "").text == "a = 1\n"


def test_the_result_names_the_changed_lines_before_and_after() -> None:
    result = edited("import os", "import os\nimport sys")

    assert [replace(change) for change in result.changes] == list(result.changes)
    assert [(change.old, change.new) for change in result.changes] == [(LineRange(2, 1), LineRange(2, 2))]


def test_a_misspelt_line_next_to_a_users_change_is_not_overwritten() -> None:
    old = "    def __init__(self, path):\n        self.path = path\n        self.name = 1"

    result = apply_edit(EditFormat.OLD_NEW, PRE, [Edit(old, old.replace("name = 1", "name = 2"))])

    assert isinstance(result, EditError)
