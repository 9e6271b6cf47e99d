"""What a question is about, as lines: its title, the exact text, why that is asked, and the details."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.answer_rows import BLOCKS_ARGUMENT, EditFirst
from treadle.present.asked_parts import AskedPart, AskedPiece, pieces_of
from treadle.present.escape import exact, printable
from treadle.present.grants import grants_of
from treadle.present.question_words import QuestionWords, asked_in_words
from treadle.present.words import counted
from treadle.protocol.permissions import QuestionKind
from treadle.tui.paint.diff_rows import counts, edit_block_lines
from treadle.tui.paint.lines import Line, apart, clip, line, middle_out, wrap
from treadle.tui.paint.theme import Signs
from treadle.tui.question.asked import Asking, Stage

_INSTEAD = "This is your change. It applies in place of the diff above."
_EDITS = frozenset({BLOCKS_ARGUMENT, "patch"})
"""Arguments that hold an edit: lines that go and lines that come."""

_LEAST_TEXT = 4
_MOST_TITLE = 3


class AskedAbout(Struct, frozen=True):
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
        head = clipped(self.head, _MOST_TITLE, width, signs)
        tail = clipped(self.tail, max(2, (room - len(head)) // 2), width, signs)
        limit = max(_LEAST_TEXT, min(limit, room - len(head) - len(tail)))
        text = middle_out(self.text, limit, more_lines(len(self.text) - limit + 1, width, signs))
        return [*head, *text, *tail]


def question_text(asking: Asking, roots: Sequence[str], width: int) -> list[Line]:
    """Lay out what is asked, what would run or change, and why that is asked."""
    about = about_of(asking, roots, width)
    return [*about.head, *about.text, *about.tail]


def diff_of(asking: Asking) -> str:
    """Give the diff that stands above the question, where it is what is asked about."""
    preview = asking.question.preview
    shown = preview is not None and preview.is_diff and asking.changed is None and asking.stage is not Stage.BLOCKS
    return preview.text if preview is not None and shown else ""


def clipped(rows: list[Line], limit: int, width: int, signs: Signs) -> list[Line]:
    """Give the first rows, and where there are more than `limit`, how many more."""
    if len(rows) <= limit:
        return rows
    kept = max(0, limit - 1)
    return [*rows[:kept], more_lines(len(rows) - kept, width, signs)]


def more_lines(count: int, width: int, signs: Signs) -> Line:
    """Say how many lines are left out."""
    text = f"  {signs.more} {counted(count, 'more line')}, ctrl-o shows all"
    return clip(line(("dim", text)), width, signs.more)


def about_of(asking: Asking, roots: Sequence[str], width: int) -> AskedAbout:
    """Lay out what is asked at the stage that it is at; the diff above the question is no part of it."""
    match asking.stage:
        case Stage.BLOCKS:
            title = f"Block {len(asking.kept) + 1} of {len(asking.blocks)}"
            name = asking.question.arguments.get("path", "")
            return AskedAbout([line(("bold", title))], edit_block_lines(asking.block, width, str(name)), [])
        case Stage.RULE:
            what = "setting" if asking.question.kind is QuestionKind.ELICITATION else "rule"
            return AskedAbout([line(("bold", f"Save this {what}?"))], [], list(_rule_rows(asking, width)))
        case _:
            shown = asked_in_words(asking.question, roots)
            text = _text_rows(shown.text, width, shown)
            if asking.changed is not None:
                shown, text = _changed(asking, asking.changed, shown, width)
            head, why = _title(asking, shown, width)
            return AskedAbout(head, text, [*why, *_more(asking, shown, width)])


def _changed(asking: Asking, changed: EditFirst, shown: QuestionWords, width: int) -> tuple[QuestionWords, list[Line]]:
    """Give what is asked as the person changed it: an edit as the lines that go and come, without its markers."""
    preview = asking.question.preview
    if preview is None or not preview.is_diff:
        return shown, _text_rows(exact(changed.text), width, shown)
    words = replace(shown, counted="", why=(_INSTEAD, *shown.why))
    if changed.name not in _EDITS:
        return words, _text_rows(exact(changed.text), width)
    return words, edit_block_lines(changed.text, width, str(asking.question.arguments.get("path", "")))


def _title(asking: Asking, shown: QuestionWords, width: int) -> tuple[list[Line], list[Line]]:
    """Give the rows of the title, and the reason in its own rows where it has no room at the right of the title."""
    begin = line(("danger-word", "DANGER"), "  ") if asking.danger else ()
    if asking.question.kind is not QuestionKind.PERMISSION:
        return wrap(line(("bold", shown.title)), width), []
    title = (*begin, ("bold", shown.title))
    why = line(("warn", shown.whole_headline)) if shown.headline else ()
    if shown.counted.startswith("+"):
        rows = wrap((*title, ("", "   "), *counts(shown.counted)), width)
    else:
        note = line(("dim", shown.counted)) if shown.counted else () if asking.danger else why
        together = apart(title, note, width - 1) if note else None
        if together is not None:
            return [together], []
        rows = wrap(title, width)
        why = note or why
    return rows, wrap((("", "  "), *why), width, indent=line("  ")) if why else []


def _text_rows(text: str, width: int, shown: QuestionWords | None = None) -> list[Line]:
    """Give the exact text, indented and wrapped; a part that stands out is underlined."""
    if not text:
        return []
    whole = text.rstrip("\n").expandtabs(4)
    marked: list[list[tuple[str, str]]] = [[("", "  ")]]
    for piece in [AskedPiece(whole)] if shown is None else pieces_of(whole, shown.every):
        style = "bold underline" if piece.warns else ""
        first, *others = piece.text.split("\n")
        marked[-1].append((style, first))
        marked += [[("", "  "), (style, one)] for one in others]
    return [row for spans in marked for row in wrap(line(*spans), width, indent=line("  "))]


def _more(asking: Asking, shown: QuestionWords, width: int) -> Iterator[Line]:
    if shown.rights:
        yield from wrap(line(("warn", f"  {shown.rights}")), width, indent=line("  "))
    for part in () if asking.danger else shown.parts:
        yield from _part_rows(part, width)
    for sentence in shown.why:
        yield from wrap(line(f"  {sentence}"), width, indent=line("  "))
    if asking.comment:
        yield from wrap(line(("dim", "  you say: "), printable(" ".join(asking.comment.split()))), width, line("  "))


def details_of(asking: Asking, roots: Sequence[str], width: int) -> list[Line]:
    """Lay out what Ctrl-O adds."""
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
