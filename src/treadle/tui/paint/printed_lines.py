"""What goes to the scrollback besides the model's prose, as lines."""

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import assert_never

from treadle.door.open_session import Ended
from treadle.present.call_words import tail_of
from treadle.present.checklist_items import Todo, todo_of
from treadle.present.escape import output_of_command, printable
from treadle.present.failure_words import provider_of
from treadle.present.figures import by_name, changed_lines, restored_since, unseen_words
from treadle.present.items import (
    CallItem,
    ChecklistItem,
    NoteItem,
    ProblemItem,
    ProseItem,
    SaidItem,
    ThoughtItem,
    TurnItem,
)
from treadle.present.job_words import is_shortened
from treadle.present.words import (
    CallName,
    counted,
    describe_call,
    enclosed_line,
    ended,
    lines_read,
    note_of,
    output_of,
    shorten_middle,
    span,
    tokens,
)
from treadle.protocol.models import money
from treadle.protocol.notifications import CallStatus, TurnStop
from treadle.protocol.tools import CallResult, Outcome, ToolKind
from treadle.tui.draft.mentions import accented
from treadle.tui.paint.context_bar import context_bar
from treadle.tui.paint.diff_rows import counts, diff_lines
from treadle.tui.paint.lines import Line, cells, clip, line, wrap
from treadle.tui.paint.printed_items import (
    CallLine,
    ContextItem,
    DiffItem,
    EnteredCommand,
    Greeting,
    OwnDone,
    PrintedItem,
    ReadsLine,
)
from treadle.tui.paint.theme import Signs

_OK_LINES, _FAILED_LINES, _LIVE_LINES, _OWN_LINES = 3, 8, 6, 20
_SAID_LINES, _SAID_SHOWN, _SAID_CHARACTERS = 8, 6, 16_000
_LEAST_COMMAND = 10
_COMMAND = 160
"""Characters of a command in the line that it leaves; the whole of it is in the pager."""


def item_lines(item: PrintedItem, width: int, signs: Signs) -> list[Line]:  # noqa: C901, PLR0911, PLR0912 - one line for each item
    """Lay out one item, all but the model's prose."""
    match item:
        case Greeting():
            return _greeting(item, width, signs)
        case EnteredCommand(text=text):
            return [clip(line(("dim", f"{signs.prompt} {printable(text)}")), width, signs.more)]
        case SaidItem(text=text, enclosed=enclosed):
            along = [clip(line(("dim", f"  {enclosed_line(enclosed)}")), width, signs.more)] if enclosed else []
            return [*said_lines(text, width, signs), *along]
        case ThoughtItem(seconds=seconds):
            return [thought_line(seconds, width, signs)]
        case CallLine():
            return list(_call_lines(item, width, signs))
        case ReadsLine(reads=reads):
            return list(_reads(reads, width, signs))
        case ChecklistItem(markdown=markdown):
            return [row for todo in todo_of(markdown) for row in todo_row(todo, width, signs)]
        case DiffItem(text=text):
            return diff_lines(text, width, signs)
        case ContextItem(use=use):
            return context_bar(use, width, signs)
        case OwnDone(ended=ended):
            return list(_own_done(ended, width, signs))
        case NoteItem(text=text, warns=warns):
            return _plain(text, "warn" if warns else "dim", width)
        case ProblemItem():
            return _problem(item, width, signs)
        case TurnItem():
            return _turn_end(item, width, signs)
        case ProseItem():
            raise TypeError("Prose is painted by `markdown`.")
        case _:
            assert_never(item)


_WIDE = 110


