"""Forms of running calls: what they ask for in words, and what a person's words fill in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.present.forms import filled_in, form_lines

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "How are you called?"},
        "age": {"type": "integer"},
        "loud": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["red", "green"]},
    },
    "required": ["name", "colour"],
}
ONE = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_a_form_says_what_it_wants_and_what_it_has() -> None:
    assert list(form_lines(FORM, {"name": "Ada"})) == [
        "name (string): How are you called? = Ada",
        "age (integer, optional)",
        "loud (boolean, optional)",
        "colour (red | green)",
    ]


@pytest.mark.parametrize(
    ("words", "known", "values", "wrong"),
    [
        ("name='Ada L' colour=red", {}, {"name": "Ada L", "colour": "red"}, ""),
        ("age=36 loud=yes", {"name": "Ada"}, {"name": "Ada", "age": 36, "loud": True}, "Missing: colour."),
        ("colour=blue", {}, {}, "colour: it is one of red, green"),
        ("loud=maybe", {}, {}, "loud: it is yes or no"),
        ("shoe=9", {}, {}, "There is no field shoe."),
        ("Ada", {}, {}, "Write name=value: Ada"),
        ("name='Ada", {}, {}, "This cannot be read: No closing quotation."),
        ("", {}, {}, "Missing: name, colour."),
    ],
)
def test_words_fill_a_form_in(words: str, known: dict[str, Any], values: dict[str, Any], wrong: str) -> None:
    assert filled_in(FORM, words, known) == (values, wrong)


@given(st.text(min_size=1))
def test_the_only_field_takes_the_words_as_they_are(words: str) -> None:
    assert filled_in(ONE, words, {}) == ({"name": words}, "")


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.dictionaries(st.text(), inner)), st.text())
def test_a_broken_form_breaks_nothing(about: Any, words: str) -> None:
    form = {"properties": {"a": about}, "required": ["a"]}
    assert isinstance(list(form_lines(form, {})), list)
    assert isinstance(filled_in(form, words, {}), tuple)
