"""The first lines of a session, at every width."""

import pytest

from treadle.present.view import SessionView
from treadle.present.words import ago
from treadle.protocol.notifications import ChildChanged
from treadle.tui.paint.lines import cells, line_text
from treadle.tui.paint.printed_items import Greeting
from treadle.tui.paint.printed_lines import item_lines
from treadle.tui.paint.theme import ASCII_SIGNS, Signs
from treadle.tui.session.greeting import kept_line

GREETING = Greeting(
    "0.1.0", "anthropic/claude-sonnet-4-5", "ask", "~/shop", "master", "Fix the cart total\x1b[2J, 2 h ago"
)


def shown(width: int, signs: Signs | None = None, greeting: Greeting = GREETING) -> list[str]:
    rows = item_lines(greeting, width, signs or Signs())
    assert all(cells(row) <= width for row in rows)
    return [line_text(row) for row in rows]


def test_two_lines_name_the_model_the_folder_and_the_session_before() -> None:
    assert shown(90) == [
        "▞▚ Treadle 0.1.0 · claude-sonnet-4-5 (Anthropic) · ask mode",
        "   ~/shop (master) · last session: Fix the cart total\\x1b[2J, 2 h ago (/resume)",
    ]


def test_on_a_wide_terminal_they_are_one() -> None:
    (row,) = shown(150)
    assert row == " · ".join(one.strip() for one in shown(90))


def test_they_wrap_in_forty_columns_and_are_ascii_where_there_is_no_utf_8() -> None:
    assert len(shown(40)) == 5
    assert "".join(shown(40, ASCII_SIGNS)).isascii()


def test_without_a_session_before_there_is_nothing_to_resume() -> None:
    assert shown(80, greeting=Greeting("0.1.0", "a/b", "ask", "~/shop"))[1] == "   ~/shop"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (7_300, "2 h ago"),
        (90_000, "1 d ago"),
        (1e7, "115 d ago"),
    ],
)
def test_how_long_ago_a_session_was(seconds: float, words: str) -> None:
    assert ago(seconds) == words


def test_whoever_leaves_reads_how_many_subagents_go_on_with_the_session() -> None:
    child = ChildChanged(session_id="c", agent="explore", task="Look.", background=True)
    told = kept_line("Fix it", SessionView(children=(child, child)), 1)
    assert told == "Session kept: Fix it · 1 turn · $0.00 · 2 subagents paused until it is resumed"
    assert "subagent" not in kept_line("Fix it", SessionView(), 1)
