"""What an answer to a question does to this computer: what was asked about, a rule, or what a person wrote into it."""

from typing import Any

from treadle.app.security.op_effects import Reach
from treadle.app.session.files.edit_blocks import block_spans, keep_blocks
from treadle.present.answer_rows import BLOCKS_ARGUMENT
from treadle.protocol.events import Answer
from treadle.protocol.permissions import AllowScope, OptionKind, Question, QuestionKind

_YES = frozenset({OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.RUN_FOR_REAL})
_ALWAYS = frozenset({OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ALWAYS})


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
    return Reach.CONTROL if question.dangerous else Reach.WORK


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
