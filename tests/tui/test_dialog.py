"""Who takes the keys of an open question: the rules one by one."""

from tests.tui.asked import BUDGET, DANGER, EDIT, FOLLOWUP, GUIDANCE, RUN, SEVERAL
from treadle.protocol.events import Answer
from treadle.protocol.permissions import Mode, OptionKind, Question
from treadle.tui.question.asked import GivenAnswer, Stage
from treadle.tui.question.dialog import (
    ONCE_MORE,
    Dialog,
    DialogEffect,
    Key,
    NextMode,
    Open,
    Pass,
    Press,
    StopTurn,
    ToDraft,
    due,
    moment,
    opened,
    press,
    touched,
)


class Keyboard:
    """A dialog with its clock; what it wants done is kept."""

    def __init__(self, question: Question, *, draft: bool = False, last_key: float = -10.0) -> None:
        self.at = 0.0
        self.draft = draft
        self.effects: list[DialogEffect] = []
        self.dialog = opened(touched(Dialog(), last_key), question, Mode.ASK, 0.0, draft=draft)

    def wait(self, seconds: float) -> "Keyboard":
        end = self.at + seconds
        while (next_at := due(self.dialog)) is not None and next_at <= end:
            self.at = next_at
            self.dialog = moment(self.dialog, self.at, draft=self.draft)
        self.at = end
        return self

    def press(self, *keys: Key | str, alone: bool = True, gap: float = 0.1) -> "Keyboard":
        for key in keys:
            self.wait(gap)
            pressed = Press(Key.TEXT, key, alone=alone) if isinstance(key, str) else Press(key, alone=alone)
            self.dialog, effects = press(self.dialog, pressed, self.at)
            self.effects += effects
        return self

    @property
    def chosen(self) -> int:
        assert self.dialog.asking is not None
        return self.dialog.asking.chosen

    @property
    def stage(self) -> Stage:
        assert self.dialog.asking is not None
        return self.dialog.asking.stage


def answer(option: OptionKind, *, edits: bool = False) -> GivenAnswer:
    return GivenAnswer(Answer(question_id="q", option=option), edits=edits)


YES, NO = answer(OptionKind.ALLOW_ONCE), answer(OptionKind.REJECT_ONCE)


def test_whoever_waits_and_presses_enter_gets_what_is_chosen() -> None:
    assert Keyboard(RUN).wait(0.8).press(Key.ENTER, gap=0).effects == [YES]
    assert Keyboard(RUN).wait(1).press(Key.DOWN).wait(0.8).press(Key.ENTER, gap=0).effects == [
        answer(OptionKind.ALLOW_ALWAYS)
    ]


def test_enter_right_after_the_question_appeared_answers_nothing() -> None:
    early = Keyboard(RUN).press(Key.ENTER, gap=0.79)
    assert (early.effects, early.dialog.hint) == ([], ONCE_MORE)
    assert early.press(Key.ENTER, gap=0.79).effects == []
    assert early.press(Key.ENTER, gap=0.8).effects == [YES]


def test_a_question_waits_while_somebody_types_or_has_a_draft() -> None:
    typing = Keyboard(RUN, last_key=-0.5)
    assert not typing.dialog.focused
    assert typing.press("y", Key.ENTER, gap=0.2).effects == [Pass(), Pass()]
    assert typing.wait(0.8).dialog.focused
    assert not Keyboard(RUN, draft=True).wait(60).dialog.focused


def test_a_question_that_appeared_while_somebody_typed_takes_enter_a_pause_after_the_last_key() -> None:
    typing = Keyboard(RUN, last_key=-0.1).wait(0.75)
    assert typing.dialog.focused
    assert typing.wait(0.1).press(Key.ENTER, gap=0).effects == [YES]


def test_tab_goes_to_the_question_and_then_to_a_comment() -> None:
    there = Keyboard(RUN, draft=True).press(Key.TAB)
    assert (there.dialog.in_list, there.effects) == (True, [])
    assert there.press(Key.TAB, gap=0.3).stage is Stage.LIST
    assert there.press(Key.TAB, gap=0.7).stage is Stage.COMMENT


def test_a_tab_in_a_paste_goes_to_the_draft() -> None:
    assert Keyboard(RUN, draft=True).press(Key.TAB, alone=False).effects == [Pass()]


def test_letters_that_mean_nothing_go_to_the_draft_with_the_keys() -> None:
    typed = Keyboard(RUN).wait(1).press(Key.DOWN, "a", gap=1)
    assert (typed.effects, typed.dialog.focused, typed.chosen) == ([ToDraft("a")], False, 0)


def test_two_keys_together_are_typing_and_both_go_to_the_draft() -> None:
    assert Keyboard(RUN).wait(1).press("y", "n", gap=0.5).effects == [ToDraft("yn")]
    assert Keyboard(RUN).wait(1).press("y", "e", gap=1).effects == [ToDraft("ye")]
    apart = Keyboard(RUN).wait(1).press("1", "2", gap=0.7)
    assert (apart.effects, apart.chosen) == ([], 1)