def _greeting(greeting: Greeting, width: int, signs: Signs) -> list[Line]:
    name = printable(greeting.model).partition("/")[2]
    dot = f" {signs.dot} "
    named = f"{dot}{name} ({provider_of(greeting.model)})" if name else f"{dot}{printable(greeting.model)}"
    mark = (("accent", "▞▚"), ("", " ")) if signs.ok == "✓" else ()
    first = (*mark, ("bold", "Treadle"), ("dim", f" {greeting.version}{named}{dot}{greeting.mode} mode"))
    where = printable(greeting.folder) + (f" ({printable(greeting.branch)})" if greeting.branch else "")
    if greeting.last:
        where += f"{dot}last session: {printable(greeting.last)} (/resume)"
    together = (*first, ("dim", f"{dot}{where}"))
    if width >= _WIDE and cells(together) <= width:
        return [together]
    return [*wrap(first, width, indent=line("   ")), *wrap(line(("dim", f"   {where}")), width, indent=line("   "))]


def _plain(text: str, role: str, width: int) -> list[Line]:
    rows: list[Line] = []
    for part in printable(text).split("\n"):
        begin = len(part) - len(part.lstrip())
        rows += wrap(line((role, part.expandtabs(4))), width, indent=line(" " * min(begin + 2, 12)) if begin else ())
    return rows


def said_lines(text: str, width: int, signs: Signs) -> list[Line]:
    """Lay out what the person said; of a long text the beginning, and how much more there is."""
    text = text.strip("\n")
    count = text.count("\n") + 1
    left_out = count - _SAID_SHOWN if count > _SAID_LINES else 0
    kept = text.split("\n", _SAID_SHOWN)[:_SAID_SHOWN] if left_out else text.split("\n")
    rows: list[Line] = []
    shown = shorten_middle(printable("\n".join(kept)), lines=_SAID_LINES, characters=_SAID_CHARACTERS)
    for number, part in enumerate(shown.split("\n")):
        begin = ("user accent", f"{signs.prompt} ") if number == 0 else ("user", " " * (len(signs.prompt) + 1))
        rows += wrap((begin, *accented(part.expandtabs(4), "user")), width, indent=line(("user", "  ")))
    if left_out:
        rows.append(line(("user dim", f"  {signs.more} {counted(left_out, 'more line')}")))
    return rows


def thought_line(seconds: float | None, width: int, signs: Signs) -> Line:
    """Say that the model has thought; the pager shows what."""
    took = "" if seconds is None else f" for {span(seconds)}"
    return clip(line(("dim", f"{signs.thought} Thought{took} {signs.dot} ctrl-o")), width, signs.more)


_MARKS: MappingProxyType[Outcome, tuple[Callable[[Signs], str], str]] = MappingProxyType(
    {
        Outcome.OK: (lambda signs: signs.ok, "add"),
        Outcome.FAILED: (lambda signs: signs.failed, "danger"),
        Outcome.INVALID: (lambda signs: signs.failed, "danger"),
        Outcome.DENIED: (lambda signs: signs.refused, "danger"),
        Outcome.REJECTED: (lambda signs: signs.refused, "warn"),
        Outcome.SKIPPED: (lambda signs: signs.refused, "dim"),
        Outcome.INTERRUPTED: (lambda signs: signs.ended, "warn"),
        Outcome.UNKNOWN: (lambda _: "?", "warn"),
    }
)

_IN_WORDS = MappingProxyType(
    {
        Outcome.DENIED: "denied",
        Outcome.INVALID: "could not be made",
        Outcome.SKIPPED: "not run",
        Outcome.INTERRUPTED: "stopped",
        Outcome.UNKNOWN: "nobody knows whether it was done",
    }
)


def mark_of(outcome: Outcome, signs: Signs) -> tuple[str, str]:
    """Give the sign of an outcome, and its role."""
    sign, role = _MARKS[outcome]
    return sign(signs), role


def call_notes(one: CallLine, result: CallResult, role: str = "dim") -> list[Line]:
    """Say what came of a call, and what the person said of it; `role` is for what did not go well."""
    good, name = result.outcome is Outcome.OK, describe_call(one.item.changed)
    notes: list[Line] = []
    if name.counted and good:
        notes.append(counts(name.counted))
    if text := _outcome_text(one.item, result):
        notes.append(line(("dim" if good else role, text)))
    if one.answer:
        notes.append(line(("dim", one.answer)))
    return notes


