"""Ordinary typing approves nothing and is not lost: random typing over open questions of every kind."""

from collections import Counter
from itertools import accumulate, product
from pathlib import Path

import pytest

from tests.fakes.clock import run_at_once
from tests.person import ALT_P, BACKSPACE, CTRL_O, DOWN, ENTER, ESCAPE, QUIET, SHIFT_TAB, TAB, UP, Person, Stroke
from tests.tui.asked import EDIT, EVERY_KIND
from tests.tui.own_clock import OpenApp, Sent, open_app
from treadle.present.answer_rows import Act
from treadle.protocol.events import Answer
from treadle.protocol.permissions import OptionKind, Question
from treadle.tui.question.asked import choices

YES = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS)
_HAIR = 0.01
"""Seconds that the program may take to answer a key."""

_REMOVING = (BACKSPACE, TAB, ESCAPE, UP, DOWN, CTRL_O)
"""Keys that take characters away, put others from the history in their place, or open the pager, which keeps none."""

_CLOSING = (ENTER,)
"""Keys that close a list."""

_PICKS = set("yYnN0123456789")
"""Characters that may only have moved a choice."""


def check_yes(sent: Sent, begun: float, strokes: list[Stroke], question: Question) -> None:
    """A yes came of Enter by itself (or Shift-Tab on an edit), after a pause."""
    answer = sent.op
    assert isinstance(answer, Answer)
    if answer.option not in YES:
        return
    times = list(accumulate(stroke.pause + (0.0001 if stroke.data else 0) for stroke in strokes))
    pressed = [(begun + at, stroke.data) for at, stroke in zip(times, strokes, strict=True) if stroke.data]
    before = [(at, data) for at, data in pressed if at <= sent.at + _HAIR]
    at, data = before[-1]
    assert data == ENTER or (data == SHIFT_TAB and question is EDIT), (data, before)
    earlier = before[-2][0] if len(before) > 1 else begun
    assert at - earlier >= QUIET - _HAIR, (at, earlier)


def lost(app: OpenApp, strokes: list[Stroke]) -> Counter[str]:
    """The characters typed or pasted that are nowhere any more."""
    typed: Counter[str] = Counter()
    for stroke in strokes:
        data = stroke.data.replace("\x1b[200~", "").replace("\x1b[201~", "")
        if not data.startswith("\x1b"):
            typed.update(char for char in data if char.isprintable() and not char.isspace())
    answers = [sent.op.text for sent in app.live.answers if isinstance(sent.op, Answer)]
    asking = app.dialog.asking
    commands = [f"!{command}" for command in app.live.commands]
    kept = [
        app.draft,
        app.words,
        *app.filtered,
        *app.live.prompts,
        *commands,
        *answers,
        asking.comment if asking is not None else "",
    ]
    typed.subtract(Counter("".join(kept)))
    return Counter({char: count for char, count in typed.items() if count > 0 and char not in _PICKS})


async def typings(numbers: range) -> None:
    """Let somebody type over one question after the other, each of another kind, with and without a draft."""
    kinds = list(product(EVERY_KIND.values(), (False, True)))
    async with open_app() as app:
        for number in numbers:
            question, draft = kinds[number % len(kinds)]
            person = Person(number)
            begun = app.now
            strokes = list(person.types("please look ")) if draft else []
            await app.does(strokes)
            app.ask(question)
            strokes += (more := person.anything())
            await app.does(more)
            for sent in app.live.answers:
                check_yes(sent, begun, strokes, question)
            if not any(stroke.data in _REMOVING for stroke in strokes):
                assert lost(app, strokes) == Counter(), (number, strokes)
            if not app.live.answers:
                await gets_what_was_chosen(app, number)
            await app.done()


OPENED = {
    "models": [Stroke(0.3, ALT_P)],
    "models by name": [Stroke(0.1, "/model"), Stroke(0.1, ENTER)],
    "models, filtered": [Stroke(0.3, ALT_P), Stroke(0.1, "t"), Stroke(0.1, "o")],
    "files": [Stroke(0.1, "look "), Stroke(0.1, "@"), Stroke(0.1, "c")],
    "commands": [Stroke(0.1, "/"), Stroke(0.1, "m")],
    "arguments": [Stroke(0.1, "/mode"), Stroke(0.1, " ")],
}
"""What the person has opened when the question comes."""


async def typings_in_lists(numbers: range, folder: Path) -> None:
    """Let somebody type in a list or a menu while questions of every kind come."""
    for name in ("cart.py", "shop/cart.py", "shop/yes.py", "docs/no 1.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    kinds = list(product(EVERY_KIND.values(), OPENED))
    async with open_app(folder) as app:
        for number in numbers:
            question, opened = kinds[number % len(kinds)]
            person = Person(number)
            begun = app.now
            strokes = list(OPENED[opened])
            await app.does(strokes)
            assert app.surface._lists.pickers.open == opened.startswith("models"), opened
            if person.jitter(0.5):
                strokes += (pause := [Stroke(3 * QUIET, "")])
                await app.does(pause)
            app.ask(question)
            assert not app.dialog.focused, opened
            strokes += (more := person.anything())
            await app.does(more)
            for sent in app.live.answers:
                check_yes(sent, begun, strokes, question)
            if opened.startswith("models") and not any(
                stroke.data in (*_CLOSING, *_REMOVING) for stroke in strokes[2:]
            ):
                assert not app.live.answers
            if opened in ("models", "files") and not any(stroke.data in _REMOVING for stroke in strokes):
                assert lost(app, strokes[1:] if opened == "models" else strokes) == Counter(), (number, strokes)
            await app.close_list()
            if not app.live.answers:
                await gets_what_was_chosen(app, number)
            await app.done()


async def gets_what_was_chosen(app: OpenApp, number: int) -> None:
    """Whoever clears the draft, waits, and presses Enter gets what is chosen."""
    await app.close_pager()
    app.surface.screen.put("")
    while app.dialog.in_field:
        await app.does([Stroke(0.1, ESCAPE), Stroke(0.5, "")])
    await app.does([Stroke(2 * QUIET, "")])
    asking = app.dialog.asking
    if asking is None:
        return
    act = choices(asking)[asking.chosen].act
    await app.does([Stroke(QUIET, ENTER), Stroke(0.1, "")])
    if act is Act.ALLOW and not asking.danger:
        (sent,) = app.live.answers
        assert isinstance(sent.op, Answer)
        assert sent.op.option is OptionKind.ALLOW_ONCE
    elif act is Act.REJECT:
        assert app.live.answers or app.dialog.in_field, number


SAMPLE, ALL, AT_ONCE = 52, 10_000, 26


@pytest.mark.parametrize("first", range(0, SAMPLE, AT_ONCE))
def test_typing_answers_nothing_and_loses_nothing(first: int) -> None:
    run_at_once(typings(range(first, first + AT_ONCE)), outside=True)


@pytest.mark.parametrize(
    "first", [pytest.param(first, marks=pytest.mark.soak if first > 42 else ()) for first in range(0, 2 * 84, 42)]
)
def test_typing_in_a_list_answers_nothing_and_loses_nothing(first: int, tmp_path: Path) -> None:
    run_at_once(typings_in_lists(range(first, first + 42), tmp_path), outside=True)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(SAMPLE, ALL, 500))
def test_ten_thousand_typings_answer_nothing_and_lose_nothing(first: int) -> None:
    for begin in range(first, min(ALL, first + 500), AT_ONCE):
        run_at_once(typings(range(begin, min(ALL, first + 500, begin + AT_ONCE))), outside=True)
