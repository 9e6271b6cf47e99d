"""The model's side in Treadle 0.1.0: the message that was sent, the reply, retries, the other model, room. Frozen."""

from typing import Any

from treadle.protocol.upgrades import calls_1 as calls
from treadle.protocol.upgrades import words_1 as words
from treadle.protocol.upgrades.budgets_1 import context_tokens, worst_of
from treadle.protocol.upgrades.old_session import OldSession, text_of
from treadle.protocol.upgrades.shapes_1 import Data, passage, reshaped
from treadle.protocol.upgrades.turns_1 import end_turn, mistaken, send, usage_sum, use_model

_RETRYABLE = ("rate_limit", "overloaded", "server", "network", "timeout", "malformed_stream", "empty_reply")


class Conversation:
    """Which messages there are: whose, and the number of the last event that added to it."""

    def __init__(self) -> None:
        self._messages: list[tuple[str, int]] = []

    def reshaped(self, old: OldSession, seq: int, data: Data) -> Data:
        """Give an event in its new shape; the state is that before it."""
        new = reshaped(data)
        match data["type"]:
            case "context_ready":
                return self._sealed(old, seq, new)
            case "compacted":
                return self._compacted(new)
            case "reply_finished":
                self._add("assistant", seq)
            case "reply_failed" if data.get("partial") is not None:
                self._add("assistant", seq)
        return new

    def _add(self, role: str, seq: int) -> None:
        if self._messages and self._messages[-1][0] == role:
            self._messages.pop()
        self._messages.append((role, seq))

    def _sealed(self, old: OldSession, seq: int, data: Data) -> Data:
        state = old.state
        first = not self._messages
        self._add("user", seq)
        results = [
            {"call_id": call_id, "text": words.NEVER_PRESENTED if call_id in old.empty else ""}
            for call_id in (*state["unread"], *(call["call"]["id"] for call in state["calls"]))
        ]
        content = [passage("note", f"<note>\n{note['text']}\n</note>") for note in state["notes"]]
        for prompt in state["delivering"]:
            place = {"type": "prompt_content", "prompt_id": prompt["id"]}
            content += [passage("task", "<task>"), place, passage("task", "</task>")] if first else [place]
        return {**data, "results": results, "content": [*content, *data["content"]]}

    def _compacted(self, data: Data) -> Data:
        dropped = data["dropped"]
        if not dropped or not self._messages:
            return {**data, "through": 0}
        through = self._messages[min(dropped, len(self._messages) - 1)][1]
        del self._messages[1 : 1 + dropped]
        return {**data, "through": through, "summary": data.get("summary") or words.LEFT_OUT}


def context_ready(old: OldSession, data: Data) -> None:
    """Send the request."""
    old.working("assembling", data["step"])
    state = old.state
    state["checklist"]["read"] = state["checklist"]["text"]
    state |= {"calls": [], "unread": [], "delivering": [], "notes": []}
    state["money"]["terms"] = data.get("terms")
    send(old, data["step"], attempt=1)


def budget_answered(old: OldSession, option: str) -> None:
    """Go on as the user says about money."""
    held = old.working("held")
    if option != "allow_once":
        end_turn(old, "budget", why=words.NO_MORE_MONEY)
        return
    agreed = old.state["money"]["agreed"]
    agreed += [held["about"]] if held["about"] not in agreed else []
    send(old, held["step"], held["attempt"], held["failures"])


def nobody_pays(old: OldSession) -> None:
    """End a turn that waits for a yes to what it costs."""
    end_turn(old, "budget", why=words.NOBODY_FOR_MONEY)


def context_exceeded(old: OldSession, data: Data) -> None:
    """Make room."""
    old.working("assembling", data["step"])
    if old.state["space"]["compactions"] < 3:
        old.state["space"]["exceeded"] = data["tokens"]
        _make_room(old, data["step"], attempt=0)
        return
    tokens, window = data["tokens"], data["window"]
    _too_long(old, f"The conversation is too long for the model: {tokens:,} tokens for a window of {window:,}.")


def _make_room(old: OldSession, step: int, attempt: int) -> None:
    old.state["activity"] = {"type": "compacting", "step": step, "attempt": attempt}
    old.state["space"]["compactions"] += 1


def compacted(old: OldSession, data: Data) -> None:
    """Go on with the room that was made."""
    attempt = old.working("compacting", data["step"])["attempt"]
    old.state["space"]["largest"] = data.get("largest", "")
    if data["dropped"] == 0 and not data.get("shortened"):
        _too_long(old, words.NOTHING_LEFT)
    elif attempt == 0:
        old.state["activity"] = {"type": "assembling", "step": data["step"]}
    else:
        send(old, data["step"], attempt + 1)


