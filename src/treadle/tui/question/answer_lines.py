"""The answers of a question as lines, the beginning of its line of words, and what its keys do."""

from collections.abc import Iterator

from treadle.present.answer_rows import Act, AnswerRow
from treadle.present.escape import printable
from treadle.present.words import clip_text
from treadle.protocol.permissions import QuestionKind
from treadle.tui.paint.lines import Line, clip, line, wrap
from treadle.tui.paint.theme import Signs
from treadle.tui.question.asked import WITH_NO, Asking, Stage, choices, main_text
from treadle.tui.question.asked_about import clipped
from treadle.tui.question.dialog import Dialog

MOST_CHOICE = 3
"""Rows of one answer."""


def choice_rows(asking: Asking, width: int, signs: Signs) -> list[Line]:
    """Lay out the list of answers; none while a line of words is asked for."""
    if asking.field:
        return []
    rows: list[Line] = []
    for number, choice in enumerate(choices(asking)):
        row = choice_row(choice, width, signs, chosen=number == asking.chosen)
        rows += clipped(row, MOST_CHOICE, width, signs)
    return rows


def long_choices(asking: Asking, width: int, most: int = MOST_CHOICE) -> list[Line]:
    """Lay out the answers that are longer than `most` rows."""
    rows = [choice_row(choice, width, Signs(), chosen=False) for choice in choices(asking)]
    return [part for row in rows if len(row) > most for part in row]


def choice_row(choice: AnswerRow, width: int, signs: Signs, *, chosen: bool) -> list[Line]:
    """Lay out one answer whole."""
    label = printable(" ".join(choice.label.split()))
    mark = f"{signs.chosen} " if chosen else " " * (len(signs.chosen) + 1)
    return wrap(line(("accent" if chosen else "", mark + label)), width, indent=line("  "))


_FIELDS = {
    Stage.INSTEAD: "No. Do this instead: ",
    Stage.WORDS: "Your answer: ",
    Stage.SURE: "Type yes to continue: ",
}


def field_begin(asking: Asking, width: int, signs: Signs) -> Line:
    """Say what is written, and which answer Enter gives with it, in a part of the row."""
    text = _FIELDS.get(asking.stage, "")
    if asking.stage is Stage.COMMENT:
        begin = choices(asking)[asking.chosen]
        text = f"{'Yes' if begin.act is Act.ALLOW else clip_text(begin.label, 24)}, and tell Treadle: "
    return clip(line(("accent", f"{signs.chosen} {text}")), max(8, width - 12), f"{signs.more} ")


def hint_rows(dialog: Dialog, asking: Asking, width: int, signs: Signs, *, pager: bool) -> list[Line]:
    """Say what the keys do, or what the last one did not."""
    if dialog.hint:
        return [clip(line(("warn", dialog.hint)), width, signs.more)]
    hints = list(_hints(asking, signs, pager=pager))
    joined = f" {signs.dot} "
    while len(hints) > 2 and len(joined.join(hints)) > width - 1:
        hints.pop(-3 if pager and len(hints) > 3 else -2)
    return [clip(line(("dim", joined.join(hints))), width, signs.more)]


def _hints(asking: Asking, signs: Signs, *, pager: bool) -> Iterator[str]:
    if asking.field:
        yield "enter confirm" if asking.stage is not Stage.INSTEAD else "enter send"
    else:
        yield f"{signs.arrows} enter"
    if asking.stage is not Stage.LIST:
        if pager:
            yield "ctrl-o all"
        yield "esc back"
        return
    permission = asking.question.kind is QuestionKind.PERMISSION
    if permission:
        yield "tab add a comment"
    if main_text(asking) is not None:
        yield "ctrl-g edit first"
    if pager:
        yield "ctrl-o all"
    elif permission:
        yield "ctrl-o less" if asking.details else "ctrl-o details"
    if asking.question.copy is not None:
        yield "esc discard"
        return
    yield "esc no" if asking.question.kind in WITH_NO else "esc stop"
