"""A question as lines for the bottom of the screen: what it is about, the answers, and what the keys do."""

from collections.abc import Iterator, Sequence

from treadle.app.presentation.escape import exact, printable
from treadle.app.presentation.questions import Asked, AskedPart, asked, grants_of, in_short, is_edit
from treadle.protocol.permissions import QuestionKind
from treadle.tui.asking import Act, Asking, Choice, Stage, choices, main_text
from treadle.tui.dialog import Dialog
from treadle.tui.lines import Line, apart, cells, clip, line, middle_out, wrap
from treadle.tui.theme import Signs

_NARROW = 60
_LEAST_TEXT = 4
_USUAL_TEXT = 12
"""Rows of what a question is about, before the middle is left out; with the details open all that there is room for."""


def waiting_line(dialog: Dialog, width: int, signs: Signs) -> Line:
    """Show in one line that a question is open while keys go to the draft."""
    if dialog.asking is None:
        return ()
    question = dialog.asking.question
    role = "danger" if dialog.asking.danger else "warn"
    how = "   tab to answer" if width >= _NARROW else "  tab"
    begin = f"{signs.bar} Treadle needs an answer: " if width >= _NARROW else f"{signs.bar} Answer: "
    room = width - len(begin) - len(how) - 1
    about = clip(line(in_short(question).partition("\n")[0]), room, signs.more)
    return (*line((role, begin)), *about, ("", "?"), ("dim", how))


def question_lines(
    dialog: Dialog, roots: Sequence[str], *, width: int, rows: int, signs: Signs
) -> tuple[list[Line], Line, list[Line]]:
    """Lay out the question that has the keys, in at most about `rows` rows.

    Gives what is above its line of words, what that line begins with, and what is below; without one all is above.
    """
    asking = dialog.asking
    assert asking is not None  # noqa: S101 - whoever asks has one
    bar = (("danger" if asking.danger else "warn", signs.bar), ("", " "))
    inner = width - cells(bar)
    below = _choice_rows(asking, inner, signs)
    hints = _hint_rows(dialog, asking, inner, signs)
    head, text, tail = _about(asking, roots, inner)
    fixed = len(head) + len(tail) + len(below) + len(hints)
    limit = max(_LEAST_TEXT, rows - fixed) if asking.details else max(_LEAST_TEXT, min(_USUAL_TEXT, rows - fixed))
    shows = "" if asking.details else ", ctrl-o shows more"
    hint = line(("dim", f"  {signs.more} {len(text) - limit + 1:,} more lines{shows}"))
    above = [*head, *middle_out(text, limit, hint), *tail]
    if asking.details:
        above += _details(asking, roots, inner, rows - fixed - min(limit, len(text)))
    if not asking.field:
        return _barred(bar, [*above, *below, *hints]), (), []
    return _barred(bar, above), (*bar, *_field_begin(asking, signs)), _barred(bar, hints)


def _barred(bar: Line, rows: Sequence[Line]) -> list[Line]:
    return [(*bar, *row) for row in rows]


def _about(asking: Asking, roots: Sequence[str], width: int) -> tuple[list[Line], list[Line], list[Line]]:
    """Give the title, the exact text, and what else is to be said."""
    match asking.stage:
        case Stage.BLOCKS:
            title = f"Block {len(asking.kept) + 1} of {len(asking.blocks)}"
            return [line(("bold", title))], _text_rows(asking.block, width), []
        case Stage.RULE:
            return [line(("bold", "Save this rule?"))], [], list(_rule_rows(asking, width))
        case _:
            shown = asked(asking.question, roots)
            text = shown.text if asking.changed is None else exact(asking.changed.text)
            return _title(asking, shown, width), _text_rows(text, width, shown), list(_more(asking, shown, width))


def _title(asking: Asking, shown: Asked, width: int) -> list[Line]:
    begin = line(("danger-word", "DANGER"), "  ") if asking.danger else ()
    if asking.question.kind is not QuestionKind.PERMISSION:
        return wrap(line(("bold", shown.title)), width)
    title = (*begin, ("bold", shown.title))
    note = line(("warn" if shown.meaning.warns else "dim", shown.meaning.note))
    together = apart(title, note, width - 1) if shown.meaning.note and not asking.danger else None
    if together is not None:
        return [together]
    rows = wrap(title, width)
    return rows if asking.danger or not shown.meaning.note else [*rows, *wrap((("", "  "), *note), width)]


def _text_rows(text: str, width: int, shown: Asked | None = None) -> list[Line]:
    """Give the exact text, indented and wrapped; a part that stands out is underlined."""
    if not text:
        return []
    rows: list[Line] = []
    for part in text.rstrip("\n").split("\n"):
        row = line("  ", *_marked(part.expandtabs(4), shown))
        rows += wrap(row, width, indent=line("  "))
    return rows


