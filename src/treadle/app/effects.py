"""What an operation does to this computer, declared by each operation: which devices may ask for it goes by that."""

from enum import StrEnum
from typing import Any, assert_never

from treadle.app.presentation.answer_rows import BLOCKS_ARGUMENT
from treadle.app.session.blocks import block_spans, keep_blocks
from treadle.protocol.checkpoints import Restore
from treadle.protocol.events import (
    Answer,
    CompactNow,
    EditChecklist,
    EditQueued,
    Interrupt,
    Noted,
    Op,
    Pin,
    Prompt,
    RevokeAllowance,
    SetFallback,
    SetLimits,
    SetMode,
    SetModel,
    SetPresence,
)
from treadle.protocol.permissions import AllowScope, Decision, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.protected_names import control_name
from treadle.protocol.tools import Risk


class Reach(StrEnum):
    """The classes of effects, in the words in which a person is told what cannot be done from a device."""

    ENTER = "signs in"
    SEE = "shows"
    WORK = "works in sessions"
    SETTINGS = "changes settings"
    KEYS = "changes keys of providers"
    SERVERS = "starts MCP servers, or decides which of their tools are used"
    RULES = "changes which rules and hooks are used"
    POLICY = "changes what runs without asking in every session"
    WIDER = "lets more run without asking than your own settings do"
    TRUST = "decides whether a folder is trusted"
    CONTROL = "changes files that decide what runs later, or starts a program that can"
    CHANGED = "runs a call that you changed, which is not asked about again"
    OWN_COMMANDS = "runs a command of yours, or writes any file, without rules and sandbox"
    DEVICES = "lets devices in, or signs others out"


FROM_AFAR = frozenset({Reach.ENTER, Reach.SEE, Reach.WORK})
"""What a paired device may do; all else is done on the computer that runs Treadle."""

_NARROWEST_FIRST = tuple(Mode)
_YES = frozenset({OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.RUN_FOR_REAL})
_ALWAYS = frozenset({OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ALWAYS})
_CONTROL_RULE, _PROGRAM_RULE = "control-write", "program"


def mode_effect(mode: Mode, *known: Mode) -> Reach:
    """Say what going to a mode does, where the user's own settings and the session have those that are `known`."""
    widest = max(_NARROWEST_FIRST.index(one) for one in known)
    return Reach.WIDER if _NARROWEST_FIRST.index(mode) > widest else Reach.WORK


def answer_effect(answer: Answer, question: Question | None) -> Reach:
    """Say what an answer does: a yes does what was asked about, and an answer for every session is a rule."""
    if answer.option in _ALWAYS and answer.scope is not AllowScope.SESSION:
        return Reach.POLICY
    if question is None or answer.option not in _YES:
        return Reach.WORK
    if _changes_call(answer.arguments, question):
        return Reach.CHANGED  # what a person wrote into a call needs no second yes
    return Reach.CONTROL if _touches_control(question) else Reach.WORK


def op_effect(op: Op) -> Reach:
    """Say what an op does that is neither an answer nor a mode, whose effects depend on the session."""
    match op:
        case SetLimits() | SetPresence():
            return Reach.SETTINGS  # the limits are the user's, and whether somebody can answer decides what is denied
        case SetMode():
            return Reach.WIDER
        case Answer():
            return Reach.POLICY
        case (
            Prompt()
            | EditQueued()
            | RevokeAllowance()
            | Interrupt()
            | SetModel()
            | SetFallback()
            | EditChecklist()
            | Noted()
            | CompactNow()
            | Pin()
            | Restore()
        ):
            return Reach.WORK
        case _:
            assert_never(op)


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
