"""What a command changed in its throw-away copy: what is asked of it, and what became of it in its result."""

from treadle.engine.core.state import CallState, replace
from treadle.protocol.messages import Text
from treadle.protocol.notifications import CallStatus
from treadle.protocol.permissions import Decision
from treadle.protocol.tools import CallResult, CopyChanges, CopyFate, Outcome

KEEP_CHANGES = "Keep these changes?"
"""Asked about what a command changed in its throw-away copy of the workspace."""

RUN_FOR_REAL = "Run this command for real?"
"""Asked where what a command changed in its copy cannot be applied whole."""

KEEP_UNSHOWN = "Keep these changes, too? They are too large to show."
KEEP_UNKNOWN = (
    "[Outcome unknown: the work was stopped while the changes of this command were being applied. Either all of them "
    "are in the workspace, or none is. Look before you go on.]"
)

_LISTED = 10

IN_PLAN_MODE = "It ran in a throw-away copy of the workspace, as commands do in plan mode."
NOBODY_TO_KEEP = "It ran in a throw-away copy of the workspace, and nobody is here to say that its changes are kept."
BEFORE_KEPT = "It ran in a throw-away copy of the workspace, and was interrupted before its changes were kept."


def real_changes(result: CallResult) -> CopyChanges | None:
    """Give what a command changed in its copy and was not kept; None where that is nothing."""
    copy = result.copy
    return copy if copy is not None and copy.fate is CopyFate.DISCARDED and (copy.changes or copy.outputs) else None


def needs_word(copy: CopyChanges) -> bool:
    """Whether somebody has to say what becomes of the changes: files that git ignores are kept where all is whole."""
    return bool(copy.changes) or not copy.whole


def mark_discarded(result: CallResult, why: str) -> CallResult:
    """Say in a result that what the command changed in its copy is gone; as it is where that is nothing."""
    copy = real_changes(result)
    return result if copy is None else _decided_about(result, copy, why)


def _decided_about(result: CallResult, copy: CopyChanges, why: str = "", *, by_hook: bool = False) -> CallResult:
    """Say in a result what became of the changes."""
    return with_remark(replace(result, copy=copy), outcome_of_copy(copy, why, by_hook=by_hook))


def with_remark(result: CallResult, note: str) -> CallResult:
    """Say something more to the model at the end of a result."""
    return replace(result, content=(*result.content, Text(text=f"\n{note}")))


def kept(call: CallState, applied: CallResult) -> CallResult:
    """Put together how a command ended, what it printed, and what came of applying its changes."""
    first = call.result
    copy = None if first is None else real_changes(first)
    if first is None or copy is None:
        return applied
    if applied.outcome is Outcome.INTERRUPTED and call.status is CallStatus.RUNNING:
        return kept_or_not(first)
    allowed = said_by_hook(call.decision, "allowed")
    if applied.is_error:
        why = "".join(block.text for block in applied.content if isinstance(block, Text))
        failed, copy = replace(first, outcome=applied.outcome), replace(copy, fate=CopyFate.NOT_APPLIED)
        return _decided_about(failed, copy, why, by_hook=bool(allowed))
    said = (*first.content, *(one for one in applied.content if one not in first.content))  # of hooks
    result = replace(first, content=said, changes=applied.changes)
    return _decided_about(result, replace(copy, fate=CopyFate.KEPT), allowed)


def kept_or_not(result: CallResult) -> CallResult:
    """Say in a result that nobody knows whether the changes were applied: none of their fates is reported."""
    return with_remark(replace(result, outcome=Outcome.UNKNOWN, copy=None), KEEP_UNKNOWN)


def discarded_by_user(comment: str) -> str:
    """Say that the user did not want what a command made."""
    return f"The user did not keep its changes{f' and said: {comment}' if comment else ''}."


TRIED = "tried"
"""The rule of the reason with which hooks are asked about what a command changed in its copy."""


def said_by_hook(decision: Decision | None, word: str) -> str:
    """Say that a hook `word`, allowed or denied, what a command made; empty where hooks were not asked about that."""
    asked = decision is not None and any(one.rule == TRIED for one in decision.reasons)
    return f"A hook {word} its changes: {decision.reasons[0].text.rstrip('.')}." if asked and decision else ""


def outcome_of_copy(copy: CopyChanges, why: str = "", *, by_hook: bool = False) -> str:
    """Say what became of what a command changed in its copy, by name: for the model, screens, exports and the log.

    `by_hook`: hooks wanted to keep it, and no person.
    """
    listed = made_in_copy(copy)
    match copy.fate:
        case CopyFate.KEPT:
            if not copy.changes:
                return f"[It ran in a throw-away copy. Kept: {listed}.]"
            return f"[{why or 'The user kept its changes.'} They are in the workspace now: {listed}.]"
        case CopyFate.NOT_APPLIED:
            who = "A hook" if by_hook else "The user"
            return f"[{why} {f'{who} wanted to keep' if copy.changes else 'Not kept'}: {listed}.]"
        case CopyFate.DISCARDED:
            return f"[{why} Changes that were discarded: {listed}. The workspace is as it was.]"


def made_in_copy(copy: CopyChanges) -> str:
    """Name what a command changed in its copy, with the files that git ignores."""
    return "; ".join(filter(None, (_listed(copy), _outputs(copy))))


def _listed(copy: CopyChanges) -> str:
    shown = ", ".join(f"{change.path} ({change.kind})" for change in copy.changes[:_LISTED])
    more = len(copy.changes) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _outputs(copy: CopyChanges) -> str:
    """Name the files that git ignores and that go with the changes."""
    shown = ", ".join(f"{one.path} ({_files(one.files)})" for one in copy.outputs[:_LISTED])
    more = sum(one.files for one in copy.outputs[_LISTED:])
    return f"files that git ignores: {shown}{f' and {_files(more)} more' if more else ''}" if shown else ""


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