def _call_lines(one: CallLine, width: int, signs: Signs) -> Iterator[Line]:
    changed, result = one.item.changed, one.item.changed.result
    if result is None:
        return
    good = result.outcome is Outcome.OK
    sign, role = mark_of(result.outcome, signs)
    notes = call_notes(one, result, role)
    yield from _call_row(line((role, sign), " "), describe_call(changed), notes, width=width, signs=signs)
    output = output_of(changed.kind, result) if changed.kind is ToolKind.EXECUTE else ""
    if output.strip():
        kept, role = (_OK_LINES, "dim") if good else (_FAILED_LINES, "")
        count = (kept, None if is_shortened(result) else 0)
        yield from tail_lines(output, count, width, signs, role=role, more=", ctrl-o")
    if one.diff and good:
        yield from diff_lines(one.diff, width, signs)


def _outcome_text(item: CallItem, result: CallResult) -> str:
    changed, outcome = item.changed, result.outcome
    seconds = item.seconds if changed.kind is ToolKind.EXECUTE else None
    after = outcome is Outcome.INTERRUPTED and seconds is not None
    words = f"stopped after {span(seconds or 0)}" if after else _IN_WORDS.get(outcome, "")
    note = "" if outcome is Outcome.REJECTED else note_of(changed.kind, result, changed.decision)
    took = "" if after or seconds is None or seconds < 0.1 else span(seconds)
    return " · ".join(filter(None, (words, note, took)))


def _call_row(begin: Line, name: CallName, notes: list[Line], *, width: int, signs: Signs) -> list[Line]:
    """One line for a call: of a command of several lines the first, and how many more there are."""
    first, _, rest = name.about.strip().partition("\n")
    more = line(("dim", f" {signs.more} {counted(rest.count(chr(10)) + 1, 'more line')}")) if rest else ()
    shown = clip(line(("bold", first.expandtabs(4))), max(_COMMAND, width * 2)) if first else ()
    spaced = tuple(piece for note in notes for piece in (("", "  "), *note))
    # A prefix that comes before the text is no word of it.
    return wrap(
        (*begin, ("", f"{name.verb} " if first else name.verb), *shown, *more, *spaced), width, indent=line("  ")
    )


def _reads(reads: tuple[CallLine, ...], width: int, signs: Signs) -> Iterator[Line]:
    about = ", ".join(dict.fromkeys(describe_call(one.item.changed).about for one in reads))
    note = line(("dim", counted(sum(map(_read_lines, reads)), "line")))
    yield from _call_row(line(("add", signs.ok), " "), CallName("Read", about), [note], width=width, signs=signs)


def _read_lines(one: CallLine) -> int:
    result = one.item.changed.result
    return 0 if result is None else lines_read(one.item.changed.kind, result)


def tail_lines(
    output: str, count: tuple[int, int | None], width: int, signs: Signs, *, role: str, more: str = ""
) -> Iterator[Line]:
    """Show the last lines of what a command printed, and how many are above them.

    `count` is how many are shown at most, and how many are left out before `output`; None where its middle is.
    """
    most, before = count
    tail, above = tail_of(output_of_command(output).rstrip(), most, before or 0, is_cut=before is None)
    if above:
        yield clip(line(("dim", f"  {signs.more} {above} above{more}")), width, signs.more)
    for one in tail.split("\n"):
        yield clip(line("  ", (role, one.expandtabs(4))), width, signs.more) if one.strip() else ()


def own_command_row(command: str, role: str, note: str, width: int, signs: Signs) -> Line:  # noqa: PLR0917 - parts of one row
    """Show a command of the person's own in one row."""
    first, _, rest = printable(command.strip()).partition("\n")
    more = f"  {signs.more} {counted(rest.count(chr(10)) + 1, 'more line')}" if rest else ""
    right = line(("dim", f"  {note}" if note else ""))
    left = line((role, "!"), " ", ("bold", first.expandtabs(4)))
    if cells(right) + len(more) + _LEAST_COMMAND <= width:
        right = (("dim", more), *right)
    return clip((*clip(left, max(_LEAST_COMMAND, width - cells(right)), signs.more), *right), width, signs.more)


