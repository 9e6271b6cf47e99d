from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.present.prose import LONGEST_BLOCK, Growing, grow

LINES = st.sampled_from(
    ["word", "two words", "", " ", "    indented", "- item", "```", "```python", "~~~", "````", "# head", "| a |"]
)
MARKDOWN = st.lists(LINES, max_size=30).map("\n".join)


def stream(text: str, size: int) -> tuple[list[str], str]:
    growing, finished = Growing(), []
    for start in range(0, len(text), size):
        done, growing = grow(growing, text[start : start + size])
        finished += [done] if done else []
    return finished, growing.text


@settings(max_examples=200)
@given(MARKDOWN, st.integers(1, 7))
def test_nothing_is_lost_or_changed_however_the_text_is_cut(text: str, size: int) -> None:
    finished, rest = stream(text, size)
    assert "".join(finished) + rest == text


@settings(max_examples=200)
@given(MARKDOWN, st.integers(1, 7))
def test_where_blocks_end_does_not_depend_on_the_pieces(text: str, size: int) -> None:
    assert "".join(stream(text, size)[0]) == "".join(stream(text, 1)[0])


@settings(max_examples=200)
@given(MARKDOWN)
def test_a_finished_part_never_ends_inside_a_fence(text: str) -> None:
    growing = Growing()
    for char in text:
        done, growing = grow(growing, char)
        assert not done or Growing() == grow(Growing(), done)[1] or grow(Growing(), done)[1].fence == ""


def test_a_paragraph_is_finished_when_the_next_one_has_a_whole_line() -> None:
    assert stream("one\n\ntwo\n", 1) == (["one\n\n"], "two\n")
    assert stream("one\n\ntwo", 1) == ([], "one\n\ntwo")


def test_blank_lines_in_a_fence_and_indented_lines_end_nothing() -> None:
    assert stream("```\na\n\nb\n", 3) == ([], "```\na\n\nb\n")
    assert stream("- item\n\n  more of it\n", 3) == ([], "- item\n\n  more of it\n")


def test_a_long_fence_is_closed_and_opened_again() -> None:
    line = "x" * 99 + "\n"
    finished, rest = stream("```python\n" + line * (LONGEST_BLOCK // 100 + 2) + "```\n", 50)
    assert finished == ["```python\n" + line * (LONGEST_BLOCK // 100) + "```\n"]
    assert rest == "```python\n" + line * 2 + "```\n"


def test_a_line_without_end_stays_bounded_inside_and_outside_a_fence() -> None:
    for opening in ("", "```\n"):
        finished, rest = stream(opening + "y" * 5 * LONGEST_BLOCK, 1000)
        assert len(rest) <= LONGEST_BLOCK
        assert ("".join(finished) + rest).count("y") == 5 * LONGEST_BLOCK
