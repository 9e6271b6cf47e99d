"""Replacing a text in every place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.editing import Edit, EditError, EditFormat, EditResult, ErrorCode, apply_edit

_BLOCK = "------- SEARCH\n{}\n=======\n{}\n+++++++ REPLACE\n"


def _all(pre: str, *edits: tuple[str, str]) -> EditResult | EditError:
    return apply_edit(EditFormat.OLD_NEW, pre, [Edit(old, new, replace_all=True) for old, new in edits])


def _text(result: EditResult | EditError) -> str:
    assert isinstance(result, EditResult), result
    return result.text


@pytest.mark.parametrize(
    ("pre", "old", "new", "post", "places"),
    [
        ("foo(foo)\nx\nfoo", "foo", "bar", "bar(bar)\nx\nbar", 3),
        ("a\r\nb\na\r\n", "a", "c", "c\r\nb\nc\r\n", 2),
        ("\ufeffa\na\n", "a", "b", "\ufeffb\nb\n", 2),
        ("if a:\n  pass\nif a:\n  pass\n", "a:\n  pass", "b:\n  return\n  x", "if b:\n  return\n  x\n" * 2, 2),
        ("x\nlog()\ny\nlog()\n", "log()\n", "", "x\ny\n", 2),
        ("x\nlog()\ny\nlog()\n", "log()", "", "x\ny\n", 2),
        ("a; log()\nb; log()\n", "; log()", "", "a\nb\n", 2),
        ("axa\na x\n", "a\n", "b\n", "axb\na x\n", 1),
        ("one\n", "one", "two", "two\n", 1),
        ("a a", "a", "b\nc", "b\nc b\nc", 2),
    ],
)
def test_every_place_is_replaced_and_counted(pre: str, old: str, new: str, post: str, places: int) -> None:
    result = _all(pre, (old, new))
    assert isinstance(result, EditResult)
    assert (result.text, [block.places for block in result.blocks]) == (post, [places])


@pytest.mark.parametrize(
    ("pre", "old", "new", "code"),
    [
        ("aaa\n", "aa", "b", ErrorCode.OVERLAPPING),
        ("x\nx\nx\n", "x\nx", "y", ErrorCode.OVERLAPPING),
        ("b\n", "a", "c", ErrorCode.NOT_FOUND),
        ("a\n", "a", "a", ErrorCode.NO_CHANGE),
        ("a\n", "", "b", ErrorCode.EMPTY_SEARCH),
        ("a\n\n", "\n", "b", ErrorCode.EMPTY_SEARCH),
        ("load\nload_all\n", "load", "load_all", ErrorCode.ALREADY_APPLIED),
        ("log()\nx; log()\n", "log()", "", ErrorCode.AMBIGUOUS),
        ("def a():\n    b\n    c\n", "def a():\n    b", "def a():\n    # ... existing code ...", ErrorCode.ELISION),
    ],
)
def test_what_is_not_certain_is_refused(pre: str, old: str, new: str, code: ErrorCode) -> None:
    result = _all(pre, (old, new))
    assert isinstance(result, EditError)
    assert result.code is code


def test_a_line_that_an_earlier_block_changed_is_not_changed_again() -> None:
    assert _text(_all("a b\nc\n", ("c", "d"), ("a", "x"))) == "x b\nd\n"
    chained = _all("a\nb\n", ("a", "b"), ("b", "c"))
    assert isinstance(chained, EditError)
    assert (chained.code, chained.block) == (ErrorCode.OVERLAPPING, 2)


def test_blocks_are_applied_everywhere_when_told_so() -> None:
    pre, block = "foo = 1\nbar(foo)\n", _BLOCK.format("foo", "baz")
    assert _text(apply_edit(EditFormat.SEARCH_REPLACE, pre, block, replace_all=True)) == "baz = 1\nbar(baz)\n"
    assert isinstance(apply_edit(EditFormat.SEARCH_REPLACE, pre, block), EditError)
    hinted = block.replace("SEARCH", "SEARCH:1")
    refused = apply_edit(EditFormat.SEARCH_REPLACE, pre, hinted, replace_all=True)
    assert isinstance(refused, EditError)
    assert refused.code is ErrorCode.MALFORMED


_WORDS = st.lists(st.sampled_from(["ab", "c", " ", "\n", "\r\n", "x1", "."]), max_size=20).map("".join)


@given(_WORDS, st.sampled_from(["ab", "c", "x1", "ab\nc", "c.", ".ab"]), st.sampled_from(["Q", "Q\nR", "QQ"]))
def test_it_is_what_a_plain_replacement_gives(pre: str, old: str, new: str) -> None:
    result = _all(pre, (old, new))
    plain = pre.replace("\r\n", "\n")
    if isinstance(result, EditError):
        assert (result.code, old in plain) == (ErrorCode.NOT_FOUND, False)
    else:
        assert result.text.replace("\r\n", "\n") == plain.replace(old, new)
        assert [block.places for block in result.blocks] == [plain.count(old)]
