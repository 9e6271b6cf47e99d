"""What is true of an open session beside what stands on its page: for its own screen, and for the list of sessions."""

import time
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from msgspec import Struct

from treadle.door.known_models import EFFORT_BUDGETS
from treadle.door.past import DAMAGED, LEFT_OFF, UNREADABLE, SessionState, end_words, how_it_ended
from treadle.present.checklist_items import todo_of
from treadle.present.context_use import filled_words, percent_full
from treadle.present.failure_words import is_failure, waiting_words
from treadle.present.goal_words import CHECKING_GOAL, goal_label, goal_words
from treadle.present.mode_words import WIDE_MODES, mode_sentence
from treadle.present.view import SessionView
from treadle.present.words import tokens
from treadle.protocol.goals import GoalStatus
from treadle.protocol.messages import Text, text_of, without_own_commands
from treadle.protocol.models import money
from treadle.protocol.notifications import Phase, QueuedPrompt, TurnStop
from treadle.protocol.permissions import Mode
from treadle.web.item_html import in_milliseconds
from treadle.web.page_keys import Visitor
from treadle.web.page_session import PageSession
from treadle.web.templating import render


def page_status(page: PageSession, who: Visitor, place: int = 0) -> dict[str, Any]:
    """Give what the screen of a session shows all the time, to a browser; `place` is the one in a service's queue."""
    status, facts = page.session.status, page.content.view
    # What a subagent asks is put in the session that began it.
    asks = bool(status.questions) or status.phase is Phase.AWAITING_USER_CONFIRMATION
    return {
        "doing": _doing(status.phase, asks=asks, checking=status.checking),
        "asks": asks,
        "listens": status.phase is Phase.AWAITING_LLM_RESPONSE,
        "active": status.turn_active,
        "stopped": not status.turn_active and facts.stop == TurnStop.CANCELLED,
        "stops": status.turn_active or status.checking or status.phase is Phase.COMPACTING,
        "checking": CHECKING_GOAL if status.checking else "",
        "mode": status.mode.value,
        "modes": [_mode(mode, status.mode) for mode in page.modes(who)],
        "model": status.model,
        "effort": effort_words(status.thinking),
        "context": _context(status.tokens, status.window),
        "share": percent_full(status.tokens, status.window),
        "goal": goal_line(status.goal),
        "goal_about": "" if status.goal is None else goal_words(status.goal),
        "step": facts.step,
        "counted": facts.counted,
        "came": came_words(facts, time.time()),
        "since": None if facts.since is None else in_milliseconds(facts.since),
        "added": facts.added,
        "removed": facts.removed,
        "retry": queued_words(place) or _retry(facts),
        "tries": _tries(facts),
        "retry_at": None if facts.retry is None or facts.retry.at is None else in_milliseconds(facts.retry.at),
        "queue": [*map(_queued, status.queue), *({**_queued(one), "held": True} for one in status.held)],
        **_plan(status.checklist),
        "questions": page.cards(who),
    }


def _doing(phase: Phase, *, asks: bool, checking: bool) -> str:
    """Say what goes on; that words come is seen where they come."""
    if asks:
        return _DOING[Phase.AWAITING_USER_CONFIRMATION]
    return CHECKING_GOAL if checking else _DOING.get(phase, "Working")


@lru_cache(maxsize=64)
def _plan(checklist: str) -> Mapping[str, str]:
    """Give the plan as HTML with how much of it is done, in figures and in words; empty without one."""
    todo = todo_of(checklist)
    done = sum(one.done for one in todo)
    return {
        "plan": render("plan.html", todo=todo) if todo else "",
        "planned": f"{done}/{len(todo)}" if todo else "",
        "planned_words": f"{done} of {len(todo)}",
    }


def _mode(mode: Mode, now: Mode) -> dict[str, Any]:
    """Describe a mode to go to: its title, what it lets run, whether it is so now, and whether to ask first."""
    known = {"mode": mode.value, "title": mode.value.capitalize(), "about": mode_sentence(mode)}
    return {**known, "now": mode is now, "asks": mode in WIDE_MODES}


def effort_words(thinking: int | None) -> str:
    """Name how much a model thinks, by its budget in tokens; empty where it does not, or not by one of the names."""
    return next((name for name, budget in EFFORT_BUDGETS.items() if budget and budget == thinking), "")


def came_words(view: SessionView, now: float) -> str:
    """Say what has come of the turn's replies, and how fast, as roughly as it can be read while it changes."""
    received = (view.received + view.reply.tokens) // _ROUGHLY * _ROUGHLY
    if not received:
        return ""
    speed = round(view.reply.speed(view.reply.tokens, now) or view.speed, -1)
    return f"↓ {tokens(received)} tokens" + (f" · {speed:.0f} a second" if speed else "")


