"""Characters that SEARCH and REPLACE share keep the form that the file has them in."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.editing import Edit, EditFormat, EditResult, Tier, apply_edit
from treadle.editing.file_form import shared
from treadle.editing.line_keys import TYPOGRAPHIC

ALIKE = [(raw, plain) for raw, plain in TYPOGRAPHIC.items() if plain]
UNSEEN = [raw for raw, plain in TYPOGRAPHIC.items() if not plain]
ACCENTS = [(unicodedata.normalize("NFD", char), char) for char in "éüñåộ가"]
PAIRS = [*ALIKE, *ACCENTS, *(("x" + raw, "x") for raw in UNSEEN)]

plain = st.sampled_from([(char, char) for char in "ab(),.;'\"- =1é"])
swapped = st.sampled_from([*PAIRS, *((written, raw) for raw, written in PAIRS)])
units = st.lists(st.one_of(plain, swapped), max_size=8)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """A file, SEARCH with look-alikes of it, REPLACE with one change on some lines, and what must come of it."""
    file, search, new, expected = [], [], [], []
    for number in range(draw(st.integers(1, 6))):
        chosen = [("“", '"'), (f"word{number}",) * 2, *draw(units), (f"end{number}",) * 2]
        low = draw(st.integers(2, len(chosen) - 1))
        high = draw(st.integers(low, len(chosen) - 1))
        file.append("".join(raw for raw, _ in chosen))
        search.append("".join(written for _, written in chosen))
        if number and draw(st.booleans()):
            low = high = len(chosen)
            mark = ""
        else:
            mark = f"Ω{number}Ψ"
        new.append("".join(written for _, written in chosen[:low]) + mark + "".join(w for _, w in chosen[high:]))
        expected.append("".join(raw for raw, _ in chosen[:low]) + mark + "".join(raw for raw, _ in chosen[high:]))
    return ("\n".join(file), "\n".join(search), "\n".join(new), "\n".join(expected))


@settings(max_examples=400)
@given(edits(), st.sampled_from(["", "before\n"]), st.sampled_from(["\n", "\nafter — “it”\n"]))
def test_every_span_that_is_not_changed_keeps_its_bytes(
    case: tuple[str, str, str, str], before: str, after: str
) -> None:
    file, search, new, expected = case

    result = apply_edit(EditFormat.OLD_NEW, before + file + after, [Edit(search + "\n", new + "\n")])

    assert isinstance(result, EditResult), result
    assert result.text == before + expected + after


@pytest.mark.parametrize(("raw", "written"), PAIRS)
def test_each_look_alike_stays_beside_a_change(raw: str, written: str) -> None:
    result = apply_edit(
        EditFormat.OLD_NEW, f"say{raw}one two\n", [Edit(f"say{written}one two\n", f"say{written}one 2\n")]
    )

    assert isinstance(result, EditResult)
    assert result.text == f"say{raw}one 2\n"
    assert result.blocks[0].tier is Tier.TYPOGRAPHY


def test_a_form_that_the_model_changes_on_purpose_is_changed() -> None:
    result = apply_edit(EditFormat.OLD_NEW, "“a”\u00a0b\n", [Edit("“a” b\n", '"a" b\n')])

    assert isinstance(result, EditResult)
    assert result.text == '"a"\u00a0b\n'


def test_a_line_that_only_moves_keeps_its_form() -> None:
    result = apply_edit(EditFormat.OLD_NEW, "“a”\n“b”\nend\n", [Edit('"a"\n"b"\nend\n', 'end\n"b"\n"a"\n')])

    assert isinstance(result, EditResult)
    assert result.text == "end\n“b”\n“a”\n"


@settings(max_examples=200)
@given(st.text("ab \n", max_size=40), st.text("ab \n", max_size=40))
def test_shared_runs_are_equal_and_in_order(old: str, new: str) -> None:
    runs = shared(old, new)

    assert all(old[start:end] == new[at : at + end - start] for start, end, at in runs)
    assert all(one[1] <= other[0] and one[2] + one[1] - one[0] <= other[2] for one, other in pairwise(runs))


@pytest.mark.parametrize(
    ("old", "new", "runs"),
    [
        ("key a a a", "a a a key", [(0, 3, 6)]),
        ("a a a key", "key a a a", [(6, 9, 0)]),
        ("one two", "two one", [(4, 7, 0)]),
    ],
)
def test_a_word_that_both_texts_have_once_holds_its_place(old: str, new: str, runs: list[tuple[int, int, int]]) -> None:
    assert shared(old, new) == runs
