"""Unified diffs in colour."""

from collections.abc import Callable

from rich.text import Text

from treadle.app.presentation.escape import exact

_LONGEST_LINE = 2_000

Styling = Callable[[str], str]


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
