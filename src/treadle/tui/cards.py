"""Questions as a person sees them before the answer: what would happen, why it is asked, the exact text."""

from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from treadle.protocol.permissions import Decision, Question, QuestionKind, Verdict
from treadle.tui.escape import exact, printable

_LINES = 36
_LONGEST_LINE = 2_000
_HINT = "v shows all"

Styling = Callable[[str], str]


def card(question: Question) -> RenderableType:
    """Show a question; of a long text the beginning and the end."""
    return _question(question, whole=False)


def full_text(question: Question) -> RenderableType:
    """Show a question with all of its text."""
    return _question(question, whole=True)


def _question(question: Question, *, whole: bool) -> RenderableType:
    match question.kind:
        case QuestionKind.PERMISSION:
            return Group(*_permission(question, whole=whole))
        case QuestionKind.FOLLOWUP:
            return Group(*_followup(question))
        case QuestionKind.GUIDANCE:
            return Text(f"? {printable(question.text)}", style="bold yellow")


def _followup(question: Question) -> Iterator[RenderableType]:
    yield Text(f"? {printable(question.text)}", style="bold cyan")
    for number, option in enumerate(question.options, start=1):
        yield Text.assemble((f"  {number} ", "bold"), printable(option))


def _permission(question: Question, *, whole: bool) -> Iterator[RenderableType]:
    yield Text.assemble(("? ", "bold yellow"), (f"Allow: {exact(question.text)}", "bold"))
    if question.decision is not None:
        yield from _reasons(question.decision)
    preview = question.preview
    if preview is None or not preview.text:
        return
    if preview.is_diff:
        yield diff_text(preview.text, None if whole else _LINES, _HINT)
    else:
        lines = exact(preview.text).split("\n")
        yield Padding(_cut(lines, None if whole else _LINES, _HINT, lambda _: "bold"), (0, 0, 0, 4))


def _reasons(decision: Decision) -> Iterator[RenderableType]:
    style = "bold red" if decision.risk == "critical" else "yellow"
    yield Text(f"  risk: {decision.risk}", style=style)
    for reason in decision.reasons:
        source = f", {reason.source}" if reason.source else ""
        yield Text.assemble("  ", printable(reason.text), (f" [{reason.rule}{source}]", "dim"))
    if len(decision.parts) < 2:
        return
    for part in decision.parts:
        mark = "·" if part.verdict is Verdict.ALLOW else "!"
        why = "; ".join(reason.text for reason in part.reasons)
        yield Text.assemble(f"  {mark} ", (exact(part.text), "bold"), (f"  {part.risk}", "dim"), f"  {printable(why)}")


def diff_text(diff: str, limit: int | None, hint: str = "") -> Text:
    """Colour a unified diff; of more than `limit` lines, the beginning and the end, and how to see the rest."""
    return _cut(exact(diff).rstrip("\n").split("\n"), limit, hint, _diff_style)


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    if line.startswith("@@"):
        return "cyan"
    if line.startswith("+"):
        return "green"
    return "red" if line.startswith("-") else ""


def _cut(lines: list[str], limit: int | None, hint: str, style: Styling) -> Text:
    text = Text(overflow="fold", end="")
    if limit is None or len(lines) <= limit:
        _add(text, lines, style, whole=limit is None)
        return text
    head = limit * 2 // 3
    _add(text, lines[:head], style, whole=False)
    text.append(f"… {len(lines) - limit:,} more lines {hint}".rstrip() + " …\n", style="bold magenta")
    _add(text, lines[head - limit :], style, whole=False)
    return text


def _add(text: Text, lines: list[str], style: Styling, *, whole: bool) -> None:
    for line in lines:
        shown = line.expandtabs(4)
        text.append(f"{shown if whole else _middle_out(shown)}\n", style=style(line))


def _middle_out(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    half = _LONGEST_LINE // 2
    return f"{line[:half]} … {len(line) - 2 * half:,} more characters … {line[-half:]}"
