"""Exit codes: what a script can rely on."""

from enum import IntEnum

from treadle.protocol.errors import ConfigError, SessionError, TreadleError
from treadle.protocol.goals import GoalState, GoalStatus
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import TurnOutcome, TurnStop


class Exit(IntEnum):
    """How the program ended; documented in docs/headless.md."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    STEPS = 53
    BUDGET = 54
    PERMISSION = 55
    MISTAKES = 56
    LOOP = 57
    GOAL = 58
    TRANSIENT = 75
    CONFIG = 78
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143


_USAGE = frozenset(
    {
        "command-unknown",
        "task-unquoted",
        "task-sign",
        "resume-id",
        "host-format",
        "background-flag",
        "goal-flag",
        "copy-name",
        "variants-use",
        "attach-settings",
        "batch-option",
        "service-option",
        "review-range",
        "review-use",
        "schedule-time",
    }
)
"""Errors that are mistakes in the command line itself."""

_CONFIG = frozenset({ErrorKind.AUTHENTICATION, ErrorKind.PERMISSION, ErrorKind.BALANCE, ErrorKind.NOT_FOUND})


def exit_code(outcome: TurnOutcome, goal: GoalStatus | None = None) -> Exit:
    """Map the end of a turn to an exit code; with the goal that was worked on, whether that is met.

    A turn that was interrupted, or whose model could not be called, has its own in any case.
    """
    if goal is None or outcome.stop in (TurnStop.CANCELLED, TurnStop.ERROR):
        return _of_turn(outcome)
    if goal.state is GoalState.PAUSED:
        return Exit.INTERRUPTED
    return Exit.DONE if goal.state is GoalState.MET and outcome.stop is TurnStop.END_TURN else Exit.GOAL


def _of_turn(outcome: TurnOutcome) -> Exit:
    match outcome.stop:
        case TurnStop.END_TURN:
            return Exit.PERMISSION if outcome.denied else Exit.DONE
        case TurnStop.MAX_TURN_REQUESTS:
            return Exit.STEPS
        case TurnStop.BUDGET | TurnStop.TIME:
            return Exit.BUDGET
        case TurnStop.CANCELLED:
            return Exit.FAILED if outcome.by_hook else Exit.INTERRUPTED
        case TurnStop.MISTAKES:
            return Exit.MISTAKES
        case TurnStop.LOOP:
            return Exit.LOOP
        case TurnStop.REFUSAL:
            return Exit.FAILED
        case TurnStop.ERROR:
            return _error(outcome.error)


def _error(error: ModelError | None) -> Exit:
    if error is None:
        return Exit.FAILED
    if error.retryable:
        return Exit.TRANSIENT
    return Exit.CONFIG if error.kind in _CONFIG else Exit.FAILED


def exit_of_error(error: TreadleError) -> Exit:
    """Map an error that ends the program to an exit code."""
    match error:
        case ConfigError(code=code) if code in _USAGE:
            return Exit.USAGE
        case ConfigError():
            return Exit.CONFIG
        case SessionError(code="session-busy"):
            return Exit.TRANSIENT
        case _:
            return Exit.FAILED
