from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.present.escape import exact, output_of_command, printable
from treadle.workspace.files.text import visible

STEERING = [chr(code) for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"]


@settings(max_examples=200)
@given(st.text())
def test_nothing_that_steers_a_terminal_comes_through(text: str) -> None:
    for made in (printable(text), exact(text), output_of_command(text)):
        assert not any(char in made for char in STEERING)
        made.encode()


def test_prose_keeps_its_letters_and_emoji() -> None:
    assert printable("naïve 日本 👩\u200d🚀\tok\n") == "naïve 日本 👩\u200d🚀\tok\n"


def test_what_turns_the_reading_direction_is_shown() -> None:
    assert printable("a\u202eb") == r"a\u202eb"


def test_what_is_approved_hides_nothing() -> None:
    assert exact("rm\u00a0-rf\u200b \x1b[2K\r\U000e0041") == r"rm\xa0-rf\u200b \x1b[2K\r\U000e0041"


def test_output_loses_colours_and_overwritten_lines() -> None:
    assert output_of_command("\x1b[1;31mred\x1b[0m\r\n10%\r20%\rdone\nbell\a\n") == "red\ndone\nbell\\x07\n"


def test_terminals_and_models_are_shown_the_same_escapes() -> None:
    every = [chr(code) for code in range(0x110000)]
    differing = [char for char in every if printable(char) != visible(char)]
    assert differing == ["\u2028", "\u2029"]
    assert [char for char in every if visible(char) != char and not exact(char).isprintable()] == []
