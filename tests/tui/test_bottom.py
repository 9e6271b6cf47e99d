"""The rows around the input, as they are drawn at three widths."""

import pytest
from msgspec.structs import replace
from prompt_toolkit.utils import get_cwidth

from tests.tui.drawing import IDLE, STATES, WINDOW, WORKING, below
from treadle.present.view import SessionView
from treadle.protocol.goals import GoalState, GoalStatus
from treadle.protocol.notifications import Phase
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.program_status import program_status
from treadle.tui.paint.theme import ASCII_SIGNS, Signs
from treadle.tui.session.bottom import BottomState, above_rule, clock_runs, placeholder, status


def picture(view: SessionView, around: BottomState, width: int, signs: Signs | None = None) -> str:
    return "".join(f"{line_text(row)}\n" for row in below(view, around, width, signs or Signs()))


def test_nothing_is_wider_than_the_screen() -> None:
    for width in range(20, 130):
        for view, around in STATES.values():
            rows = picture(view, around, width).split("\n")
            assert max(map(get_cwidth, rows)) <= width, (width, rows)


def test_without_utf_8_the_signs_are_ascii() -> None:
    shown = picture(*STATES["working"], 80, ASCII_SIGNS).replace("›", "").replace("⠹", "").replace("·", "")
    assert shown.isascii()


@pytest.mark.parametrize("phase", [Phase.WAITING_FOR_EVENT, Phase.AWAITING_USER_CONFIRMATION])
def test_no_clock_runs_while_a_person_is_awaited(phase: Phase) -> None:
    assert clock_runs(WORKING)
    assert not clock_runs(replace(WORKING, phase=phase))


def test_the_check_of_a_goal_is_named_and_its_time_passes() -> None:
    goal = GoalStatus(condition="tests pass", check="make test")
    view = replace(WORKING, phase=Phase.WAITING_FOR_EVENT, calls=(), goal=goal)
    assert clock_runs(view)
    assert "Checking the goal" in line_text(above_rule(view, BottomState(now=164.0), 80, Signs())[0])
    paused = replace(view, goal=replace(goal, state=GoalState.PAUSED))
    assert "Checking the goal" not in line_text(above_rule(paused, BottomState(now=164.0), 80, Signs())[0])


def test_room_that_is_made_between_turns_is_shown_as_work_that_can_be_stopped() -> None:
    view, around = replace(IDLE, phase=Phase.COMPACTING, since=160.0, received=700), BottomState(now=164.0)
    assert clock_runs(view)
    for width in (70, 120):
        shown = line_text(above_rule(view, around, width, Signs())[0])
        assert "Making room in the context · " in shown
        assert "4 s" in shown
        assert "esc to stop" in shown
        assert not {"turn", "step", "tokens"} & set(shown.split())
        assert "queue" in placeholder(view, around, width)
    assert "state=working" in program_status(view, 1)
    assert above_rule(IDLE, around, 80, Signs()) == []


def test_a_call_counts_its_own_seconds_and_the_turn_leaves_out_what_the_person_took() -> None:
    view = replace(WORKING, waited=30.0)
    shown = line_text(above_rule(view, BottomState(now=164.0), 80, Signs())[0])
    assert "Running ./slow.sh 16 · 12 s · turn 34 s" in shown


def test_the_context_warns_before_it_is_full() -> None:
    states = [BottomState(tokens=tokens, window=WINDOW) for tokens in (10_000, 151_000, 190_000)]
    roles = [{text: role for role, text in status(IDLE, around, 80, Signs())} for around in states]
    assert [roles[0]["10k of 200k (5%)"], roles[1]["151k of 200k (75%)"], roles[2]["190k of 200k (95%)"]] == [
        "dim",
        "warn",
        "danger",
    ]