def test_several_keys_in_one_read_answer_nothing() -> None:
    assert Keyboard(RUN).wait(1).press(Key.ENTER, alone=False).effects == []
    assert Keyboard(RUN).wait(1).press("y", alone=False).effects == [ToDraft("y")]


def test_a_paste_goes_to_the_draft_and_enter_after_it_too() -> None:
    keyboard = Keyboard(RUN).wait(1)
    keyboard.dialog, effects = press(keyboard.dialog, Press(Key.PASTE, "yes\n"), keyboard.at)
    assert effects == (ToDraft("yes\n"),)
    keyboard.draft = True
    assert keyboard.wait(5).press(Key.ENTER).effects == [Pass()]


def test_keys_that_edit_go_to_the_draft() -> None:
    assert Keyboard(RUN).wait(1).press("y", Key.OTHER).effects == [ToDraft("y"), Pass()]


def test_escape_is_no_and_ctrl_c_is_no_and_stop() -> None:
    assert Keyboard(RUN).press(Key.ESCAPE).effects == [NO]
    assert Keyboard(BUDGET).press(Key.STOP).effects == [NO, StopTurn()]
    assert Keyboard(FOLLOWUP).press(Key.ESCAPE).effects == [StopTurn()]
    assert Keyboard(GUIDANCE).press(Key.STOP).effects == [StopTurn()]


def test_shift_tab_answers_an_edit_with_edits_mode_after_a_pause() -> None:
    assert Keyboard(EDIT).press(Key.SHIFT_TAB).effects == []
    assert Keyboard(EDIT).wait(1).press(Key.SHIFT_TAB).effects == [answer(OptionKind.ALLOW_ONCE, edits=True)]
    assert Keyboard(EDIT, draft=True).wait(1).press(Key.SHIFT_TAB).effects == [Pass()]
    assert Keyboard(RUN).wait(1).press(Key.SHIFT_TAB).effects == [NextMode()]


def test_details_open_and_close_and_the_editor_is_asked_for() -> None:
    details = Keyboard(RUN).press(Key.DETAILS)
    assert details.dialog.asking is not None
    assert details.dialog.asking.details
    (wanted,) = Keyboard(RUN).press(Key.EDIT).effects
    assert isinstance(wanted, Open)
    assert wanted.wanted.text == "python3 -m unittest -q"


def say(keyboard: Keyboard, words: str, key: Key = Key.ENTER, *, gap: float = 0.1) -> Keyboard:
    keyboard.wait(gap)
    keyboard.dialog, effects = press(keyboard.dialog, Press(key, words), keyboard.at)
    keyboard.effects += effects
    return keyboard


def test_danger_begins_with_no_and_wants_yes_typed_and_a_pause() -> None:
    assert Keyboard(DANGER).wait(1).press(Key.ENTER).stage is Stage.INSTEAD
    sure = Keyboard(DANGER).wait(1).press(Key.DOWN).wait(1).press(Key.ENTER)
    assert sure.stage is Stage.SURE
    assert say(sure, "yes").effects == []
    assert say(sure, "yes", gap=1).effects == [YES]


def test_a_comment_entered_at_once_is_kept_and_enter_once_more_sends_it() -> None:
    keyboard = Keyboard(RUN).wait(1).press(Key.TAB)
    assert say(keyboard, "be quick").effects == []
    assert (keyboard.stage, keyboard.dialog.hint) == (Stage.LIST, ONCE_MORE)
    given = GivenAnswer(Answer(question_id="q", option=OptionKind.ALLOW_ONCE, text="be quick"))
    assert keyboard.wait(1).press(Key.ENTER).effects == [given]


def test_escape_in_the_line_of_words_goes_back_to_the_list() -> None:
    keyboard = say(Keyboard(RUN).wait(1).press(Key.TAB), "tabs", Key.ESCAPE)
    assert (keyboard.effects, keyboard.stage) == ([], Stage.LIST)
    assert keyboard.press(Key.ESCAPE).effects == [
        GivenAnswer(Answer(question_id="q", option=OptionKind.REJECT_ONCE, text="tabs"))
    ]


def test_a_tick_needs_no_rest_and_what_is_sent_does() -> None:
    keyboard = Keyboard(SEVERAL).wait(2).press(Key.ENTER, Key.DOWN, Key.DOWN, Key.ENTER)
    assert keyboard.dialog.asking is not None
    assert sorted(keyboard.dialog.asking.ticked) == [0, 2]
    assert (keyboard.press(Key.DOWN, Key.ENTER).effects, keyboard.dialog.hint) == ([], "enter again to confirm")
    sent = GivenAnswer(Answer(question_id="q", option=OptionKind.ANSWER, text="red\ngreen"))
    assert keyboard.wait(1).press(Key.ENTER).effects == [sent]
    typed = Keyboard(SEVERAL).wait(2).press(Key.ENTER, alone=False)
    assert typed.dialog.asking is not None
    assert typed.dialog.asking.ticked == (), "what is pasted ticks nothing"