def _marked(text: str, shown: Asked | None) -> Line:
    for part in shown.parts if shown is not None else ():
        if part.meaning.warns and part.text in text:
            before, found, after = text.partition(part.text)
            return line(before, ("bold underline", found), after)
    return line(text)


def _more(asking: Asking, shown: Asked, width: int) -> Iterator[Line]:
    for part in () if asking.danger else shown.parts:
        yield from _part_rows(part, width)
    for sentence in shown.why:
        yield from wrap(line(f"  {sentence}"), width, indent=line("  "))
    if asking.comment:
        yield from wrap(line(("dim", "  you say: "), printable(" ".join(asking.comment.split()))), width, line("  "))


def _details(asking: Asking, roots: Sequence[str], width: int, limit: int) -> list[Line]:
    rows: list[Line] = []
    for detail in asked(asking.question, roots).details:
        for part_of in detail.split("\n"):
            rows += wrap(line(("dim", f"  {part_of}")), width, indent=line("    "))
    if len(rows) <= limit:
        return rows
    kept = max(0, limit - 1)
    return [*rows[:kept], line(("dim", f"  and {len(rows) - kept:,} more lines"))]


def _part_rows(part: AskedPart, width: int) -> list[Line]:
    where = f"   ({part.where})" if part.where else ""
    text = " ".join(part.text.split("\n"))
    verb = ("warn" if part.meaning.warns else "dim", f"  {part.meaning.verb:<8} ")
    row = (verb, ("", text), ("dim", where))
    return wrap(row, width, indent=line(" " * 11))[:3]


def _rule_rows(asking: Asking, width: int) -> Iterator[Line]:
    grants = grants_of(asking.question)
    if grants is None:
        return
    yield from wrap(line(f"  Always allow {grants.rule}, {grants.where}."), width, indent=line("  "))
    for label, example in (("allows", grants.match), ("asks", grants.other)):
        if example:
            yield from wrap(line(("dim", f"  {label:<7} "), example), width, indent=line(" " * 10))


def _choice_rows(asking: Asking, width: int, signs: Signs) -> list[Line]:
    if asking.field:
        return []
    rows: list[Line] = []
    for number, choice in enumerate(choices(asking)):
        rows += _choice_row(choice, width, signs, chosen=number == asking.chosen)
    return rows


def _choice_row(choice: Choice, width: int, signs: Signs, *, chosen: bool) -> list[Line]:
    label = printable(" ".join(choice.label.split()))
    mark = f"{signs.chosen} " if chosen else " " * (len(signs.chosen) + 1)
    return wrap(line(("accent" if chosen else "", mark + label)), width, indent=line("  "))


_FIELDS = {
    Stage.INSTEAD: "No. Do this instead: ",
    Stage.WORDS: "Your answer: ",
    Stage.SURE: "Type yes to continue: ",
}


def _field_begin(asking: Asking, signs: Signs) -> Line:
    if asking.stage is Stage.COMMENT:
        begin = choices(asking)[asking.chosen]
        label = "Yes" if begin.act is Act.ALLOW else begin.label
        return line(("accent", f"{signs.chosen} {label if len(label) < 24 else 'Yes'}, and tell Treadle: "))
    return line(("accent", f"{signs.chosen} {_FIELDS[asking.stage]}"))


def _hint_rows(dialog: Dialog, asking: Asking, width: int, signs: Signs) -> list[Line]:
    if dialog.hint:
        return [clip(line(("warn", dialog.hint)), width, signs.more)]
    hints = list(_hints(asking, signs))
    joined = f" {signs.dot} "
    while len(hints) > 2 and len(joined.join(hints)) > width - 1:
        hints.pop(-2)
    return [clip(line(("dim", joined.join(hints))), width, signs.more)]


def _hints(asking: Asking, signs: Signs) -> Iterator[str]:
    if asking.field:
        yield "enter confirm" if asking.stage is not Stage.INSTEAD else "enter send"
        yield "esc back"
        return
    yield f"{signs.arrows} enter"
    if asking.stage is not Stage.LIST:
        yield "esc back"
        return
    permission = asking.question.kind is QuestionKind.PERMISSION
    if permission:
        yield "tab add a comment"
    if main_text(asking) is not None:
        yield "ctrl-g edit first"
    if permission:
        yield "ctrl-o less" if asking.details else "ctrl-o all" if is_edit(asking.question) else "ctrl-o details"
    yield "esc no" if permission or asking.question.kind is QuestionKind.BUDGET else "esc stop"
