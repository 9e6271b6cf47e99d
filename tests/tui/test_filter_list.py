"""A list to choose from: what its filter leaves, where the choice goes, and how it is drawn."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from tests.tui.snapshots import same_as_before
from treadle.app.models.offered import OfferedModel
from treadle.app.reports.known_sessions import ListedSession, SessionState
from treadle.tui.lists.filter_list import PICKER_ROWS, Pick, Picker, PickerRow, Shape, picker_lines, take_key, with_rows
from treadle.tui.lists.filter_list_rows import MODELS, SESSIONS, model_rows, session_rows
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.theme import ASCII_SIGNS, Signs

NOW = 1_800_000_000.0
OFFERED = (
    OfferedModel(
        ref="anthropic/claude-sonnet-4-5",
        title="Anthropic",
        window=200_000,
        price_in=3.0,
        price_out=15.0,
        usable=True,
        key="ANTHROPIC_API_KEY",
        thinks=True,
    ),
    OfferedModel(ref="ollama/qwen3:30b", title="Ollama", window=40_960, price_in=0.0, price_out=0.0, usable=True),
    OfferedModel(ref="openai/gpt-5", title="OpenAI", window=400_000, price_in=1.25, price_out=10.0),
    OfferedModel(ref="openrouter/a-very-long/name-of-a-model-日本-that-goes-on-and-on", title="OpenRouter\x1b[31m"),
)


def listed(identity: str, title: str, *, ago: float, workspace: str, **facts: object) -> ListedSession:
    values = {
        "id": identity,
        "title": title,
        "state": SessionState.DONE,
        "cost": 0.09,
        "known_cost": 0.09,
        "ended": None,
        "workspace": workspace,
        "model": "a/b",
        "created_at": 0,
        "updated_at": int((NOW - ago) * 1000),
        "events": 9,
        "open": False,
        "steps": 6,
        "added": 3,
        "removed": 1,
        "first": title,
        **facts,
    }
    return ListedSession(**values)  # type: ignore[arg-type]


def sessions(folder: Path) -> Sequence[ListedSession]:
    place = str(folder)
    return (
        listed("s1", "Fix the cart total", ago=7_300, workspace=place, first="Fix the cart total\u202e and the rest"),
        listed(
            "s2", "Test the discount", ago=30, workspace=place, open=True, steps=1, added=0, removed=0, known_cost=0.004
        ),
        listed("s3", "日本 \x1b[2J page", ago=200_000, workspace="/gone", cost=None, steps=None, added=0, removed=0),
        listed("s4", "this one", ago=1, workspace=place),
    )


def keyed(picker: Picker, *keys: Pick | str) -> Picker:
    for key in keys:
        picker = take_key(picker, Pick.TEXT, key) if isinstance(key, str) else take_key(picker, key)
    return picker


def models(*keys: Pick | str) -> Picker:
    return keyed(with_rows(MODELS, list(model_rows(OFFERED, "openai/gpt-5")), "openai/gpt-5"), *keys)


def ids(picker: Picker) -> list[str]:
    return [row.id.partition("/")[0] for row in picker.found]


def test_the_model_in_use_is_chosen_first_and_is_there_even_if_nothing_is_known_of_it() -> None:
    assert models().row is not None
    assert getattr(models().row, "id", "") == "openai/gpt-5"
    rows = list(model_rows(OFFERED, "scripted/x"))
    assert (rows[0].id, rows[0].columns[-1], len(rows)) == ("scripted/x", "in use", 5)


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("sonnet", ["anthropic"]),
        ("SON 4 cla", ["anthropic"]),
        ("gpt5", ["openai"]),
        ("no key", ["openrouter"]),
        ("zzz", []),
        ("o", ["anthropic", "ollama", "openai", "openrouter"]),
    ],
)
def test_the_filter_leaves_what_has_each_word(typed: str, left: list[str]) -> None:
    assert ids(models(typed)) == left
    assert ids(models(*typed)) == left


def test_what_has_the_letters_in_order_is_left_only_where_nothing_holds_the_words() -> None:
    assert ids(models("open")) == ["openai", "openrouter"]
    assert ids(models("ntrp")) == ["anthropic", "openrouter"]


@settings(max_examples=40)
@given(st.lists(st.one_of(st.sampled_from(list(Pick)), st.text(max_size=3)), max_size=30))
def test_no_keys_in_any_order_leave_the_list(keys: list[Pick | str]) -> None:
    picker = models(*keys)
    assert picker.row in picker.found if picker.found else picker.row is None
    for width in (20, 60, 100):
        assert all(get_cwidth(line_text(row)) < width for row in picker_lines(picker, width, Signs()))
    assert picker.typed.isprintable()


def test_the_choice_goes_round_and_pages_stop_at_the_ends() -> None:
    rows = [PickerRow(id=str(number), columns=(str(number),), search=str(number)) for number in range(30)]
    picker = with_rows(Picker(title="X", shape=Shape(wide=0)), rows)
    assert [keyed(picker, key).chosen for key in (Pick.UP, Pick.DOWN, Pick.PAGE_DOWN, Pick.PAGE_UP)] == [29, 1, 8, 0]
    assert keyed(picker, *[Pick.PAGE_DOWN] * 9).chosen == 29
    drawn = [line_text(row) for row in picker_lines(keyed(picker, Pick.UP), 40, Signs())]
    assert len(drawn) == PICKER_ROWS + 2
    assert drawn[0].endswith("30/30")


def test_what_was_chosen_stays_so_when_more_is_known() -> None:
    picker = models(Pick.UP)
    assert getattr(with_rows(picker, list(model_rows(OFFERED[::-1], "x/y"))).row, "id", "") == "ollama/qwen3:30b"


def test_pasted_lines_are_one_line_of_the_filter() -> None:
    assert models("gp\nt\x1b").typed == "gpt"
    assert len(models("x" * 5_000).typed) == 200


def test_a_list_that_is_being_read_or_empty_says_so() -> None:
    assert line_text(picker_lines(SESSIONS, 80, Signs())[1]) == "  Reading…"
    assert "No other session" in line_text(picker_lines(with_rows(SESSIONS, []), 80, Signs())[1])
    assert line_text(picker_lines(models("zzz"), 80, Signs())[1]) == "  Nothing fits."


def test_a_session_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    rows = {row.id: row for row in session_rows(sessions(tmp_path), NOW, folders=False, without="s4")}
    assert {name: row.flaw for name, row in rows.items()} == {
        "s1": "",
        "s2": "",
        "s3": "Its folder is gone: /gone",
    }


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({}, "$0.09"),
        ({"cost": None}, "over $0.09"),
        ({"cost": None, "known_cost": 0.0}, "cost unknown"),
        ({"cost": None, "known_cost": 0.0, "steps": None}, ""),
    ],
)
def test_a_session_says_what_is_known_of_its_cost_once_its_log_was_read(
    tmp_path: Path, facts: dict[str, object], shown: str
) -> None:
    (row,) = session_rows([listed("s1", "Fix it", ago=9, workspace=str(tmp_path), **facts)], NOW, folders=False)
    assert row.columns[5] == shown


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({"state": SessionState.DONE}, ""),
        ({"state": SessionState.STOPPED, "ended": "cancelled"}, "stopped"),
        ({"state": SessionState.STOPPED, "steps": None}, ""),
        ({"state": SessionState.WORKING, "open": True}, "working"),
        ({"state": SessionState.WAITING, "open": True}, "waiting"),
        ({"state": SessionState.DONE, "open": True}, "open"),
    ],
)
def test_a_session_that_is_not_just_done_says_how_it_is(tmp_path: Path, facts: dict[str, object], shown: str) -> None:
    session = listed("s1", "Fix it", ago=9, workspace=str(tmp_path), **facts)
    (row,) = session_rows([session], NOW, folders=False)
    assert row.columns[2] == shown
    assert shown in row.search


def test_the_lists_have_their_pictures() -> None:
    here = Path("/")
    drawn: list[str] = []
    for width, signs in ((40, Signs()), (80, Signs()), (120, Signs()), (80, ASCII_SIGNS)):
        own = with_rows(SESSIONS, list(session_rows(sessions(here), NOW, folders=False, without="s4")))
        every = with_rows(SESSIONS, list(session_rows(sessions(here), NOW, folders=True)))
        shown = (models(), models("4 s"), models("zzz"), SESSIONS, own, keyed(own, Pick.DOWN), every)
        for picker in shown:
            rows = picker_lines(picker, width, signs)
            assert all(get_cwidth(line_text(row)) < width for row in rows)
            drawn += [f"== {width}", *(line_text(row).rstrip() for row in rows)]
    same_as_before("pickers", "\n".join([*drawn, ""]))
