"""Places of code that have a colour: by language, line by line, and no longer than is given."""

from treadle.present.code_colours import coloured_places, lexer_of


def test_places_are_those_of_each_line() -> None:
    lexer = lexer_of("", "x.py")
    assert lexer is not None
    assert coloured_places(lexer, ['"""one', "", 'two"""  # x']) == [((0, 6, "s"),), (), ((0, 6, "s"), (8, 11, "c"))]


def test_what_is_left_when_the_time_is_over_is_plain() -> None:
    lexer = lexer_of("python", "")
    assert lexer is not None
    assert coloured_places(lexer, ["def", "return"], seconds=-1) == [(), ()]


def test_a_language_or_a_file_that_nobody_knows_has_none() -> None:
    assert (lexer_of("no such", ""), lexer_of("", "x.no-such"), lexer_of("", "")) == (None, None, None)


def test_lines_of_a_diff_have_the_class_of_their_sign() -> None:
    lexer = lexer_of("diff", "")
    assert lexer is not None
    assert coloured_places(lexer, ["+new", "-old", " same"]) == [((0, 4, "gi"),), ((0, 4, "gd"),), ()]
