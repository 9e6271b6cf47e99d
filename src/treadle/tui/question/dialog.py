"""Who takes the keys while a question is open, the draft or the question, and what a key does to the question.

Pure: every key and every moment comes with its time, in seconds on any steady clock. What decides is not how much time
has passed when a key is taken, but whether `moment` has seen the pause before it. A key that came early and is read
late, because the program was busy, is never taken for one after a pause.
"""

from enum import Enum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.answer_rows import Act, EditFirst
from treadle.protocol.permissions import Mode, Question
from treadle.tui.question.asked import (
    WITH_NO,
    Asking,
    AskingStep,
    GivenAnswer,
    ShowWhole,
    Stage,
    ask,
    back,
    choices,
    comment,
    confirm,
    keep_words,
    main_text,
    may_switch,
    move,
    no,
    pick,
    restart,
    take_words,
)

QUIET_SECONDS = 0.8
"""Seconds without a key before a question takes keys by itself, and before Enter says yes."""

TOGETHER = 0.6
"""Seconds between two keys that are one piece of typing."""

ONCE_MORE = "enter again to confirm"
TOO_LOW = "Make the window higher to answer."

EVERY_ANSWER = range(1 << 30)
"""The places of the answers that are on the screen, where all are."""


class Key(Enum):
    """A key as far as a question tells them apart; `TEXT` prints a character, `OTHER` is any that edits or moves."""

    TEXT = "text"
    ENTER = "enter"
    TAB = "tab"
    SHIFT_TAB = "shift-tab"
    UP = "up"
    DOWN = "down"
    ESCAPE = "escape"
    STOP = "ctrl-c"
    DETAILS = "ctrl-o"
    EDIT = "ctrl-g"
    PASTE = "paste"
    OTHER = "other"


class Press(Struct, frozen=True):
    """A key with what it prints, and whether it came by itself: with others in one read it is no answer.

    With `pasted` so many came with it that no hand typed them, however slow the connection is. `drawn` are the places
    of the answers that were on the screen, none where the text was not: it takes no other.
    """

    key: Key
    text: str = ""
    alone: bool = True
    pasted: bool = False
    drawn: range = EVERY_ANSWER


class Dialog(Struct, frozen=True, kw_only=True):
    """The open question and the keys.

    `key_at` is when the last key came, `shown_at` when the question appeared. `quiet` says that `QUIET_SECONDS` have
    passed since the last key, `rested` since both. `typed` are the characters since then that only moved the choice.
    """

    asking: Asking | None = None
    focused: bool = False
    quiet: bool = False
    rested: bool = False
    key_at: float = float("-inf")
    shown_at: float = float("-inf")
    typed: str = ""
    typed_at: float = float("-inf")
    hint: str = ""

    @property
    def in_list(self) -> bool:
        """Whether keys go to the list of answers."""
        return self.focused and self.asking is not None and not self.asking.field

    @property
    def in_field(self) -> bool:
        """Whether keys go to the question's line of words."""
        return self.focused and self.asking is not None and self.asking.field


class ToDraft(Struct, frozen=True):
    """These characters belong to the draft, at the cursor."""

    text: str


class Pass(Struct, frozen=True):
    """The key is for the draft, which has the keys now."""


class NextMode(Struct, frozen=True):
    """The session is to go to the next mode."""


class Open(Struct, frozen=True):
    """The person wants to change this text in an editor."""

    wanted: EditFirst


class StopTurn(Struct, frozen=True):
    """The turn is to stop."""


DialogEffect: TypeAlias = GivenAnswer | ShowWhole | ToDraft | Pass | NextMode | Open | StopTurn
Heard: TypeAlias = tuple[Dialog, tuple[DialogEffect, ...]]


def opened(dialog: Dialog, question: Question, mode: Mode, at: float, *, draft: bool) -> Dialog:
    """A question is the first one now; it takes the keys at once if there is no draft and nobody types."""
    quiet = _passed(dialog.key_at, at)
    asking = ask(question, mode)
    return Dialog(asking=asking, focused=quiet and not draft, quiet=quiet, key_at=dialog.key_at, shown_at=at)


def question_changed(dialog: Dialog, asking: Asking, at: float) -> Dialog:
    """The person changed in an editor what the question is about: it appears anew."""
    return replace(dialog, asking=asking, focused=True, rested=False, shown_at=at, typed="", hint="")


def closed(dialog: Dialog) -> Dialog:
    """No question is open any more."""
    return Dialog(key_at=dialog.key_at)


def touched(dialog: Dialog, at: float) -> Dialog:
    """A key came, for whomever."""
    return replace(dialog, key_at=at, quiet=False, rested=False)


def moment(dialog: Dialog, at: float, *, draft: bool) -> Dialog:
    """See what the time makes of it; `draft` says whether there is one. To be called at `due`, from a timer.

    A timer runs after what was read before it: where the program was busy, keys that came meanwhile go first.
    """
    if dialog.asking is None:
        return dialog
    quiet = dialog.quiet or _passed(dialog.key_at, at)
    rested = dialog.rested or (quiet and _passed(dialog.shown_at, at))
    return replace(dialog, quiet=quiet, rested=rested, focused=dialog.focused or (quiet and not draft))


def due(dialog: Dialog) -> float | None:
    """Say when `moment` should be called next; None when only a key changes something."""
    if dialog.asking is None or dialog.rested:
        return None
    return (dialog.shown_at if dialog.quiet else dialog.key_at) + QUIET_SECONDS


def _passed(since: float, at: float) -> bool:
    # A timer may fire a hair early on a clock of its own.
    return at - since >= QUIET_SECONDS - 0.001


