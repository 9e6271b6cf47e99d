"""How full the context is, as one row of cells with a legend."""

from treadle.present.context_use import CONTEXT_GROUPS, ContextUse, bar_cells, percent_full
from treadle.present.words import tokens
from treadle.tui.paint.lines import Line, cells, line, wrap
from treadle.tui.paint.theme import Signs

_MOST_CELLS = 72
_ROLES = ("accent", "code", "warn", "add", "code-keyword", "dim")


def context_bar(use: ContextUse, width: int, signs: Signs) -> list[Line]:
    """Lay the bar out: the cells of each group and of what is free, how much that is, and what each sign means.

    A blank line is below it.
    """
    amounts = (*use.groups, use.free)
    shares = bar_cells(amounts, max(len(amounts), min(_MOST_CELLS, width - 3)))
    bar = line("  ", *((role, sign * share) for role, sign, share in zip(_ROLES, signs.groups, shares, strict=True)))
    rows = [bar, *wrap(line(("dim", f"  {_whole(use)}")), width, indent=line("  "))]
    legend: Line = ()
    for role, sign, name, amount in zip(_ROLES, signs.groups, (*CONTEXT_GROUPS, "free"), amounts, strict=True):
        if not amount:
            continue
        entry = line((role, sign), f" {name} ", ("dim", tokens(amount)))
        if legend and cells(legend) + cells(entry) + 3 > width:
            rows.append(legend)
            legend = ()
        legend = (*legend, ("", "   " if legend else "  "), *entry)
    return [*rows, legend, ()] if legend else [*rows, ()]


def context_words(use: ContextUse) -> str:
    """Say the same in one sentence."""
    named = zip((*CONTEXT_GROUPS, "free"), (*use.groups, use.free), strict=True)
    parts = ", ".join(f"{name} {tokens(amount)}" for name, amount in named if amount)
    return f"{_whole(use)}: {parts}."


def _whole(use: ContextUse) -> str:
    if not use.window:
        return f"About {tokens(use.used)} tokens"
    return f"About {tokens(use.used)} of {tokens(use.window)} tokens ({percent_full(use.used, use.window)}%)"
