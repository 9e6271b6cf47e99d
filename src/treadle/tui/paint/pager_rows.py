"""What the scrollback shows folded, whole: messages, reasoning, calls with all of their output, and diffs."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from treadle.present.call_words import said_of
from treadle.present.escape import output_of_command, printable
from treadle.present.items import CallItem, Item, Placed, ProseItem, SaidItem, ThoughtItem
from treadle.present.view import SessionView
from treadle.present.words import describe_call, output_of
from treadle.protocol.errors import SessionError
from treadle.protocol.notifications import CallChanged
from treadle.protocol.patterns import regex
from treadle.protocol.tools import CallResult, Outcome, ToolKind
from treadle.tui.paint.code_lines import code_lines
from treadle.tui.paint.diff_rows import diff_lines
from treadle.tui.paint.lines import Line, line, line_text, wrap
from treadle.tui.paint.printed_items import CallLine
from treadle.tui.paint.printed_lines import call_notes, item_lines, mark_of
from treadle.tui.paint.scrollback import printed_items
from treadle.tui.paint.theme import Signs

_MOST_OUTPUT = 1_000_000
"""Characters of an output that are shown; of a longer one the end."""


def whole_rows(items: Iterable[Placed], view: SessionView, here: str, width: int, signs: Signs) -> list[Line]:  # noqa: PLR0917 - what a layout needs
    """Lay out all of these items for the surface `here`; what left the conversation is dim."""
    rows: list[Line] = []
    for placed in items:
        shown = list(_rows_of(placed.item, here, width, signs))
        if view.has_left(placed):
            shown = [line(("dim", line_text(row))) for row in shown]
        rows += [*shown, ()] if shown else []
    return rows or [line(("dim", "There is nothing to show yet."))]


def text_rows(text: str, width: int, role: str = "") -> Iterator[Line]:
    """Wrap a text that is harmless to show, two cells in."""
    for part in text.rstrip("\n").split("\n") if text.strip("\n") else ():
        yield from wrap(line("  ", (role, part.expandtabs(4))), width, indent=line("  "))


def _rows_of(item: Item | None, here: str, width: int, signs: Signs) -> Iterator[Line]:
    match item:
        case SaidItem(text=text):
            for number, part in enumerate(printable(text).split("\n")):
                begin = ("user accent", f"{signs.prompt} ") if not number else ("user", "  ")
                yield from wrap(line(begin, ("user", part.expandtabs(4))), width, indent=line(("user", "  ")))
        case ThoughtItem(text=text):
            yield line(("dim", f"{signs.thought} Thought"))
            yield from text_rows(printable(text), width, "dim italic")
        case ProseItem(markdown=markdown):
            yield from _prose_rows(printable(markdown), width)
        case CallItem(changed=changed, output=output):
            if changed.result is not None:
                yield from _done_rows(CallLine(item, said_of(item, here)), changed.result, width, signs)
            else:
                yield from _call_rows(changed, line(("accent", signs.running)), width, signs)
                yield from text_rows(output_of_command(output), width)
        case None:
            pass
        case _:
            for one in printed_items(item, here):
                yield from item_lines(one, width, signs)


_FENCE = regex(r"\s*(`{3,}|~{3,})\s*([^\s`]*)")


def _prose_rows(markdown: str, width: int) -> Iterator[Line]:
    """Wrap Markdown as it was written; the code in its fences has its colours."""
    lines = markdown.strip("\n").split("\n") if markdown.strip("\n") else []
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        yield from wrap(line("  ", lines[at].expandtabs(4)), width, indent=line("  "))
        at += 1
        end = at
        while fence is not None and end < len(lines) and not lines[end].lstrip().startswith(fence[1]):
            end += 1
        for row in code_lines("\n".join(lines[at:end]), language=fence[2]) if fence is not None and end > at else ():
            yield from wrap(line("  ", *row), width, indent=line("  "))
        if fence is not None and end < len(lines):
            yield line("  ", lines[end])
            end += 1
        at = end


def _done_rows(one: CallLine, result: CallResult, width: int, signs: Signs) -> Iterator[Line]:
    changed = one.item.changed
    sign, role = mark_of(result.outcome, signs)
    yield from _call_rows(changed, line((role, sign)), width, signs)
    if notes := call_notes(one, result):
        yield from text_rows(f" {signs.dot} ".join(map(line_text, notes)), width, "dim")
    text = _output_of(changed.kind, result)
    shown = output_of_command(text) if changed.kind is ToolKind.EXECUTE else printable(text)
    yield from text_rows(shown, width, "dim")


def _call_rows(changed: CallChanged, sign: Line, width: int, signs: Signs) -> Iterator[Line]:
    name = describe_call(changed)
    first, _, rest = name.about.strip().partition("\n")
    yield from wrap((*sign, *line(f" {name.verb} ", ("bold", first.expandtabs(4)))), width, indent=line("  "))
    yield from text_rows(rest, width, "bold")
    if changed.preview is None:
        for key, value in changed.call.arguments.items():
            yield from text_rows(printable(f"{key}: {value}"), width)
    elif changed.preview.is_diff:
        yield from diff_lines(changed.preview.text, width, signs, whole=True)


def _output_of(kind: ToolKind, result: CallResult) -> str:
    """Give all that a call printed, from its file where the model was given a part of it."""
    text = output_of(kind, result)
    if result.full_output and result.outcome is not Outcome.REJECTED:
        from treadle.door.reports import output_piece

        with suppress(SessionError):  # it is not kept any more
            text = output_piece(result.full_output, _MOST_OUTPUT).text or text
    return text if len(text) <= _MOST_OUTPUT else text[-_MOST_OUTPUT:]
