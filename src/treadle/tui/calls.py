"""Calls on the screen: open ones with the end of their output, and what is left of them when they are done."""

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.copies import fate_of
from treadle.present.escape import printable
from treadle.present.words import describe_call, note_of, plain, said_no
from treadle.protocol.events import Answer
from treadle.protocol.notifications import CallChanged, CallStatus
from treadle.protocol.permissions import Decision, OptionKind
from treadle.protocol.tools import CallResult, CopyFate, Outcome, ToolKind
from treadle.tui.items import CallDone

_KEPT_OUTPUT = 4_000


class OpenCall(Struct, frozen=True, kw_only=True):
    """A call without a result; `output` is the end of what it printed, `above` the number of lines before that.

    `answer` is what the person said of it, `running` when it began to run, on the clock of the view.
    """

    changed: CallChanged
    asked: bool = False
    output: str = ""
    above: int = 0
    answer: Answer | None = None
    running: float | None = None


Calls = tuple[OpenCall, ...]


def find_call(calls: Calls, call_id: str) -> OpenCall | None:
    """Find an open call."""
    return next((call for call in calls if call.changed.call.id == call_id), None)


def moved_on(calls: Calls, notification: CallChanged, at: float | None) -> Calls:
    """Let a call move on in its life."""
    known = find_call(calls, notification.call.id)
    asking = notification.status is CallStatus.ASKING
    running = at if notification.status is CallStatus.RUNNING else None
    if known is None:
        return (*calls, OpenCall(changed=notification, asked=asking, running=running))
    now = replace(known, changed=notification, asked=known.asked or asking, running=running or known.running)
    if notification.status is CallStatus.STARTING:
        # What runs a second time, with a right that the sandbox refused, begins with an empty output.
        now = replace(now, output="", above=0, running=None)
    return tuple(now if call is known else call for call in calls)


def add_output(calls: Calls, call_id: str, text: str) -> Calls:
    """Add what a call printed."""
    return tuple(_printed(call, text) if call.changed.call.id == call_id else call for call in calls)


def _printed(call: OpenCall, text: str) -> OpenCall:
    output = call.output + text
    if len(output) <= _KEPT_OUTPUT:
        return replace(call, output=output)
    dropped = output[:-_KEPT_OUTPUT]
    return replace(call, output=output[-_KEPT_OUTPUT:], above=call.above + dropped.count("\n"))


def finish_call(
    known: OpenCall | None, notification: CallChanged, result: CallResult, *, at: float | None, allowed: Collection[str]
) -> CallDone:
    """Say what is left of a call that has its result; `allowed` are the ids of what is allowed for this session."""
    began = known.running if known is not None else None
    executes = notification.kind is ToolKind.EXECUTE
    shows_diff = (
        notification.preview is not None and notification.preview.is_diff and not (known is not None and known.asked)
    )
    reads = notification.kind is ToolKind.READ and result.outcome is Outcome.OK
    return CallDone(
        name=describe_call(notification),
        kind=notification.kind,
        outcome=result.outcome,
        note="" if result.outcome is Outcome.REJECTED else note_of(notification.kind, result, notification.decision),
        said=_said(result, known) or _by_rule(notification.decision, allowed),
        output=known.output if known is not None and executes else "",
        above=known.above if known is not None and executes else 0,
        diff=notification.preview.text if notification.preview is not None and shows_diff else "",
        seconds=at - began if executes and at is not None and began is not None else None,
        lines=plain(result.content).strip().count("\n") + 1 if reads else 0,
    )


def _said(result: CallResult, known: OpenCall | None) -> str:
    """Say what the person said of a call, last where they were asked twice."""
    answer = None if known is None else known.answer
    fate = fate_of(result.copy)
    if answer is None:
        return _no("you said no", said_no(result)) if result.outcome is Outcome.REJECTED else fate
    if answer.option in (OptionKind.REJECT_ONCE, OptionKind.REJECT_ALWAYS):
        return _no("you discarded its changes" if fate else "you said no", answer.text)
    if answer.option is OptionKind.RUN_FOR_REAL:
        return "you ran it for real"
    if fate:
        return "you kept its changes" if result.copy is not None and result.copy.fate is CopyFate.KEPT else fate
    lasting = answer.option is OptionKind.ALLOW_ALWAYS
    said = "you allowed it for this session" if lasting else "you allowed it"
    return f"{said} with your change" if answer.arguments is not None else said


def _no(no: str, said: str) -> str:
    words = printable(" ".join(said.split()))
    return f"{no}: {words}" if words else no


def _by_rule(decision: Decision | None, allowed: Collection[str]) -> str:
    """Say that nobody was asked because of what was allowed for this session."""
    if decision is None or not allowed:
        return ""
    reasons = (*decision.reasons, *(reason for part in decision.parts for reason in part.reasons))
    return "allowed this session" if any(reason.rule in allowed for reason in reasons) else ""


def are_reads(done: Sequence[CallDone]) -> bool:
    """Whether these can be one line: reads that went well without a question."""
    return all(one.lines and one.name.verb == "Read" and not one.said for one in done)
