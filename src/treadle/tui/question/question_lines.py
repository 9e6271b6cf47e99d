"""A question as lines for the bottom of the screen: what it is about, the answers, and what the keys do."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.answer_rows import Act, AnswerRow
from treadle.present.escape import exact, printable
from treadle.present.grants import grants_of
from treadle.present.question_words import AskedPart, QuestionWords, asked_in_words, in_short
from treadle.present.words import counted
from treadle.protocol.permissions import QuestionKind
from treadle.tui.paint.diff_rows import counts, diff_lines, edit_block_lines, is_folded
from treadle.tui.paint.lines import Line, apart, cells, clip, line, middle_out, wrap
from treadle.tui.paint.theme import Signs
from treadle.tui.question.asked import WITH_NO, Asking, Stage, choices, main_text
from treadle.tui.question.dialog import Dialog

_NARROW = 60
_LEAST_TEXT = 4
_USUAL_TEXT = 12
"""Rows of what a question is about, before the middle is left out; with the details open all that there is room for."""

_MOST_TITLE = _MOST_CHOICE = 3
_ROWS_APART = 3
"""A blank line and a rule above a question, and a blank line below it."""


class QuestionRows(Struct, frozen=True, kw_only=True):
    """A question that has the keys: what is above its line of words, what that line begins with, and what is below.

    Without a line of words all is above. `pager`: with its details it is too long for the screen; the pager shows it.
    """

    above: list[Line]
    field: Line = ()
    under: list[Line] = []
    pager: bool = False


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


def question_lines(dialog: Dialog, roots: Sequence[str], *, width: int, rows: int, signs: Signs) -> QuestionRows:
    """Lay out the question that has the keys, in at most about `rows` rows; what they cannot hold is counted.

    Where there is room for that too, a rule and blank lines keep it apart from what is above and below.
    """
    laid = _question_rows(dialog, roots, width=width, rows=rows, signs=signs)
    if len(laid.above) + bool(laid.field) + len(laid.under) + _ROWS_APART > rows:
        return laid
    head: list[Line] = [(), line(("dim", signs.rule * width))]
    if laid.field:
        return replace(laid, above=[*head, *laid.above], under=[*laid.under, ()])
    return replace(laid, above=[*head, *laid.above, ()])


def _question_rows(dialog: Dialog, roots: Sequence[str], *, width: int, rows: int, signs: Signs) -> QuestionRows:
    asking = dialog.asking
    assert asking is not None  # noqa: S101 - whoever asks has one
    bar = (("danger" if asking.danger else "warn", signs.bar), ("", " "))
    inner = width - cells(bar)
    below = _choice_rows(asking, inner, signs)
    room = rows - len(below) - 1
    about = _about(asking, roots, inner)
    details = _details(asking, roots, inner)
    pager = (
        is_folded(_diff_of(asking))
        or not about.fits(room - len(details), len(about.text))
        or bool(_long_choices(asking, inner))
    )
    limit = max(_LEAST_TEXT, room - len(about.head) - len(about.tail))
    above = about.shown(room, limit if asking.details else min(_USUAL_TEXT, limit), inner, signs)
    if asking.details:
        above += _clipped(details, room - len(above), inner, signs)
    hints = _hint_rows(dialog, asking, inner, signs, pager=pager)
    if not asking.field:
        return QuestionRows(above=_barred(bar, [*above, *below, *hints]), pager=pager)
    field = (*bar, *_field_begin(asking, signs))
    return QuestionRows(above=_barred(bar, above), field=field, under=_barred(bar, hints), pager=pager)


def whole_question(asking: Asking, roots: Sequence[str], width: int, signs: Signs) -> list[Line]:
    """Lay out all that a question is about, however long it is."""
    rows = question_text(asking, roots, width)
    diff = _diff_of(asking)
    if diff:
        rows += [(), *diff_lines(diff, width, signs, whole=True)]
    for more in (_long_choices(asking, width), _details(asking, roots, width)):
        rows += [(), *more] if more else []
    return rows


def question_text(asking: Asking, roots: Sequence[str], width: int) -> list[Line]:
    """Lay out what is asked, what would run or change, and why that is asked."""
    about = _about(asking, roots, width)
    return [*about.head, *about.text, *about.tail]


def _diff_of(asking: Asking) -> str:
    """Give the diff that stands above the question, where it is what is asked about."""
    preview = asking.question.preview
    shown = preview is not None and preview.is_diff and asking.changed is None and asking.stage is not Stage.BLOCKS
    return preview.text if preview is not None and shown else ""


class _About(Struct, frozen=True):
    """The title, the exact text, and what else is to be said."""

    head: list[Line]
    text: list[Line]
    tail: list[Line]

    def fits(self, room: int, limit: int) -> bool:
        """Whether nothing of it is left out."""
        return len(self.text) <= limit and len(self.head) + len(self.text) + len(self.tail) <= room

    def shown(self, room: int, limit: int, width: int, signs: Signs) -> list[Line]:
        """Give as much of it as there is room for; the end of the text too."""
        if self.fits(room, limit):
            return [*self.head, *self.text, *self.tail]
        head = _clipped(self.head, _MOST_TITLE, width, signs)
        tail = _clipped(self.tail, max(2, (room - len(head)) // 2), width, signs)
        limit = max(_LEAST_TEXT, min(limit, room - len(head) - len(tail)))
        text = middle_out(self.text, limit, _more_lines(len(self.text) - limit + 1, width, signs))
        return [*head, *text, *tail]


def _clipped(rows: list[Line], limit: int, width: int, signs: Signs) -> list[Line]:
    if len(rows) <= limit:
        return rows
    kept = max(0, limit - 1)
    return [*rows[:kept], _more_lines(len(rows) - kept, width, signs)]


def _more_lines(count: int, width: int, signs: Signs) -> Line:
    text = f"  {signs.more} {counted(count, 'more line')}, ctrl-o shows all"
    return clip(line(("dim", text)), width, signs.more)


def _barred(bar: Line, rows: Sequence[Line]) -> list[Line]:
    return [(*bar, *row) for row in rows]


def _about(asking: Asking, roots: Sequence[str], width: int) -> _About:
    match asking.stage:
        case Stage.BLOCKS:
            title = f"Block {len(asking.kept) + 1} of {len(asking.blocks)}"
            name = asking.question.arguments.get("path", "")
            return _About([line(("bold", title))], edit_block_lines(asking.block, width, str(name)), [])
        case Stage.RULE:
            what = "setting" if asking.question.kind is QuestionKind.ELICITATION else "rule"
            return _About([line(("bold", f"Save this {what}?"))], [], list(_rule_rows(asking, width)))
        case _:
            shown = asked_in_words(asking.question, roots)
            text = shown.text if asking.changed is None else exact(asking.changed.text)
            more = list(_more(asking, shown, width))
            return _About(_title(asking, shown, width), _text_rows(text, width, shown), more)


def _title(asking: Asking, shown: QuestionWords, width: int) -> list[Line]:
    begin = line(("danger-word", "DANGER"), "  ") if asking.danger else ()
    if asking.question.kind is not QuestionKind.PERMISSION:
        return wrap(line(("bold", shown.title)), width)
    title = (*begin, ("bold", shown.title))
    why = line(("warn", shown.whole_headline)) if shown.headline else ()
    if shown.counted.startswith("+"):
        rows = wrap((*title, ("", "   "), *counts(shown.counted)), width)
    else:
        note = line(("dim", shown.counted)) if shown.counted else () if asking.danger else why
        together = apart(title, note, width - 1) if note else None
        if together is not None:
            return [together]
        rows = wrap(title, width)
        why = note or why
    return [*rows, *wrap((("", "  "), *why), width, indent=line("  "))] if why else rows


def _text_rows(text: str, width: int, shown: QuestionWords | None = None) -> list[Line]:
    """Give the exact text, indented and wrapped; a part that stands out is underlined."""
    if not text:
        return []
    rows: list[Line] = []
    for part in text.rstrip("\n").split("\n"):
        row = line("  ", *_marked(part.expandtabs(4), shown))
        rows += wrap(row, width, indent=line("  "))
    return rows


def _marked(text: str, shown: QuestionWords | None) -> Line:
    for part in shown.parts if shown is not None else ():
        if part.effect.warns and part.text in text:
            before, found, after = text.partition(part.text)
            return line(before, ("bold underline", found), after)
    return line(text)


def _more(asking: Asking, shown: QuestionWords, width: int) -> Iterator[Line]:
    if shown.rights:
        yield from wrap(line(("warn", f"  {shown.rights}")), width, indent=line("  "))
    for part in () if asking.danger else shown.parts:
        yield from _part_rows(part, width)
    for sentence in shown.why:
        yield from wrap(line(f"  {sentence}"), width, indent=line("  "))
    if asking.comment:
        yield from wrap(line(("dim", "  you say: "), printable(" ".join(asking.comment.split()))), width, line("  "))


def _details(asking: Asking, roots: Sequence[str], width: int) -> list[Line]:
    rows: list[Line] = []
    for detail in asked_in_words(asking.question, roots).details:
        for part_of in detail.split("\n"):
            rows += wrap(line(("dim", f"  {part_of}")), width, indent=line("    "))
    return rows


def _part_rows(part: AskedPart, width: int) -> list[Line]:
    where = f"   ({part.where})" if part.where else ""
    text = " ".join(part.text.split("\n"))
    verb = ("warn" if part.effect.warns else "dim", f"  {part.effect.verb:<8} ")
    row = (verb, ("", text), ("dim", where))
    return wrap(row, width, indent=line(" " * 11))


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
        row = _choice_row(choice, width, signs, chosen=number == asking.chosen)
        rows += _clipped(row, _MOST_CHOICE, width, signs)
    return rows


def _long_choices(asking: Asking, width: int) -> list[Line]:
    """Lay out the answers that are too long for the list."""
    rows = [_choice_row(choice, width, Signs(), chosen=False) for choice in choices(asking)]
    return [part for row in rows if len(row) > _MOST_CHOICE for part in row]


def _choice_row(choice: AnswerRow, width: int, signs: Signs, *, chosen: bool) -> list[Line]:
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


def _hint_rows(dialog: Dialog, asking: Asking, width: int, signs: Signs, *, pager: bool) -> list[Line]:
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
