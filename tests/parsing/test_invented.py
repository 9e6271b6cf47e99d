"""Results that a model writes itself: found at the head of a line, however the text is split."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.parsing import InventedResults

TOOLS = ("execute_command", "read_file")
HEADS = (
    "[execute_command] Result:\n",
    "[read_file] Error:\n",
    "[execute_command for 'ls -la'] Result:",
    "<function_results>",
    "<function_result>",
    "<tool_response>",
    "  <observation>",
    "<environment_details>",
)


def kept(text: str, size: int) -> str:
    watch = InventedResults(TOOLS)
    for end in range(size, len(text) + size, size):
        back = watch.feed(text[end - size : end])
        if back:
            return text[: min(end, len(text)) - back]
    return text


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("head", HEADS)
def test_the_text_ends_where_a_result_is_invented(head: str, size: int) -> None:
    before = "\nNow I wait.\n"
    assert kept(f"{before}{head}\na.py\nb.py\n", size) == before
    assert kept(f"{head}\na.py", size) == ""


@pytest.mark.parametrize(
    "text",
    [
        "The line `[execute_command] Result:` is written by the program.",
        "[other_tool] Result:\n",
        "[execute_command] runs it.",
        "Result: all is well.",
        "<result>x</result>",
        "x" * 1000 + "[execute_command] Result:",
        "",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 2000])
def test_other_text_stays(text: str, size: int) -> None:
    assert kept(text, size) == text


@settings(max_examples=200)
@given(st.text(alphabet="a \n[]<>", max_size=50), st.sampled_from(HEADS), st.integers(1, 9))
def test_how_the_text_is_split_makes_no_difference(before: str, head: str, size: int) -> None:
    text = f"{before}\n{head}\nrest"
    assert kept(text, size) == kept(text, len(text)) == f"{before}\n"
