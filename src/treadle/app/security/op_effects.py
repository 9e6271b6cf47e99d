"""What an operation does to this computer, declared by each operation: which devices may ask for it goes by that."""

from enum import StrEnum
from typing import assert_never

from treadle.protocol.checkpoints import Restore
from treadle.protocol.events import (
    Answer,
    CompactNow,
    EditChecklist,
    EditQueued,
    Interrupt,
    MoveQueued,
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
from treadle.protocol.goals import SetGoal
from treadle.protocol.permissions import Mode


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
    SPENDING = "raises a budget that was raised before"
    PORTS = "opens a port of this computer, or closes one"
    OWN_COMMANDS = "runs a command of yours, or writes any file, without rules and sandbox"
    DEVICES = "lets devices in, or signs others out"


FROM_AFAR = frozenset({Reach.ENTER, Reach.SEE, Reach.WORK})
"""What a paired device may do; all else is done on the computer that runs Treadle."""

_NARROWEST_FIRST = tuple(Mode)


def mode_effect(mode: Mode, *known: Mode) -> Reach:
    """Say what going to a mode does, where the user's own settings and the session have those that are `known`."""
    widest = max(_NARROWEST_FIRST.index(one) for one in known)
    return Reach.WIDER if _NARROWEST_FIRST.index(mode) > widest else Reach.WORK


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
            | MoveQueued()
            | RevokeAllowance()
            | Interrupt()
            | SetModel()
            | SetFallback()
            | EditChecklist()
            | Noted()
            | CompactNow()
            | Pin()
            | Restore()
            | SetGoal()
        ):
            return Reach.WORK
        case _:
            assert_never(op)
