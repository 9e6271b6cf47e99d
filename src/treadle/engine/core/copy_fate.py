"""What became of what a command changed in its throw-away copy, in the result that the model reads."""

from treadle.engine.core import texts
from treadle.engine.core.state import CallState, replace
from treadle.protocol.messages import Text
from treadle.protocol.notifications import CallStatus
from treadle.protocol.tools import CallResult, CopyChanges, CopyFate, Outcome


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


def _decided_about(result: CallResult, copy: CopyChanges, why: str = "") -> CallResult:
    """Say in a result what became of the changes."""
    return with_remark(replace(result, copy=copy), texts.outcome_of_copy(copy, why))


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
    if applied.is_error:
        why = "".join(block.text for block in applied.content if isinstance(block, Text))
        return _decided_about(replace(first, outcome=applied.outcome), replace(copy, fate=CopyFate.NOT_APPLIED), why)
    said = (*first.content, *(one for one in applied.content if one not in first.content))  # of hooks
    why = texts.said_by_hook(call.decision, "allowed")
    result = replace(first, content=said, changes=applied.changes)
    return _decided_about(result, replace(copy, fate=CopyFate.KEPT), why)


def kept_or_not(result: CallResult) -> CallResult:
    """Say in a result that nobody knows whether the changes were applied: none of their fates is reported."""
    return with_remark(replace(result, outcome=Outcome.UNKNOWN, copy=None), texts.KEEP_UNKNOWN)
