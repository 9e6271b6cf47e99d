"""A list to choose from before there is a session: what is asked, what a key does to it, and how it is drawn.

Pure. Who takes the keys is the dialog of questions: a list is a question with the keys. Where a row approves something,
that dialog says when Enter confirms, too.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.escape import printable
from treadle.protocol.permissions import Question, QuestionKind
from treadle.tui.draft.menu import MenuEntry, fitting
from treadle.tui.paint.lines import Line, apart, cells, clip, line, line_text, wrap
from treadle.tui.paint.theme import Signs
from treadle.tui.question.asked import Asking, GivenAnswer
from treadle.tui.question.dialog import QUIET_SECONDS, Dialog, Key, Press, due, moment, press

_MOST_ROWS = 8
_LONGEST_FILTER = 24
_RUB_OUT = ("\x7f", "\x08")


class ListRow(Struct, frozen=True):
    """One answer, and what is said of it beside it."""

    label: str
    about: str = ""


class Choosing(Struct, frozen=True, kw_only=True):
    """What is to be chosen.

    `about` follows the title, `text` is sentences below it; `problem` is what went wrong before. `details` are lines
    that Ctrl-O shows. Esc takes the row `escape`, or none; `leaving` is what the hint calls that. In a list with
    `filters` what is typed filters the rows. `first` is the number of the row that is chosen in the beginning. A list
    that `approves` something takes Enter only once nobody typed for a while; in any other one key takes a row.
    """

    title: str
    rows: tuple[ListRow, ...]
    about: str = ""
    text: tuple[str, ...] = ()
    problem: str = ""
    details: tuple[str, ...] = ()
    escape: int | None = 0
    leaving: str = "back"
    filters: bool = False
    first: int = 0
    approves: bool = False


class Chosen(Struct, frozen=True):
    """The number of the row that was taken, None for none, and its label."""

    row: int | None
    label: str = ""


class Chooser(Struct, frozen=True, kw_only=True):
    """How far the choice is: the dialog, what is typed to filter the rows, and whether the details are open.

    `changed_at` is when the rows became others while the list was shown.
    """

    choosing: Choosing
    dialog: Dialog
    typed: str = ""
    opened: bool = False
    changed_at: float = float("-inf")

    @property
    def asking(self) -> Asking:
        """The list as a question."""
        assert self.dialog.asking is not None  # noqa: S101 - it is made with one and never closed
        return self.dialog.asking

    @property
    def rows(self) -> Sequence[int]:
        """Numbers of the rows that fit what is typed."""
        return fitting_rows(self.choosing, self.typed)

    @property
    def chosen(self) -> int | None:
        """The number of the chosen row; None where no row fits."""
        return self.rows[self.asking.chosen] if self.rows else None


def begin(choosing: Choosing, at: float) -> Chooser:
    """Show a list from now on; times are in seconds on any steady clock."""
    asking = replace(_ask(choosing, ""), chosen=choosing.first)
    return Chooser(choosing=choosing, dialog=Dialog(asking=asking, focused=True, shown_at=at))


def rows_changed(chooser: Chooser, choosing: Choosing, at: float) -> Chooser:
    """Show other rows; the choice stays where it was, and Enter wants a moment to have seen them."""
    chosen = chooser.chosen
    label = chooser.choosing.rows[chosen].label if chosen is not None else ""
    rows = [choosing.rows[number].label for number in fitting_rows(choosing, chooser.typed)]
    asking = replace(_ask(choosing, chooser.typed), chosen=rows.index(label) if label in rows else 0)
    dialog = replace(chooser.dialog, asking=asking, shown_at=at, rested=False)
    return replace(chooser, choosing=choosing, dialog=dialog, changed_at=at)


def due_at(chooser: Chooser) -> float | None:
    """Say when `rest` should be called next."""
    return due(chooser.dialog)


def rest(chooser: Chooser, at: float) -> Chooser:
    """See that nobody typed for a while."""
    return replace(chooser, dialog=moment(chooser.dialog, at, draft=False))


def take(chooser: Chooser, pressed: Press, at: float) -> Chooser | Chosen:
    """Take a key."""
    choosing = chooser.choosing
    match pressed.key:
        case Key.ESCAPE if chooser.typed:
            return _filtered(chooser, "")
        case Key.ESCAPE:
            return _taken(choosing, choosing.escape)
        case Key.DETAILS:
            return replace(chooser, opened=not chooser.opened and bool(choosing.details))
        case Key.TEXT if choosing.filters:
            # What comes in one piece may be a key that was pasted too early; it is not shown.
            typed = chooser.typed if pressed.pasted else chooser.typed + pressed.text
            return _filtered(chooser, typed[:_LONGEST_FILTER].lstrip())
        case Key.OTHER if choosing.filters and pressed.text in _RUB_OUT:
            return _filtered(chooser, chooser.typed[:-1])
        case Key.TAB | Key.SHIFT_TAB | Key.EDIT | Key.STOP:
            return chooser
        case Key.ENTER if chooser.chosen is None:
            return chooser
        case Key.ENTER if pressed.alone and not choosing.approves and at - chooser.changed_at >= QUIET_SECONDS:
            return _taken(choosing, chooser.chosen)
        case _:
            return _pressed(chooser, pressed, at)


def _pressed(chooser: Chooser, pressed: Press, at: float) -> Chooser | Chosen:
    dialog, effects = press(chooser.dialog, pressed, at)
    if any(isinstance(effect, GivenAnswer) for effect in effects):
        return _taken(chooser.choosing, chooser.chosen)
    return replace(chooser, dialog=replace(dialog, focused=True))


def _taken(choosing: Choosing, row: int | None) -> Chosen:
    return Chosen(row, "" if row is None else choosing.rows[row].label)


def _filtered(chooser: Chooser, typed: str) -> Chooser:
    dialog = replace(chooser.dialog, asking=_ask(chooser.choosing, typed), hint="")
    return replace(chooser, typed=typed, dialog=dialog)


def _ask(choosing: Choosing, typed: str) -> Asking:
    labels = tuple(choosing.rows[number].label for number in fitting_rows(choosing, typed))
    question = Question(id="list", kind=QuestionKind.FOLLOWUP, text=choosing.title, options=labels)
    return Asking(question=question, words=False)


def fitting_rows(choosing: Choosing, typed: str) -> Sequence[int]:
    """Give the numbers of the rows that fit what is typed, all of them where that is nothing."""
    entries = [MenuEntry(f"{row.label} {row.about}", "", str(number)) for number, row in enumerate(choosing.rows)]
    return [int(entry.becomes) for entry in fitting(typed, entries)] if typed else range(len(entries))


def chooser_lines(chooser: Chooser, width: int, rows: int, signs: Signs) -> list[Line]:
    """Lay the list out in at most `rows` rows; where they are too few for all of it, the chosen answer comes first."""
    choosing, bar = chooser.choosing, line(("warn", signs.bar), " ")
    inner = width - cells(bar)
    below = _choice_rows(chooser, inner, max(3, min(_MOST_ROWS, rows - 4)), signs)
    above = wrap(line(("bold", choosing.title), *((("", f"  {choosing.about}"),) if choosing.about else ())), inner)
    if choosing.problem:
        above += wrap(line(("warn", f"  {choosing.problem}")), inner, line("  "))
    for sentence in choosing.text:
        above += wrap(line(f"  {sentence}"), inner, line("  "))
    if chooser.opened:
        above += _details(choosing, inner)
    room = max(2, rows - len(below) - 1)
    if len(above) > room:
        left_out = f"  {signs.more} {len(above) - room + 1} more lines, ctrl-o shows all"
        above = [*above[: room - 1], clip(line(("dim", left_out)), inner, signs.more)]
    shown = [*above, *below, _hints(chooser, inner, signs)]
    low = _low_rows(chooser, above[0], width=inner, rows=rows, signs=signs)
    return [(*bar, *row) for row in (shown if len(shown) <= rows else low)]


def _low_rows(chooser: Chooser, title: Line, *, width: int, rows: int, signs: Signs) -> list[Line]:
    """Lay out the chosen answer, the title, the keys, and other answers as far as there is room, in one row each."""
    shown, chosen = chooser.rows, chooser.asking.chosen
    others = max(0, min(rows - 3, len(shown) - 1))
    first = max(0, min(chosen - others // 2, len(shown) - 1 - others))
    answers = []
    for place in range(first, min(len(shown), first + others + 1)):
        mark = signs.chosen if place == chosen else " " * len(signs.chosen)
        label = f"{mark} {printable(chooser.choosing.rows[shown[place]].label)}"
        count = line(("dim", f"{chosen + 1}/{len(shown)}" if place == chosen and others + 1 < len(shown) else ""))
        row = clip(
            line(("accent" if place == chosen else "", label)),
            width - (cells(count) + 2 if line_text(count) else 0),
            signs.more,
        )
        answers.append(apart(row, count, width) or row)
    above = [clip(title, width, signs.more)] if rows > len(answers[:1]) else []
    return [*above, *answers, *([_hints(chooser, width, signs)] if rows > 2 else [])]


def details_fit(chooser: Chooser, width: int, rows: int) -> bool:
    """Whether the details could be shown above the answers."""
    choosing = chooser.choosing
    text = sum(len(wrap(line(f"  {sentence}"), width - 2, line("  "))) for sentence in choosing.text)
    return len(_details(choosing, width - 2)) + text + min(len(choosing.rows), _MOST_ROWS) + 4 <= rows


def whole_lines(choosing: Choosing, width: int) -> list[Line]:
    """Lay all of it out but the answers, however long it is."""
    rows = wrap(line(("bold", choosing.title), f"  {choosing.about}"), width)
    for sentence in choosing.text:
        rows += wrap(line(f"  {sentence}"), width, line("  "))
    return [*rows, (), *_details(choosing, width)]


def _details(choosing: Choosing, width: int) -> list[Line]:
    return [row for detail in choosing.details for row in wrap(line(("dim", detail)), width, line("    "))]


def _choice_rows(chooser: Chooser, width: int, most: int, signs: Signs) -> list[Line]:
    """Show the rows around the chosen one, and above them what is typed."""
    shown, chosen = chooser.rows, chooser.asking.chosen
    first = max(0, min(chosen - most // 2, len(shown) - most))
    names = [printable(chooser.choosing.rows[number].label) for number in shown]
    column = min(32, max(map(len, names), default=0)) + 2
    rows = [_filter_row(chooser, signs)] if chooser.choosing.filters else []
    for place in range(first, min(len(shown), first + most)):
        about = printable(chooser.choosing.rows[shown[place]].about)
        mark = f"{signs.chosen} " if place == chosen else " " * (len(signs.chosen) + 1)
        name = f"{names[place]:<{column}}" if about else names[place]
        row = line(("accent" if place == chosen else "", mark + name), ("dim", about))
        count = line(("dim", f"{chosen + 1}/{len(shown)}" if place == chosen and len(shown) > most else ""))
        rows += _one_or_more(row, count, width, signs, whole=not chooser.choosing.filters)
    return rows


def _one_or_more(row: Line, count: Line, width: int, signs: Signs, *, whole: bool) -> list[Line]:
    """Wrap a row of a short list; of a long one it is cut, with the place in the list at its end."""
    if whole:
        return wrap(row, width, line("  "))
    together = apart(clip(row, width - cells(count) - 3, signs.more), count, width - 1)
    return [together or clip(row, width - 1, signs.more)]


def _filter_row(chooser: Chooser, signs: Signs) -> Line:
    if not chooser.typed:
        return line(("dim", "  Type to search."))
    none = "" if chooser.rows else "   nothing fits"
    return line("  ", ("accent", signs.prompt), f" {printable(chooser.typed)}", ("dim", none))


def _hints(chooser: Chooser, width: int, signs: Signs) -> Line:
    if chooser.dialog.hint:
        return clip(line(("warn", chooser.dialog.hint)), width, signs.more)
    hints = [f"{signs.arrows} enter"]
    if chooser.choosing.details:
        hints.append("ctrl-o less" if chooser.opened else "ctrl-o details")
    hints.append(f"esc {chooser.choosing.leaving}")
    return clip(line(("dim", f" {signs.dot} ".join(hints))), width, signs.more)
