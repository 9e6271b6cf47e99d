"""Control characters of a file are shown as escapes; an edit that copies what was shown changes only what it says."""

from pathlib import Path

import pytest
from tests.tools.calls import call, text

from treadle.editing import Edit, EditError, EditFormat, EditResult, Tier, apply_edit
from treadle.protocol.errors import ToolError
from treadle.workspace.workspace import Workspace

HIDDEN = {
    "nul-free control": b"\x0b",
    "form feed": b"\x0c",
    "lone return": b"\r",
    "escape": b"\x1b[1m",
    "delete": b"\x7f",
    "next line": b"\xc2\x85",
    "direction": "\u202e".encode(),
    "isolate": "\u2066".encode(),
    "tag": "\U000e0041".encode(),
    "two kinds": b"\x0c \xc2\x85",
}
FEW_BAD = "äöü".encode() * 200 + b"\n"
"""What makes a file with one bad byte UTF-8 beyond doubt."""


def shown_line(page: str, number: int) -> str:
    return next(line for line in page.splitlines() if line.startswith(f"{number} | ")).removeprefix(f"{number} | ")


def as_block(old: str, new: str) -> dict[str, str]:
    return {"diff": f"------- SEARCH\n{old}\n=======\n{new}\n+++++++ REPLACE"}


def as_patch(old: str, new: str) -> dict[str, str]:
    return {"patch": f"*** Begin Patch\n*** Update File: f.txt\n@@\n-{old}\n+{new}\n*** End Patch"}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("written", [as_block, as_patch])
async def test_an_edit_that_copies_a_line_as_it_was_shown_keeps_its_characters(
    workspace: Workspace, hidden: bytes, written: object
) -> None:
    before = b"first\n\tone " + hidden + b" two\nlast\n"
    Path(workspace.root, "f.txt").write_bytes(before)
    page = await text(workspace, "read_file", path="f.txt")
    line = shown_line(page, 2)
    assert "\\" in line
    assert "control characters are shown as escapes, such as \\" in page
    assert callable(written)
    arguments = written(line, line.replace("two", "three"))
    if "patch" in arguments:
        await call(workspace, "apply_patch", **arguments)
    else:
        await call(workspace, "replace_in_file", path="f.txt", **arguments)
    assert Path(workspace.root, "f.txt").read_bytes() == before.replace(b"two", b"three")


async def test_a_byte_that_is_no_utf8_is_kept_too(workspace: Workspace) -> None:
    before = FEW_BAD + b"one \xe4 two\n" + FEW_BAD
    Path(workspace.root, "f.txt").write_bytes(before)
    line = shown_line(await text(workspace, "read_file", path="f.txt"), 2)
    assert line == "one \\xe4 two"
    await call(workspace, "replace_in_file", path="f.txt", **as_block(line, line.replace("two", "three")))
    assert Path(workspace.root, "f.txt").read_bytes() == before.replace(b"two", b"three")


async def test_a_page_without_control_characters_says_nothing_of_them(workspace: Workspace) -> None:
    Path(workspace.root, "f.txt").write_bytes("\ta\\x0c ä\u00a0b\r\n".encode())
    assert "control characters" not in await text(workspace, "read_file", path="f.txt")


def edited(before: str, old: str, new: str) -> EditResult | EditError:
    return apply_edit(EditFormat.OLD_NEW, before, [Edit(old, new)])


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param("a\x0cb\na\\x0cb\n", "a\\x0cb", "x", "a\x0cb\nx\n", id="letters of the file are letters"),
        pytest.param("a\x0cb\n", "\\x0cb", "\\x0cc", "a\x0cc\n", id="a part of a line"),
        pytest.param("a\n\x0c\nb\n", "a\n\\x0c\nb", "a\nb", "a\nb\n", id="a line of its own"),
        pytest.param("a\n\x0c\n\nb\n", "\\x0c\n", "", "a\n\nb\n", id="that line alone"),
        pytest.param("a\x0cb\n", "a\\x0cb", "a\\x0cb \\x0b", "a\x0cb \\x0b\n", id="another escape is letters"),
        pytest.param("a\x0cb\n", "a\\x0cb", "ab", "ab\n", id="taken away"),
    ],
)
def test_escapes_are_read_where_the_file_has_these_characters(before: str, old: str, new: str, after: str) -> None:
    result = edited(before, old, new)
    assert isinstance(result, EditResult)
    assert result.text == after


@pytest.mark.parametrize("before", ["foo\n", "foo \n", "\n\n", "foo\x0b\n"])
def test_an_escape_of_what_the_file_has_not_is_found_nowhere(before: str) -> None:
    assert isinstance(edited(before, "foo\\x0c", "bar"), EditError)
    assert isinstance(edited(before, "\\x0c", "bar"), EditError)


def test_every_place_is_read_so_too_and_two_places_are_not_one() -> None:
    block = as_block("a\\x0cb", "c\\x0cb")["diff"]
    found = apply_edit(EditFormat.SEARCH_REPLACE, "a\x0cb\na\x0cb\n", block, replace_all=True)
    assert isinstance(found, EditResult)
    assert (found.text, found.blocks[0].tier, found.blocks[0].places) == ("c\x0cb\nc\x0cb\n", Tier.ESCAPES, 2)
    twice = edited("a\x0cb\na\x0cb\n", "a\\x0cb", "c")
    assert isinstance(twice, EditError)
    assert len(twice.candidates) == 2


async def test_a_whole_text_with_escapes_writes_letters(workspace: Workspace) -> None:
    await call(workspace, "write_to_file", path="f.py", content='FEED = "\\x0c"\n')
    assert Path(workspace.root, "f.py").read_bytes() == b'FEED = "\\x0c"\n'
    with pytest.raises(ToolError):
        await call(workspace, "replace_in_file", path="f.py", **as_block('FEED = "\\x0b"', "x"))
