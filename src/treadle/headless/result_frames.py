"""The end of a turn as the result frame that hosts for Claude Code wait for."""

import time
import uuid
from typing import Any

from treadle.door.hosts import NO_ANSWER
from treadle.door.program import Exit, exit_code
from treadle.headless.channel import Frame
from treadle.headless.frames import usage_of
from treadle.present.failure_words import facts_of, reset_words
from treadle.protocol.errors import TreadleError
from treadle.protocol.notifications import Notice, Phase, TurnOutcome, TurnStop
from treadle.protocol.usage import Usage

_SUBTYPES = {
    TurnStop.MAX_TURN_REQUESTS: ("error_max_turns", "max_turns"),
    TurnStop.BUDGET: ("error_max_budget_usd", "budget_exhausted"),
}
_WHY = {
    TurnStop.MAX_TURN_REQUESTS: "The limit of steps (--max-turns) was reached.",
    TurnStop.BUDGET: "The budget was reached.",
    TurnStop.TIME: "The time limit was reached.",
    TurnStop.MISTAKES: "The model made too many mistakes in a row.",
    TurnStop.LOOP: "The model repeated itself without getting on.",
    TurnStop.REFUSAL: "The model refused.",
    TurnStop.CANCELLED: "The turn was interrupted.",
}


class TurnCount:
    """What the turns of this program took and cost: each result has the time of its turn, and the sum of all costs."""

    def __init__(self) -> None:
        self.cost: float | None = 0.0
        self._estimated = False
        self._models: dict[str, tuple[Usage, float | None, int]] = {}
        self._began = time.monotonic()
        self._asked_at: float | None = None
        self._waited = 0.0
        self._steps = 0
        self._usage = Usage()

    def begin(self) -> None:
        """Begin what one result is about."""
        self._began, self._asked_at, self._waited = time.monotonic(), None, 0.0

    def phase(self, phase: Phase) -> None:
        """Take the time of the model."""
        now = time.monotonic()
        if self._asked_at is not None:
            self._waited += now - self._asked_at
        self._asked_at = now if phase is Phase.AWAITING_LLM_RESPONSE else None

    def add(self, outcome: TurnOutcome, model: str, window: int | None) -> None:
        """Add what a turn took; several may be one turn for the host."""
        self.cost = _sum(self.cost, outcome.cost)
        self._estimated = self._estimated or outcome.usage.estimated
        usage, cost, _ = self._models.get(model, (Usage(), 0.0, 0))
        self._models[model] = (usage + outcome.usage, _sum(cost, outcome.cost), window or 0)
        self._steps += outcome.steps
        self._usage += outcome.usage

    def add_outside(self, notice: Notice, model: str, window: int | None) -> None:
        """Add what was billed while no turn went on: the next result has it."""
        if notice.usage != Usage():
            self.add(TurnOutcome(stop=TurnStop.END_TURN, usage=notice.usage, cost=notice.cost), model, window)

    def taken(self) -> Frame:
        """Give what every result has, and count the next one anew."""
        usage, steps = self._usage, self._steps
        self._usage, self._steps = Usage(), 0
        return {
            "duration_ms": round((time.monotonic() - self._began) * 1000),
            "duration_api_ms": round(self._waited * 1000),
            "num_turns": steps,
            "total_cost_usd": _rounded(self.cost),
            **({"total_cost_is_estimated": True} if self._estimated else {}),
            "usage": usage_of(usage),
            "modelUsage": {model: _model_usage(*said) for model, said in self._models.items()},
        }


def _sum(one: float | None, other: float | None) -> float | None:
    """Add costs up; where one of them is unknown, so is the sum."""
    return None if one is None or other is None else one + other


def _rounded(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 6)


def _model_usage(usage: Usage, cost: float | None, window: int) -> Frame:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadInputTokens": usage.cache_read_tokens,
        "cacheCreationInputTokens": usage.cache_write_tokens,
        "webSearchRequests": usage.searches,
        "costUSD": _rounded(cost),
        "contextWindow": window,
    }


def result_fields(outcome: TurnOutcome, *, no_value: bool = False, in_tools: bool = False) -> Frame:
    """Say how a turn ended. `no_value`: the answer has not the form that was wanted; `in_tools`: a tool was running.

    What was denied for want of anybody to ask is an error: the exit code is one, too.
    """
    errors: list[str] = []
    subtype, reason = _SUBTYPES.get(outcome.stop, ("error_during_execution", "completed"))
    if outcome.stop is TurnStop.CANCELLED:
        reason = "hook_stopped" if outcome.by_hook else "aborted_tools" if in_tools else "aborted_streaming"
    code = exit_code(outcome)
    if no_value:
        subtype = "error_max_structured_output_retries"
        errors = [NO_ANSWER]
    elif code is Exit.PERMISSION:
        errors = [f"{denied_words(outcome)} because nobody was there to approve."]
    elif code is not Exit.DONE:
        errors = [_why(outcome)]
    said: dict[str, Any] = {
        "subtype": subtype if errors else "success",
        "is_error": bool(errors),
        "result": outcome.text or None,
        "stop_reason": _stop_reason(outcome),
        "errors": errors,
        "terminal_reason": reason,
    }
    if outcome.error is not None:
        said["api_error_status"] = outcome.error.status
    return said


def denied_words(outcome: TurnOutcome) -> str:
    """Say how many calls were denied for want of anybody to ask."""
    return "1 call was denied" if outcome.denied == 1 else f"{outcome.denied} calls were denied"


def _why(outcome: TurnOutcome) -> str:
    if outcome.error is not None:
        return " ".join(filter(None, (facts_of(outcome.error), reset_words(outcome.error))))
    if outcome.by_hook:
        return f"The turn was stopped by {outcome.why}"
    why = _WHY.get(outcome.stop, "The turn failed.")
    return f"{why} {outcome.why}".strip()


def _stop_reason(outcome: TurnOutcome) -> str | None:
    match outcome.stop:
        case TurnStop.END_TURN:
            return "end_turn"
        case TurnStop.REFUSAL:
            return "refusal"
        case _:
            return None


def failed_fields(error: BaseException) -> Frame:
    """Say why the program ends without a turn; an error that nobody expected is named as it is."""
    text = f"Something went wrong inside Treadle. {type(error).__name__}: {error}"
    if isinstance(error, TreadleError):
        text = " ".join(filter(None, (error.what, error.why, error.fix)))
    return {
        "subtype": "error_during_execution",
        "is_error": True,
        "result": None,
        "stop_reason": None,
        "errors": [text],
        "terminal_reason": "aborted_streaming",
    }


def command_fields(text: str, *, failed: bool) -> Frame:
    """Say what came of a command that was done instead of sent to a model."""
    return {
        "subtype": "error_during_execution" if failed else "success",
        "is_error": failed,
        "result": text,
        "stop_reason": None,
        "errors": [text] if failed else [],
        "terminal_reason": "completed",
    }


def unopened_frame(error: BaseException) -> Frame:
    """Say why there is no session at all."""
    return {
        "type": "result",
        **TurnCount().taken(),
        **failed_fields(error),
        "permission_denials": [],
        "uuid": str(uuid.uuid4()),
        "session_id": "",
    }
