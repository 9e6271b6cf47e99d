"""What became of a call, in the words of its line."""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from treadle.present.escape import printable
from treadle.present.items import AnswerItem, CallItem
from treadle.present.trial_words import fate_of
from treadle.present.words import (
    ANSWERS,
    CHANGED_BY_HOOK,
    changes_before,
    clip_text,
    counted,
    elsewhere,
    note_of,
    output_of,
    plain,
    said_no,
)
from treadle.protocol.notifications import QuestionClosed
from treadle.protocol.permissions import AllowScope, Decision, OptionKind, Question, QuestionKind, Verdict
from treadle.protocol.reasons import YOU_ALLOWED, headline_with, words_of_decision
from treadle.protocol.tools import CallResult, CopyFate, Outcome, ToolKind

_LONGEST = 200


def said_of(item: CallItem, here: str, where_is: Callable[[str], str] = elsewhere) -> str:
    """Say what a person said of a call, the last time that they were asked, and what became of what it changed.

    `here` is the surface (`tui:main`) or its kind (`web`): where they were asked is said of another one, as
    `where_is` names it.
    """
    result = item.changed.result
    fate = fate_of(result.copy) if result is not None else ""
    if not item.answers:
        is_no = result is not None and result.outcome is Outcome.REJECTED
        return _no("you said no", said_no(result)) if is_no and result is not None else fate
    answer = item.answers[-1]
    is_elsewhere = answer.by and here not in (answer.by, answer.by.partition(":")[0])
    where = f"{', answered' if answer.by.startswith('mcp:') else ''} {where_is(answer.by)}" if is_elsewhere else ""
    if answer.option in (OptionKind.REJECT_ONCE, OptionKind.REJECT_ALWAYS):
        return _no(f"{'you discarded its changes' if fate else 'you said no'}{where}", answer.text)
    if answer.option is OptionKind.RUN_FOR_REAL:
        return f"you ran it for real{where}"
    if fate:
        return f"you kept its changes{where}" if _was_kept(result) else fate
    lasting = " for this session" if answer.scope is AllowScope.SESSION else " from now on"
    said = f"you allowed it{lasting if answer.option is OptionKind.ALLOW_ALWAYS else ''}"
    return f"{said}{' with your change' if answer.amended else ''}{where}"


def end_of(item: CallItem, here: str) -> str:
    """Say how a call went, and what a person had to do with it: `exit 3, you allowed it`; empty for nothing to say."""
    changed = item.changed
    result = changed.result
    rejected = result is None or result.outcome is Outcome.REJECTED
    note = "" if rejected or result is None else note_of(changed.kind, result, changed.decision)
    if result is not None and result.outcome is Outcome.DENIED and changed.decision is not None:
        note = headline_with(note, words_of_decision(changed.decision).way_on)
    before = () if result is None else result.content[: changes_before(result.content)]
    hooked = "changed by a hook" if CHANGED_BY_HOOK in plain(before) else ""
    return ", ".join(filter(None, (note, hooked, said_of(item, here))))


def whole_output(item: CallItem) -> str:
    """Give all that a call brought a person; of an edit that failed why, where its line has not all of that."""
    kind, result = item.changed.kind, item.changed.result
    if result is None:
        return item.output
    if kind is ToolKind.EDIT and result.outcome in _SAYS_WHY:
        text = plain(result.content).strip()
        return "" if text == note_of(kind, result) else text
    return output_of(kind, result)


_SAYS_WHY = frozenset({Outcome.FAILED, Outcome.INVALID, Outcome.UNKNOWN})
"""Outcomes of which the text says what went wrong."""


_ALLOWED: Mapping[OptionKind, str] = MappingProxyType(
    {
        OptionKind.ALLOW_ONCE: "allowed once",
        OptionKind.REJECT_ONCE: "rejected",
        OptionKind.REJECT_ALWAYS: "always rejected",
    }
)


def answer_words(asked: Question, closed: QuestionClosed) -> str:
    """Say in a few words what a person answered, empty where nobody did: `allowed once` where that lets a call run."""
    option = closed.option
    if option is None or asked.kind is not QuestionKind.PERMISSION or asked.copy is not None:
        return "" if option is None else ANSWERS[option]
    if option is OptionKind.ALLOW_ALWAYS:
        return "allowed for this session" if closed.scope is AllowScope.SESSION else "allowed from now on"
    return _ALLOWED.get(option, ANSWERS[option])


def answered_elsewhere(question: Question | None, closed: QuestionClosed, here: str) -> str:
    """Say at once that a question about a call was answered on another surface than `here` (`tui:main`)."""
    if question is None or question.kind is not QuestionKind.PERMISSION or closed.option is None:
        return ""
    return f"Answered {elsewhere(closed.by)}: {answer_words(question, closed)}." if closed.by not in ("", here) else ""


def permission_line(item: AnswerItem, where: str) -> str:
    """Say how a permission was answered that no call shows: `Subagent worker: run ls? Allowed once on Pixel 8.`"""
    words = " ".join(item.answer.text.split())
    said = f"{item.said[:1].upper()}{item.said[1:]}{where}"
    return f"{clip_text(item.asked, _LONGEST)}? {said}{f': {clip_text(printable(words), _LONGEST)}' if words else '.'}"


def allowed_before(decision: Decision | None, allowed: Collection[str]) -> str:
    """Say that nobody was asked because of what was allowed for this session, by its ids."""
    if decision is None or not allowed:
        return ""
    reasons = (*decision.reasons, *(reason for part in decision.parts for reason in part.reasons))
    return "allowed this session" if any(reason.rule in allowed for reason in reasons) else ""


def allowed_by(decision: Decision | None) -> str:
    """Name what let a call run that nobody was asked about, beside the mode: `allowed this session`, `rule: pytest`."""
    if decision is None or decision.verdict is not Verdict.ALLOW:
        return ""
    reasons = (*decision.reasons, *(reason for part in decision.parts for reason in part.reasons))
    rules = dict.fromkeys(reason.rule for reason in reasons if reason.source)
    if rules:
        return f"rule: {printable(next(iter(rules)))}"
    return "allowed this session" if any(reason.text.startswith(YOU_ALLOWED) for reason in reasons) else ""


def _was_kept(result: CallResult | None) -> bool:
    return result is not None and result.copy is not None and result.copy.fate is CopyFate.KEPT


def _no(no: str, said: str) -> str:
    words = printable(" ".join(said.split()))
    return f"{no}: {words}" if words else no


def tail_of(text: str, most: int, above: int = 0, *, is_cut: bool = False) -> tuple[str, str]:
    """Give the last lines of what was printed, and say how many are above; where it `is_cut` nobody knows."""
    lines = text.rstrip("\n").split("\n")
    above += max(0, len(lines) - most)
    return "\n".join(lines[-most:]), "more" if is_cut else counted(above, "line") if above else ""
