"""Questions as a person sees them before the answer: what would happen, why it is asked, the exact text."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from treadle.protocol.permissions import Decision, Part, Question, QuestionKind, Verdict
from treadle.protocol.tools import Access, FetchUrl, ReadPath, RunCommand, WritePath
from treadle.tui.escape import exact, exact_line, printable
from treadle.tui.items import Block
from treadle.tui.words import allowance_of

_LINES = 36
_TOUCHED_LINES = 12
_PARTS = 12
_LONGEST_LINE = 2_000
_HINT = "v shows all"

Styling = Callable[[str], str]


def card(question: Question, roots: Sequence[str], *, whole: bool) -> RenderableType:
    """Show a question as asked in a workspace; without `whole`, of a long text the beginning and the end."""
    match question.kind:
        case QuestionKind.PERMISSION:
            return Group(*_permission(question, roots, whole=whole))
        case QuestionKind.FOLLOWUP:
            return Group(*_followup(question))
        case QuestionKind.GUIDANCE | QuestionKind.BUDGET:
            return Text(f"? {printable(question.text)}", style="bold yellow")


def block(item: Block) -> RenderableType:
    """Show one block of an edit, all of it."""
    title = Text(f"Block {item.number} of {item.count}", style="bold yellow")
    return Group(title, Padding(Text(exact(item.text).expandtabs(4), overflow="fold"), (0, 0, 0, 4)))


def _followup(question: Question) -> Iterator[RenderableType]:
    yield Text(f"? {printable(question.text)}", style="bold cyan")
    for number, option in enumerate(question.options, start=1):
        yield Text.assemble((f"  {number} ", "bold"), printable(option))


def _permission(question: Question, roots: Sequence[str], *, whole: bool) -> Iterator[RenderableType]:
    asked = f"Allow: {exact_line(question.text)}" if question.denial is None else exact_line(question.text)
    yield Text.assemble(("? ", "bold yellow"), (asked, "bold"))
    if question.decision is not None and question.denial is None:
        yield from _reasons(question.decision, whole=whole)
        for offer in question.decision.offers:
            yield Text(f"  always would allow: {exact_line(allowance_of(offer))}", style="dim")
    touched = [line for access in question.accesses for line in _touched(access, roots)]
    if touched:
        yield _cut(touched, None if whole else _TOUCHED_LINES, _HINT, lambda _: "yellow")
    preview = question.preview
    if preview is None or not preview.text:
        return
    if preview.is_diff:
        yield diff_text(preview.text, None if whole else _LINES, _HINT)
    else:
        lines = exact(preview.text).split("\n")
        yield Padding(_cut(lines, None if whole else _LINES, _HINT, lambda _: "bold"), (0, 0, 0, 4))


def _touched(access: Access, roots: Sequence[str]) -> Iterator[str]:
    """Name what is touched outside the workspace, and where a command runs."""
    match access:
        case ReadPath(path=path, listing=listing):
            yield from _outside("lists" if listing else "reads", path, roots)
        case WritePath(path=path, delete=delete):
            yield from _outside("deletes" if delete else "writes", path, roots)
        case RunCommand(cwd=cwd):
            yield f"  runs in: {exact_line(cwd)}"
        case FetchUrl(url=url, method=method):
            yield f"  sends: {exact_line(f'{method} {url}')}"


def _outside(verb: str, path: str, roots: Sequence[str]) -> Iterator[str]:
    """Name a path that leads out of the workspace as written, and where links take it."""
    resolved = os.path.realpath(path)
    if any(Path(resolved).is_relative_to(root) for root in roots):
        return
    leads = "" if resolved == path else f" -> {exact_line(resolved)}"
    yield f"  {verb} outside the workspace: {exact_line(path)}{leads}"


def _reasons(decision: Decision, *, whole: bool) -> Iterator[RenderableType]:
    style = "bold red" if decision.risk == "critical" else "yellow"
    yield Text(f"  risk: {decision.risk}", style=style)
    for reason in decision.reasons:
        source = f", {reason.source}" if reason.source else ""
        yield Text.assemble("  ", printable(reason.text), (f" [{reason.rule}{source}]", "dim"))
    if len(decision.parts) > 1:
        yield from _parts(decision.parts, None if whole else _PARTS)


def _parts(parts: Sequence[Part], limit: int | None) -> Iterator[RenderableType]:
    """Name the parts of a command; of many, those first that are not harmless, and how many more there are."""
    shown = parts
    if limit is not None and len(parts) > limit:
        shown = sorted(parts, key=lambda part: part.verdict is Verdict.ALLOW)[:limit]
    for part in shown:
        mark = "·" if part.verdict is Verdict.ALLOW else "!"
        why = "; ".join(reason.text for reason in part.reasons)
        yield Text.assemble(f"  {mark} ", (exact(part.text), "bold"), (f"  {part.risk}", "dim"), f"  {printable(why)}")
    if left_out := len(parts) - len(shown):
        yield Text(f"  … {left_out:,} more parts {_HINT} …", style="bold magenta")


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
