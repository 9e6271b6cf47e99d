"""Which tools a model is not told of, and why: what cannot work here or now."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType

from treadle.app.session.ledger import EDIT_TOOLS, choose_edit_tool, today
from treadle.protocol.models import ModelSpec
from treadle.protocol.permissions import Mode, Situation
from treadle.store.sqlite import Store

ANSWERED = Situation(mode=Mode.ASK, user_present=True)
"""A session as a person has it in a terminal."""


def left_out(model: str, store: Store, spec: ModelSpec | None = None) -> Mapping[str, str]:
    """Give the tools that a model (`provider/name`) is told of in no situation, each with the reason."""
    edit_tool = choose_edit_tool(model, store.edit_counts(model), today())
    reasons = dict.fromkeys(EDIT_TOOLS - {edit_tool}, f"this model edits with {edit_tool}")
    if find_spec("playwright") is None:
        reasons["browser_action"] = "Playwright is not installed: pip install 'treadle[browser]'"
    elif spec is not None and spec.images is False:
        reasons["browser_action"] = "this model cannot see screenshots"
    return reasons


def left_out_now(situation: Situation) -> Mapping[str, str]:
    """Give the tools that no model is told of in a situation."""
    reasons: dict[str, str] = {}
    if situation.mode is not Mode.PLAN:
        reasons["plan_mode_respond"] = "it works in plan mode only. Continue with the task, then use attempt_completion"
    if not situation.user_present:
        reasons["ask_followup_question"] = "nobody is here to answer"
        reasons["new_task"] = "nobody is here to agree to it. Continue with the task"
    return reasons


NO_SKILLS: Mapping[str, str] = {"use_skill": "there are no skills here. Continue without one"}
"""What a session without skills leaves out."""


def offering(
    store: Store, spec: Callable[[str], ModelSpec], always_out: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str, Situation], Mapping[str, str]]:
    """Find what a model is not told of; for the same model and situation it is the same each time.

    `always_out` names what no model is told of in the session.
    """

    @cache
    def always(model: str) -> Mapping[str, str]:
        return {**left_out(model, store, spec(model)), **always_out}

    return lambda model, situation: {**always(model), **left_out_now(situation)}
