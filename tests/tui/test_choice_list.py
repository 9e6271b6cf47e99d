"""A list before a session: typing never chooses, Enter does after a pause, Esc takes the row that is safe."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.tui.lists.choice_list import (
    Chooser,
    Choosing,
    Chosen,
    ListRow,
    begin,
    chooser_lines,
    details_fit,
    due_at,
    rest,
    rows_changed,
    take,
    whole_lines,
)
from treadle.tui.paint.lines import cells, line_text
from treadle.tui.paint.theme import ASCII_SIGNS, Signs
from treadle.tui.question.dialog import ONCE_MORE, QUIET_SECONDS, Key, Press

FOLDER = Choosing(
    title="Do you trust this folder?",
    about="~/shop",
    text=("It has rules for the model (AGENTS.md).",),
    details=tuple(f"  rules  {number:016}  {number}/AGENTS.md" for number in range(30)),
    rows=(ListRow("Not now"), ListRow("Yes, trust it"), ListRow("Never for this folder")),
    leaving="not now",
    approves=True,
)
NAMES = ("Anthropic", "OpenAI", "Google Gemini", "Groq", *(f"Provider {number}" for number in range(50)))
PROVIDERS = Choosing(title="Whose API key?", rows=tuple(map(ListRow, NAMES)), escape=None, filters=True)


@dataclass
class Hand:
    """Presses keys at times, and lets the timer of the list run as the app does."""

    choosing: Choosing
    now: float = 0.0

    def __post_init__(self) -> None:
        self.chooser: Chooser = begin(self.choosing, self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        while (at := due_at(self.chooser)) is not None and at <= self.now:
            self.chooser = rest(self.chooser, max(at, 0.0))

    def press(self, key: Key, text: str = "", *, alone: bool = True, pasted: bool = False) -> Chosen | None:
        taken = take(self.chooser, Press(key, text, alone, pasted), self.now)
        if isinstance(taken, Chosen):
            return taken
        self.chooser = taken
        return None

    @property
    def shown(self) -> list[str]:
        return [line_text(row) for row in chooser_lines(self.chooser, 80, 23, Signs())]


KEYS = st.one_of(
    st.builds(Press, st.sampled_from([Key.ENTER, Key.DOWN]), st.just(""), st.booleans()),
    st.just(Press(Key.ENTER)),
    st.builds(Press, st.just(Key.TEXT), st.sampled_from("yn123abcä "), st.booleans()),
    st.builds(Press, st.just(Key.PASTE), st.just("2\ny\n"), st.booleans()),
    st.builds(Press, st.sampled_from([key for key in Key if key is not Key.TEXT]), st.just(""), st.booleans()),
)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.05, 0.4, 0.79, 0.81, 2.0]), KEYS), max_size=12))
def test_only_enter_after_a_pause_takes_a_row_and_escape_takes_the_safe_one(strokes: list[tuple[float, Press]]) -> None:
    hand, last = Hand(FOLDER), 0.0
    for pause, pressed in strokes:
        hand.wait(pause)
        chosen = hand.chooser.chosen
        taken = hand.press(pressed.key, pressed.text, alone=pressed.alone)
        if taken is None:
            last = last if pressed.key in (Key.DETAILS, Key.TAB, Key.SHIFT_TAB, Key.EDIT, Key.STOP) else hand.now
            continue
        if pressed.key is Key.ESCAPE:
            assert taken == Chosen(0, "Not now")
        else:
            assert (pressed.key, pressed.alone, taken.row) == (Key.ENTER, True, chosen)
            assert hand.now - last >= QUIET_SECONDS - 0.01
        return


def test_whoever_waits_and_presses_enter_gets_what_is_chosen() -> None:
    hand = Hand(FOLDER)
    hand.press(Key.DOWN)
    hand.wait(QUIET_SECONDS)
    assert hand.press(Key.ENTER) == Chosen(1, "Yes, trust it")


def test_enter_too_early_asks_for_another_one() -> None:
    hand = Hand(FOLDER)
    hand.wait(0.5)
    assert hand.press(Key.ENTER) is None
    assert hand.shown[-1] == f"▎ {ONCE_MORE}"
    hand.wait(QUIET_SECONDS)
    assert hand.press(Key.ENTER) == Chosen(0, "Not now")


def test_digits_and_arrows_move_and_letters_go_back_to_the_safe_row() -> None:
    hand = Hand(FOLDER)
    hand.press(Key.TEXT, "3")
    assert hand.chooser.chosen == 2
    hand.wait(1)
    hand.press(Key.TEXT, "9")
    assert hand.chooser.chosen == 0
    for letter in "yes":
        hand.press(Key.TEXT, letter)
        assert hand.chooser.chosen == 0


def test_other_rows_keep_the_choice_and_enter_wants_a_moment_again() -> None:
    short = Choosing(title="How?", rows=(ListRow("Key"), ListRow("Demo")), escape=None)
    hand = Hand(short)
    hand.press(Key.DOWN)
    hand.wait(1)
    longer = Choosing(title="How?", rows=(ListRow("Key"), ListRow("Local"), ListRow("Demo")), escape=None)
    hand.chooser = rows_changed(hand.chooser, longer, hand.now)
    assert hand.press(Key.ENTER) is None
    hand.wait(1)
    assert hand.press(Key.ENTER) == Chosen(2, "Demo")
    assert hand.press(Key.ESCAPE) == Chosen(None)


def test_a_list_that_approves_nothing_takes_a_row_at_once() -> None:
    hand = Hand(replace(FOLDER, approves=False))
    assert hand.press(Key.ENTER, alone=False) is None  # pasted
    hand.press(Key.DOWN)
    assert hand.press(Key.ENTER) == Chosen(1, "Yes, trust it")


def test_typing_searches_a_long_list_and_enter_need_not_wait_after_it() -> None:
    hand = Hand(PROVIDERS)
    hand.wait(1)
    for letter in "groq":
        hand.press(Key.TEXT, letter)
    assert hand.shown[1:3] == ["▎   › groq", "▎ ❯ Groq"]
    assert hand.press(Key.ENTER) == Chosen(3, "Groq")


def test_nothing_is_taken_where_nothing_fits_and_escape_first_empties_the_search() -> None:
    hand = Hand(PROVIDERS)
    hand.wait(1)
    for letter in "zzz":
        hand.press(Key.TEXT, letter)
    assert hand.press(Key.ENTER) is None
    assert "nothing fits" in hand.shown[1]
    hand.press(Key.OTHER, "\x7f")
    assert "› zz" in hand.shown[1]
    assert hand.press(Key.ESCAPE) is None
    assert hand.shown[1] == "▎   Type to search."
    assert hand.press(Key.ESCAPE) == Chosen(None)


def test_a_key_that_is_pasted_into_the_search_is_not_shown() -> None:
    hand = Hand(PROVIDERS)
    hand.press(Key.PASTE, "sk-secret-1")
    for letter in "sk-secret-2":
        hand.press(Key.TEXT, letter, alone=False, pasted=True)
    assert "secret" not in "\n".join(hand.shown)


def test_letters_that_a_slow_connection_sends_together_are_searched_for() -> None:
    hand = Hand(PROVIDERS)
    for letter in "ider 16":
        hand.press(Key.TEXT, letter, alone=False)
    assert "› ider 16" in hand.shown[1]


def test_a_long_list_shows_the_rows_around_the_choice_and_where_it_is() -> None:
    hand = Hand(PROVIDERS)
    for _ in range(20):
        hand.press(Key.DOWN)
    assert sum("❯" in row for row in hand.shown) == 1
    assert any("Provider 16" in row and "21/54" in row for row in hand.shown)
    assert len(hand.shown) == 11


@pytest.mark.parametrize("signs", [Signs(), ASCII_SIGNS], ids=["utf-8", "ascii"])
@pytest.mark.parametrize("width", [20, 40, 80, 120])
@pytest.mark.parametrize("opened", [False, True])
def test_the_answers_are_in_sight_at_every_size(signs: Signs, width: int, opened: bool) -> None:
    hand = Hand(FOLDER)
    if opened:
        hand.press(Key.DETAILS)
    rows = chooser_lines(hand.chooser, width, 12, signs)
    shown = [line_text(row) for row in rows]
    assert len(rows) <= 12 + 2
    assert all(cells(row) <= width for row in rows)
    assert "Not now" in "\n".join(shown)
    assert "Never for this" in "\n".join(shown)
    assert all(text.startswith(signs.bar) for text in shown)


def test_details_that_are_too_long_are_counted_and_the_pager_has_all() -> None:
    hand = Hand(FOLDER)
    assert not details_fit(hand.chooser, 80, 23)
    hand.press(Key.DETAILS)
    assert any("more lines, ctrl-o shows all" in row for row in hand.shown)
    assert any("29/AGENTS.md" in line_text(row) for row in whole_lines(FOLDER, 80))


@given(st.sampled_from([FOLDER, PROVIDERS]), st.integers(0, 53), st.integers(20, 120), st.integers(2, 30))
def test_the_answer_that_enter_takes_and_the_title_are_on_the_screen(
    choosing: Choosing, moved: int, width: int, rows: int
) -> None:
    hand = Hand(choosing)
    for _ in range(min(moved, len(choosing.rows) - 1)):
        hand.press(Key.DOWN)
    shown = [line_text(row) for row in chooser_lines(hand.chooser, width, rows, Signs())]
    assert len(shown) <= rows
    assert all(cells(row) <= width for row in chooser_lines(hand.chooser, width, rows, Signs()))
    assert hand.chooser.chosen is not None
    assert any(f"❯ {choosing.rows[hand.chooser.chosen].label}"[: width // 3] in row for row in shown), shown
    assert choosing.title[: width // 3] in shown[0]
    assert rows < 3 or "enter" in shown[-1]
