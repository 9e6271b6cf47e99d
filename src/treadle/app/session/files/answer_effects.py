"""What an answer to a question does to this computer: what was asked about, a rule, or what a person wrote into it."""

from typing import Any

from treadle.app.security.op_effects import Reach
from treadle.app.session.files.edit_blocks import block_spans, keep_blocks
from treadle.present.answer_rows import BLOCKS_ARGUMENT
from treadle.present.question_words import QuestionStyle, question_style
from treadle.protocol.events import Answer
from treadle.protocol.permissions import AllowScope, Decision, OptionKind, Question, QuestionKind
from treadle.protocol.protected_names import control_name
from treadle.protocol.tools import Risk

_YES = frozenset({OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.RUN_FOR_REAL})
_ALWAYS = frozenset({OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ALWAYS})
_CONTROL_RULE, _PROGRAM_RULE = "control-write", "program"


def answer_effect(answer: Answer, question: Question | None, *, raised: bool = False) -> Reach:
    """Say what an answer does: a yes does what was asked about, and an answer for every session is a rule.

    `raised`: somebody has raised a budget of this session already.
    """
    if answer.option in _ALWAYS and answer.scope is not AllowScope.SESSION:
        return Reach.POLICY
    if question is None or answer.option not in _YES:
        return Reach.WORK
    if _changes_call(answer.arguments, question):
        return Reach.CHANGED  # what a person wrote into a call needs no second yes
    if raised and question.raises:
        return Reach.SPENDING
    danger = question_style(question) is QuestionStyle.DANGER
    return Reach.CONTROL if danger or _touches_control(question) else Reach.WORK


def _changes_call(arguments: dict[str, Any] | None, question: Question) -> bool:
    """Whether a yes is for another call than the one that was asked about, or for more than some blocks of its edit."""
    if arguments is None or question.kind is not QuestionKind.PERMISSION or arguments == question.arguments:
        return False
    old, new = question.arguments.get(BLOCKS_ARGUMENT), arguments.get(BLOCKS_ARGUMENT)
    if not isinstance(old, str) or not isinstance(new, str):
        return True
    spans, left = block_spans(old), [new[span] for span in block_spans(new)]
    kept = [old[span] in left for span in spans]
    return arguments != {**question.arguments, BLOCKS_ARGUMENT: keep_blocks(old, spans, kept)}


def _touches_control(question: Question) -> bool:
    """Whether a call writes what decides over later runs, or starts what does: Treadle itself, another agent, sudo."""
    copy, decision = question.copy, question.decision
    if copy is not None and any(control_name(change.path) is not None for change in copy.changes):
        return True
    return decision is not None and _judged_control(decision)


def _judged_control(decision: Decision) -> bool:
    rules = {(part.risk, reason.rule) for part in decision.parts for reason in part.reasons}
    rules |= {(decision.risk, reason.rule) for reason in decision.reasons}
    return (Risk.CRITICAL, _PROGRAM_RULE) in rules or any(rule == _CONTROL_RULE for _, rule in rules)