def _own_done(done: Ended, width: int, signs: Signs) -> Iterator[Line]:
    took = span(done.seconds) if done.seconds >= 0.1 else ""
    if done.status is None:
        note, role = "stopped", "warn"
    elif done.status:
        note, role = f"exit {done.status}", "danger"
    else:
        note, role = "", "add"
    yield own_command_row(done.line, role, f" {signs.dot} ".join(filter(None, (note, took))), width, signs)
    if done.output.strip():
        yield from tail_lines(done.output, (_OWN_LINES, 0), width, signs, role="")


def open_call_lines(item: CallItem, now: float, width: int, signs: Signs, *, blinks: bool = False) -> list[Line]:
    """Show a call that is open: what it is, how long it runs at `now`, and the end of what it printed."""
    name, status = describe_call(item.changed), item.changed.status
    ran = now - item.since if status is CallStatus.RUNNING and item.since is not None else 0.0
    lit = status in (CallStatus.RUNNING, CallStatus.STARTING) and not (blinks and int(now * 2) % 2)
    role = "accent" if lit else "dim"
    row = line((role, signs.running), " ", f"{name.verb} ", ("bold", name.about.partition("\n")[0].expandtabs(4)))
    rows = [clip((*row, ("dim", f"  {span(ran)}" if ran >= 1 else "")), width)]
    if item.output.strip():
        rows += tail_lines(item.output, (_LIVE_LINES, item.above), width, signs, role="dim")
    return rows


def todo_row(todo: Todo, width: int, signs: Signs, *, present: bool = False) -> list[Line]:
    """Show one thing to do."""
    sign = (
        line(("add", signs.ok))
        if todo.done
        else line(("accent", signs.running))
        if present
        else line(("dim", signs.to_do))
    )
    role = "dim" if todo.done else "bold" if present else ""
    indent = " " * (1 + 2 * todo.depth)
    return wrap(line(indent, *sign, " ", (role, printable(todo.text))), width, indent=line(f"{indent}  "))


def _problem(problem: ProblemItem, width: int, signs: Signs) -> list[Line]:
    rows = wrap(line(("danger", f"{signs.failed} {printable(problem.what)}")), width, indent=line("  "))
    for role, text in (("", problem.why), ("accent", f"Try: {problem.fix}" if problem.fix else "")):
        for part in printable(text).split("\n") if text else ():
            rows += wrap(line("  ", (role, part)), width, indent=line("  "))
    return rows


def _turn_end(done: TurnItem, width: int, signs: Signs) -> list[Line]:
    outcome = done.outcome
    usage = outcome.usage
    took = "" if done.seconds is None else span(done.seconds)
    if took and done.waited >= 1:
        took = f"{took} + {span(done.waited)} for you"
    facts = [
        f"{ended(outcome.stop)} by {printable(outcome.why)}" if outcome.by_hook else ended(outcome.stop),
        done.left_open,
        changed_lines(outcome),
        restored_since(done.restored, done.in_part),
        unseen_words(outcome.unseen),
        counted(outcome.steps, "step"),
        f"{tokens(usage.context_tokens)} tokens" if usage.context_tokens else "",
        money(outcome.cost, estimated=usage.estimated),
        took,
    ]
    good = outcome.stop is TurnStop.END_TURN and not done.left_open
    text = f"{signs.ended} {f' {signs.dot} '.join(fact for fact in facts if fact)}"
    if outcome.stop is TurnStop.CANCELLED:
        text = f"{text}. What should Treadle do instead?"
    rows = [
        row
        for one in by_name(done.files)
        for row in wrap(
            line(("dim", f"  {printable(one.path)}  +{one.added} -{one.removed}")),
            width,
            indent=line("    "),
        )
    ]
    return [*rows, *wrap(line(("dim" if good else "warn", text)), width, indent=line("  "))]