def press(dialog: Dialog, pressed: Press, at: float) -> Heard:
    """Take a key."""
    asking = dialog.asking
    after = replace(touched(dialog, at), hint="")
    if asking is None or not dialog.focused:
        if asking is not None and pressed.key is Key.TAB and pressed.alone:
            return replace(after, focused=True), ()
        return after, (Pass(),)
    if pressed.key is Key.STOP:
        return _unfocused(after), tuple(dict.fromkeys((*_no(asking), StopTurn())))
    if asking.field:
        return _in_field(dialog, after, asking, pressed)
    return _in_list(dialog, after, asking, pressed)


def _in_list(before: Dialog, after: Dialog, asking: Asking, pressed: Press) -> Heard:
    match pressed.key:
        case Key.TEXT | Key.PASTE | Key.OTHER:
            return _typing(before, after, asking, pressed)
        case Key.ENTER:
            return _enter(before, after, asking, pressed) if asking.chosen in pressed.drawn else _hidden(after)
        case Key.UP | Key.DOWN:
            moved = move(asking, 1 if pressed.key is Key.DOWN else -1)
            return replace(after, asking=moved, typed=""), ()
        case Key.TAB:
            # Twice in one movement is what people press to complete a word.
            apart = after.key_at - before.key_at >= TOGETHER
            return replace(after, asking=comment(asking) if apart else asking, typed=""), ()
        case _:
            return _other_answers(before, after, asking, pressed)


def _hidden(after: Dialog) -> Heard:
    return replace(after, hint=TOO_LOW), ()


def _other_answers(before: Dialog, after: Dialog, asking: Asking, pressed: Press) -> Heard:
    after = replace(after, typed="")
    match pressed.key:
        case Key.SHIFT_TAB if asking.stage is Stage.LIST and may_switch(asking):
            return _to_edits(before, after, asking, pressed)
        case Key.ESCAPE:
            earlier = back(asking)
            return (after, _no(asking)) if earlier is None else (replace(after, asking=earlier), ())
        case Key.DETAILS:
            return replace(after, asking=replace(asking, details=not asking.details)), ()
        case Key.EDIT:
            wanted = main_text(asking)
            return after, () if wanted is None else (Open(wanted),)
        case Key.SHIFT_TAB:
            return after, (NextMode(),)
        case _:
            return after, ()


def _to_edits(before: Dialog, after: Dialog, asking: Asking, pressed: Press) -> Heard:
    """Say yes to an edit and to the ones after it; where that answer is not on the screen it is chosen, and so is."""
    chosen = next(at for at, row in enumerate(choices(asking)) if row.act is Act.EDITS)
    with_edits = replace(asking, chosen=chosen)
    if before.rested and pressed.alone and chosen in pressed.drawn:
        return _taken(after, confirm(with_edits))
    return replace(
        after, asking=asking if chosen in pressed.drawn else with_edits, hint="shift-tab again to go to edits mode"
    ), ()


def _typing(before: Dialog, after: Dialog, asking: Asking, pressed: Press) -> Heard:
    """A character moves the choice if it may mean that; else everything typed is the draft's, and the keys with it."""
    if pressed.key is Key.TEXT and pressed.alone:
        alone = not before.typed or after.key_at - before.typed_at >= TOGETHER
        picked = pick(asking, pressed.text) if alone else None
        if picked is not None:
            return replace(after, asking=picked, typed=before.typed + pressed.text, typed_at=after.key_at), ()
    text = before.typed + (pressed.text if pressed.key is not Key.OTHER else "")
    effects: tuple[DialogEffect, ...] = (ToDraft(text),) if text else ()
    if pressed.key is Key.OTHER:
        effects = (*effects, Pass())
    return _unfocused(replace(after, asking=restart(asking))), effects


def _unfocused(dialog: Dialog) -> Dialog:
    return replace(dialog, focused=False, typed="")


def _enter(before: Dialog, after: Dialog, asking: Asking, pressed: Press) -> Heard:
    taken = confirm(asking)
    ticks = asking.question.multiple and isinstance(taken, Asking)  # it answers nothing yet
    if not pressed.alone or not (before.rested or ticks):
        return replace(after, hint=ONCE_MORE), ()
    return _taken(replace(after, typed=""), taken)


def _taken(dialog: Dialog, taken: AskingStep) -> Heard:
    if isinstance(taken, GivenAnswer | ShowWhole):
        return dialog, (taken,)
    return replace(dialog, asking=taken), ()


def _in_field(before: Dialog, after: Dialog, asking: Asking, pressed: Press) -> Heard:
    """Take a key that the line of words does not take itself; `text` is what stands in it."""
    words = pressed.text
    match pressed.key:
        case Key.ENTER if not pressed.alone:
            return after, ()
        case Key.ENTER if not pressed.drawn:
            return _hidden(after)
        case Key.ENTER if before.rested or asking.stage in (Stage.INSTEAD, Stage.WORDS):
            return _taken(after, take_words(asking, words))
        case Key.ENTER if asking.stage is Stage.COMMENT:
            return replace(after, asking=keep_words(asking, words), hint=ONCE_MORE), ()
        case Key.ENTER:
            return replace(after, hint=ONCE_MORE), ()
        case Key.ESCAPE:
            return replace(after, asking=keep_words(asking, words)), ()
        case _:
            return after, ()


def _no(asking: Asking) -> tuple[DialogEffect, ...]:
    """Say no; where there is no no, the turn stops."""
    if asking.question.kind in WITH_NO:
        return (no(asking),)
    return (StopTurn(),)
