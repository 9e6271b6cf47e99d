"""What goes to the scrollback besides the model's prose, as lines."""

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import assert_never

from treadle.app.session.own_shell import Ended
from treadle.present.checklist import Todo, todo_of
from treadle.present.escape import output_of_command, printable
from treadle.present.failures import provider_of
from treadle.present.words import (
    CallName,
    changed_lines,
    counted,
    describe_call,
    enclosed_line,
    ended,
    shorten_middle,
    span,
    tokens,
)
from treadle.protocol.models import money
from treadle.protocol.notifications import CallStatus, TurnStop
from treadle.protocol.tools import Outcome
from treadle.tui.calls import OpenCall, are_reads
from treadle.tui.diffs import counts, diff_lines
from treadle.tui.items import (
    CallDone,
    DiffItem,
    Greeting,
    NoticeItem,
    OwnDone,
    ProblemItem,
    Prose,
    Reads,
    Said,
    ScreenItem,
    Thought,
    Todos,
    Tone,
    TurnDone,
)
from treadle.tui.lines import Line, cells, clip, line, wrap
from treadle.tui.mentions import accented
from treadle.tui.theme import Signs

_OK_LINES, _FAILED_LINES, _LIVE_LINES, _OWN_LINES = 3, 8, 6, 20
_SAID_LINES, _SAID_SHOWN, _SAID_CHARACTERS = 8, 6, 16_000
_LEAST_COMMAND = 10
_COMMAND = 160
"""Characters of a command in the line that it leaves; the whole of it is in the pager."""

_TONES = MappingProxyType({Tone.QUIET: "dim", Tone.WARNING: "warn", Tone.ERROR: "danger"})


def item_lines(item: ScreenItem, width: int, signs: Signs) -> list[Line]:  # noqa: C901 - one line for each item
    """Lay out one item, all but the model's prose."""
    match item:
        case Greeting():
            return _greeting(item, width, signs)
        case Said(text=text, quiet=True):
            return [clip(line(("dim", f"{signs.prompt} {printable(text)}")), width, signs.more)]
        case Said(text=text, enclosed=enclosed):
            along = [clip(line(("dim", f"  {enclosed_line(enclosed)}")), width, signs.more)] if enclosed else []
            return [*said_lines(text, width, signs), *along]
        case Thought(seconds=seconds):
            return [thought_line(seconds, width, signs)]
        case CallDone():
            return list(_done(item, width, signs))
        case Reads(done=done):
            return list(_reads(done, width, signs))
        case Todos(markdown=markdown):
            return [row for todo in todo_of(markdown) for row in todo_row(todo, width, signs)]
        case DiffItem(text=text):
            return diff_lines(text, width, signs)
        case OwnDone(ended=ended):
            return list(_own_done(ended, width, signs))
        case NoticeItem(text=text, tone=tone):
            return _plain(text, _TONES[tone], width)
        case ProblemItem():
            return _problem(item, width, signs)
        case TurnDone():
            return _turn_done(item, width, signs)
        case Prose():
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


def _done(done: CallDone, width: int, signs: Signs) -> Iterator[Line]:
    sign, role = mark_of(done.outcome, signs)
    good = done.outcome is Outcome.OK
    notes: list[Line] = []
    if done.name.counted and good:
        notes.append(counts(done.name.counted))
    if text := _outcome_text(done):
        notes.append(line(("dim" if good else role, text)))
    if done.said:
        notes.append(line(("dim", done.said)))
    yield from _call_row(line((role, sign), " "), done.name, notes, width=width, signs=signs)
    if done.output.strip():
        kept = _OK_LINES if good else _FAILED_LINES
        yield from tail_lines(
            done.output, (kept, done.above), width, signs, role="dim" if good else "", more=", ctrl-o"
        )
    if done.diff and good:
        yield from diff_lines(done.diff, width, signs)


def _outcome_text(done: CallDone) -> str:
    after = done.outcome is Outcome.INTERRUPTED and done.seconds is not None
    words = f"stopped after {span(done.seconds or 0)}" if after else _IN_WORDS.get(done.outcome, "")
    took = "" if after or done.seconds is None or done.seconds < 0.1 else span(done.seconds)
    return " · ".join(filter(None, (words, done.note, took)))


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


def _reads(done: tuple[CallDone, ...], width: int, signs: Signs) -> Iterator[Line]:
    assert are_reads(done)  # noqa: S101 - the view collects no others
    about = ", ".join(dict.fromkeys(one.name.about for one in done))
    note = line(("dim", counted(sum(one.lines for one in done), "line")))
    yield from _call_row(line(("add", signs.ok), " "), CallName("Read", about), [note], width=width, signs=signs)


def tail_lines(
    output: str, count: tuple[int, int], width: int, signs: Signs, *, role: str, more: str = ""
) -> Iterator[Line]:
    """Show the last lines of what a command printed, and how many are above them; some may be left out already."""
    most, above = count
    lines = output_of_command(output).rstrip().split("\n")
    above += max(0, len(lines) - most)
    if above:
        yield clip(line(("dim", f"  {signs.more} {counted(above, 'line')} above{more}")), width, signs.more)
    for one in lines[-most:]:
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


def open_call_lines(call: OpenCall, now: float, width: int, signs: Signs, *, blinks: bool = False) -> list[Line]:
    """Show a call that is open: what it is, how long it runs, and the end of what it printed."""
    name, status = describe_call(call.changed), call.changed.status
    ran = now - call.running if status is CallStatus.RUNNING and call.running is not None else 0.0
    lit = status in (CallStatus.RUNNING, CallStatus.STARTING) and not (blinks and int(now * 2) % 2)
    role = "accent" if lit else "dim"
    row = line((role, signs.running), " ", f"{name.verb} ", ("bold", name.about.partition("\n")[0].expandtabs(4)))
    rows = [clip((*row, ("dim", f"  {span(ran)}" if ran >= 1 else "")), width)]
    if call.output.strip():
        rows += tail_lines(call.output, (_LIVE_LINES, call.above), width, signs, role="dim")
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


def _turn_done(done: TurnDone, width: int, signs: Signs) -> list[Line]:
    outcome = done.outcome
    usage = outcome.usage
    took = "" if done.seconds is None else span(done.seconds)
    if took and done.waited >= 1:
        took = f"{took} + {span(done.waited)} for you"
    facts = [
        ended(outcome.stop),
        changed_lines(outcome),
        counted(outcome.steps, "step"),
        f"{tokens(usage.context_tokens)} tokens" if usage.context_tokens else "",
        money(outcome.cost, estimated=usage.estimated),
        took,
    ]
    good = outcome.stop is TurnStop.END_TURN
    text = f"{signs.ended} {f' {signs.dot} '.join(fact for fact in facts if fact)}"
    if outcome.stop is TurnStop.CANCELLED:
        text = f"{text}. What should Treadle do instead?"
    rows = [
        row
        for one in done.files
        for row in wrap(
            line(("dim", f"  {printable(one.path)}  +{one.added} -{one.removed}")),
            width,
            indent=line("    "),
        )
    ]
    return [*rows, *wrap(line(("dim" if good else "warn", text)), width, indent=line("  "))]