def _too_long(old: OldSession, why: str) -> None:
    end_turn(old, "error", error={"kind": "context_too_long", "message": _with_largest(old, why)})


def _with_largest(old: OldSession, why: str) -> str:
    largest = old.state["space"]["largest"]
    return f"{why} The largest part of it is {largest}." if largest else why


def reply_finished(old: OldSession, data: Data) -> None:
    """Take a whole reply."""
    old.working("awaiting_reply", data["step"], data["attempt"])
    state, text = old.state, text_of(data["message"].get("content", []))
    _bill(old, data["usage"], data.get("cost"), told=context_tokens(data["usage"]) > 0)
    if text.strip():
        state["turn"]["text"] = text
    state |= {"reply": data["stop"], "hint": data.get("hint", "")}
    old.idle()
    if state["cancelling"]:
        calls.interrupt(old)


def reply_failed(old: OldSession, data: Data) -> None:
    """Try again, call another model, make room, or end the turn."""
    failures = old.working("awaiting_reply", data["step"], data["attempt"])["failures"] + 1
    _bill(old, data.get("usage", {}), data.get("cost"))
    calls.drop(old)
    old.idle()
    state, error, fallback = old.state, data["error"], old.state["model"]["fallback"]
    too_long, retryable = error["kind"] == "context_too_long", error["kind"] in _RETRYABLE
    if state["cancelling"]:
        return
    if too_long and state["space"]["compactions"] < 3:
        state["space"]["exceeded"] = 0
        state["model"]["window"] = error.get("window") or state["model"]["window"]
        _make_room(old, data["step"], data["attempt"])
    elif fallback is not None and _should_stand_in(old, error, failures):
        _stand_in(old, fallback, error)
        send(old, data["step"], data["attempt"] + 1)
    elif error["kind"] == "empty_reply" and failures > 1:
        mistaken(old, words.EMPTY_REPLY)
    elif retryable and failures <= state["limits"]["max_retries"]:
        _retry(old, data, failures)
    else:
        if too_long:
            error = {**error, "message": _with_largest(old, f"{error['message']} Making room did not help.")}
        end_turn(old, "error", error=error)


def _should_stand_in(old: OldSession, error: Data, failures: int) -> bool:
    if old.state["model"]["replaced"] is not None:
        return False
    if error["kind"] == "balance":
        return True
    return error["kind"] in _RETRYABLE and (failures >= 2 or (error.get("retry_after") or 0.0) > 10.0)


def _stand_in(old: OldSession, fallback: Data, error: Data) -> None:
    chosen = old.state["model"]["choice"]
    why = f"{chosen['model']} keeps failing ({error['message']}); {fallback['model']} takes over"
    use_model(old, fallback)
    old.state["model"]["replaced"] = chosen
    old.say("model_replaced", model=fallback["model"], why=why)


def _retry(old: OldSession, data: Data, failures: int) -> None:
    ceiling, after, jitter = min(60.0, 2.0 ** (failures - 1)), data["error"].get("retry_after"), data.get("jitter", 0.0)
    seconds = ceiling * (0.5 + jitter / 2)
    if after is not None:
        seconds = min(60.0, max(0.0, after) + jitter * min(1.0, ceiling))
    waiting: dict[str, Any] = {"step": data["step"], "attempt": data["attempt"] + 1, "failures": failures}
    timer = f"retry-{data['step']}-{data['attempt']}"
    old.state["activity"] = {"type": "retrying", **waiting, "timer": timer}
    old.say("retry_planned", attempt=failures, seconds=seconds, most=old.state["limits"]["max_retries"])


def retry_now(old: OldSession) -> None:
    """Send the request again."""
    waiting = old.working("retrying")
    send(old, waiting["step"], waiting["attempt"], waiting["failures"])


def _bill(old: OldSession, usage: Data, cost: float | None, *, told: bool = True) -> None:
    turn, money = old.state["turn"], old.state["money"]
    terms = money["terms"]
    used = {"cost": cost or 0.0, "tokens": context_tokens(usage)}
    if not told and terms is not None:
        used = worst_of(terms, money["reply_tokens"])
    if terms is not None:
        money["terms"] = {**terms, "day": _add({"cost": 0.0, "tokens": 0, **terms.get("day", {})}, used)}
    turn["usage"] = usage_sum(turn["usage"], usage)
    turn["cost"] = None if cost is None or turn["cost"] is None else turn["cost"] + cost
    money["spent"] = _add(money["spent"], used)


def _add(one: Data, other: Data) -> Data:
    return {name: one[name] + other[name] for name in ("cost", "tokens")}
