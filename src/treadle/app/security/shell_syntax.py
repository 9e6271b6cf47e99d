"""A line that is no valid shell is a mistake of the model, not a question for a person. No shell runs to find it."""

from collections.abc import Sequence

from treadle.policy.shell.shell_parser import parse
from treadle.policy.shell.syntax import BrokenShellError, BudgetError, ShellSyntaxError
from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Decision, Verdict
from treadle.protocol.tools import Access, RunCommand

_HTML = ("&amp;", "&lt;", "&gt;", "&quot;", "&#")


def refuse_broken_shell(decision: Decision, accesses: Sequence[Access]) -> None:
    """Raise `ToolError` for a line that no shell would take. One that is only not understood is asked about."""
    if decision.verdict is Verdict.ALLOW or not _has_unparsed(decision):
        return
    for access in accesses:
        if isinstance(access, RunCommand):
            try:
                parse(access.command)
            except BrokenShellError as error:
                html = " It contains HTML such as `&amp;`. Write `&`, `<` and `>` as they are."
                advice = html if any(mark in access.command for mark in _HTML) else ""
                said = f"Not run: this is not valid shell: {error}.{advice} Correct the line."
                raise ToolError(said, invalid=True) from error
            except (ShellSyntaxError, BudgetError):
                continue


def _has_unparsed(decision: Decision) -> bool:
    return any(reason.rule == "syntax" for part in decision.parts for reason in part.reasons)
