"""An edit whose result a person wrote: the call makes exactly that, or nothing."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.session.files.edited_result import arguments_for_text, is_text_of, writes_one_text
from treadle.editing import EditFormat, EditResult, apply_edit
from treadle.editing.edit_results import AddFile, EditError
from treadle.editing.patches import parse_patch
from treadle.protocol.tools import WritePath

LINES = st.lists(st.sampled_from(["a", "b", "", "  x", "}", "=======", "@@"]), max_size=25)
PATCH = "*** Begin Patch\n*** Update File: a\n@@\n-a\n+b\n*** End Patch\n"
CALLS: tuple[tuple[dict[str, Any], str, EditFormat], ...] = (
    ({"path": "a", "diff": "x", "replace_all": True}, "diff", EditFormat.SEARCH_REPLACE),
    ({"patch": PATCH}, "patch", EditFormat.APPLY_PATCH),
)


@pytest.mark.parametrize(("arguments", "name", "form"), CALLS)
@given(old=LINES, new=LINES, ended=st.booleans())
def test_the_call_makes_the_wanted_text_or_there_is_none(
    arguments: dict[str, Any], name: str, form: EditFormat, old: list[str], new: list[str], *, ended: bool
) -> None:
    before, after = ("\n".join(lines) + "\n" * ended for lines in (old, new))
    made = arguments_for_text(arguments, before, after)
    if made is None:
        return
    assert set(made) == {*arguments} - {"replace_all"}
    result = apply_edit(form, before, made[name])
    assert isinstance(result, EditResult)
    assert result.text == after


@pytest.mark.parametrize(("arguments", "name", "form"), CALLS)
def test_one_change_of_many_alike_places_is_made_in_its_place(
    arguments: dict[str, Any], name: str, form: EditFormat
) -> None:
    before = "a\n" * 40
    after = "a\n" * 17 + "here\n" + "a\n" * 23
    made = arguments_for_text(arguments, before, after)
    assert made is not None
    result = apply_edit(form, before, made[name])
    assert isinstance(result, EditResult)
    assert result.text == after


@pytest.mark.parametrize(
    ("wanted", "is_made"), [("one\n\ntwo\n", True), ("*** End Patch\n", True), ("one", False), ("", False)]
)
def test_a_patch_that_adds_a_file_makes_exactly_what_the_person_wrote(wanted: str, *, is_made: bool) -> None:
    made = arguments_for_text({"patch": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"}, "", wanted)
    assert (made is not None) is is_made
    if made is not None:
        operations = parse_patch(made["patch"])
        assert not isinstance(operations, EditError)
        (only,) = operations
        assert isinstance(only, AddFile)
        assert only.text == wanted


WHOLE = {"path": "a", "content": "x\n"}


def test_a_file_that_is_written_whole_becomes_what_the_person_wrote() -> None:
    assert arguments_for_text(WHOLE, "", "one\r\ntwo\n") == {"path": "a", "content": "one\ntwo\n"}


@pytest.mark.parametrize(("arguments", "name", "form"), [*CALLS, (WHOLE, "content", EditFormat.WHOLE)])
@pytest.mark.parametrize("after", ["a\nb\n", "a\nc\n", "a\nb\nc\n", "a\n"])
def test_the_last_line_gets_the_line_end_that_the_person_gave_it(
    arguments: dict[str, Any], name: str, form: EditFormat, after: str
) -> None:
    made = arguments_for_text(arguments, "a\nb", after)
    assert made is not None
    result = apply_edit(form, "a\nb", made[name])
    assert isinstance(result, EditResult)
    assert result.text == after


@pytest.mark.parametrize("arguments", [CALLS[0][0], CALLS[1][0], WHOLE])
def test_no_call_takes_the_last_line_end_away(arguments: dict[str, Any]) -> None:
    assert arguments_for_text(arguments, "a\nb\n", "a\nc") is None


@pytest.mark.parametrize(
    ("raw", "text", "is_it"),
    [
        (b"a\nb\n", "a\nb\n", True),
        (b"a\r\nb\n", "a\nb\n", True),
        (b"\xef\xbb\xbfa\r\n", "a\n", True),
        ("caf\u00e9\n".encode("latin-1"), "caf\u00e9\n", True),
        (b"a\nb\n", "a\nb", False),
        (b"a\nb\n", "", False),
        (b"", "", True),
    ],
)
def test_a_text_is_that_of_a_file_whatever_its_line_ends_and_encoding(
    tmp_path: Path, raw: bytes, text: str, *, is_it: bool
) -> None:
    file = tmp_path / "a"
    file.write_bytes(raw)
    seen = WritePath(path=str(file), before=sha256(raw).hexdigest())
    assert is_text_of(text, seen) is is_it


@pytest.mark.parametrize(("text", "is_it"), [("typed\n", True), ("typed\r\n", True), ("saved\n", False), ("", False)])
def test_a_text_that_is_not_saved_is_known_by_its_digest(tmp_path: Path, text: str, *, is_it: bool) -> None:
    (tmp_path / "a").write_text("saved\n")
    seen = WritePath(path=str(tmp_path / "a"), before=sha256(b"typed\n").hexdigest())
    assert is_text_of(text, seen) is is_it


@pytest.mark.parametrize(("text", "is_it"), [("", True), ("x\n", False)])
def test_a_file_that_is_not_there_has_no_text(tmp_path: Path, text: str, *, is_it: bool) -> None:
    assert is_text_of(text, WritePath(path=str(tmp_path / "a"))) is is_it


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "ls"},
        {"path": "a.ipynb", "cell": "1", "content": "x"},
        {"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"},
        {"patch": PATCH.replace("*** End Patch\n", "*** Update File: b\n@@\n-a\n+b\n*** End Patch\n")},
        {"patch": PATCH.replace("@@\n", "*** Move to: b\n@@\n", 1)},
    ],
)
def test_calls_that_write_not_one_text_are_not_changed(arguments: dict[str, Any]) -> None:
    assert not writes_one_text(arguments)
    assert arguments_for_text(arguments, "a\n", "b\n") is None