def goal_line(goal: GoalStatus | None) -> str:
    """Say what the goal is, and how it stands; empty without one."""
    return "" if goal is None else f"{goal_label(goal.state).capitalize()}: {goal.condition}"


def queued_words(place: int) -> str:
    """Say how long the queue of a service is before a turn; nothing where it does not wait."""
    return f"Waiting for its turn: place {place} in the queue" if place else ""


def _retry(view: SessionView) -> str:
    """Say why the model is asked again; how long until then comes behind it."""
    if view.retry is None:
        return ""
    words = waiting_words(view.retry.error, view.model, resets=view.retry.resets)
    return f"{words} {'Continues' if view.retry.resets or view.retry.error.paced else 'Trying again'}"


def _tries(view: SessionView) -> str:
    """Say which attempt is to come, of how many; empty where a limit is waited for."""
    if view.retry is None or view.retry.resets or view.retry.error.paced or not view.retry.most:
        return ""
    return f"{view.retry.attempt} of {view.retry.most}"


def _queued(one: QueuedPrompt) -> dict[str, Any]:
    """Give a message that waits: its words, and how much else goes along with them."""
    words = text_of(without_own_commands(one.content))
    more = sum(not isinstance(block, Text) for block in one.content)
    return {"id": one.id, "text": words, "more": more, "steer": one.steer}


def _context(used: int, window: int | None) -> str:
    return filled_words(used, window) if window else f"{tokens(used)} tokens"


_ROUGHLY = 100
"""Tokens; what stands for fewer is not sent anew."""

_DOING = {
    Phase.ASSEMBLING_CONTEXT: "Preparing",
    Phase.AWAITING_LLM_RESPONSE: "Thinking",
    Phase.JUDGING: "Checking",
    Phase.AWAITING_USER_CONFIRMATION: "Waits for your answer",
    Phase.EXECUTING_TOOL: "Running",
    Phase.COMPACTING: "Making room in the context",
    Phase.CANCELLING: "Stopping",
}

_CHIPS = {
    SessionState.WAITING: "Needs you",
    SessionState.WORKING: "Working",
    SessionState.DONE: "Done",
    SessionState.STOPPED: "Stopped",
}


class StateChip(Struct, frozen=True):
    """The one word that every screen has for a state, the sign that goes with it, and why it ended."""

    sign: str
    words: str
    why: str = ""


ASKED = "asked"
"""The sign of a session that waited for an answer when its program ended: it needs the person as one that waits."""


def chip_of(state: SessionState, ended: str | None, *, asked: bool = False) -> StateChip:
    """Say how a session is; `asked`: it waited for an answer when its program ended."""
    if asked:
        return StateChip(ASKED, _CHIPS[SessionState.WAITING], "its program ended while it waited for your answer")
    if ended is not None and (is_failure(ended) or ended in (UNREADABLE, DAMAGED)):
        return StateChip("failed", "Failed", "" if end_words(ended) == "error" else end_words(ended))
    if ended == LEFT_OFF:
        return StateChip("gone", _CHIPS[state], "its program ended while it worked")
    return StateChip(state.value, _CHIPS[state], "" if ended is None else end_words(ended))


def _waits_for_time(view: SessionView) -> StateChip | None:
    """Say until when a session waits whose provider's limit has to reset; None where it does not wait for that."""
    if view.retry is None or view.retry.at is None or not view.retry.resets:
        return None
    until = datetime.fromtimestamp(view.retry.at).astimezone()
    today = until.date() == datetime.now().astimezone().date()
    return StateChip("until", f"Waits until {until:%H:%M}" if today else f"Waits until {until:%-d %b %H:%M}")


def listed_state(page: PageSession) -> dict[str, Any]:
    """Give what the list of sessions shows of an open session."""
    status, facts = page.session.status, page.content.view
    if status.turn_active or status.questions:
        state, ended = (SessionState.WAITING if status.questions else SessionState.WORKING), None
    else:
        state, ended = how_it_ended(facts.stop)
    chip = _waits_for_time(facts) if state is SessionState.WORKING else None
    chip = chip or chip_of(state, ended)
    return {
        "state": state.value,
        "sign": chip.sign,
        "words": chip.words,
        "why": ", ".join(filter(None, (chip.why, goal_label(status.goal.state if status.goal else None)))),
        "cost": facts.spending.words,
        "budget": "" if status.budget is None else money(status.budget),
        "mode": status.mode.value,
        "model": status.model,
        "added": facts.added,
        "removed": facts.removed,
        "files": facts.files,
        "waiting": len(status.questions),
    }
