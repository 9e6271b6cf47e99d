"""The model's side in Treadle 0.1.0: the message that was sent, the reply, retries, the other model, room. Frozen."""

from typing import Any

from treadle.protocol.upgrades import calls_1 as calls
from treadle.protocol.upgrades import words_1 as words
from treadle.protocol.upgrades.budgets_1 import context_tokens_1, worst_of_1
from treadle.protocol.upgrades.old_session import OldSession, joined_text
from treadle.protocol.upgrades.shapes_1 import JsonObject, passage_1, reshaped_1
from treadle.protocol.upgrades.turns_1 import end_turn_1, mistaken_1, send_1, usage_sum_1, use_model_1

_RETRYABLE = ("rate_limit", "overloaded", "server", "network", "timeout", "malformed_stream", "empty_reply")


class Conversation1:
    """Which messages there are: whose, and the number of the last event that added to it."""

    def __init__(self) -> None:
        self._messages: list[tuple[str, int]] = []

    def reshaped(self, old: OldSession, seq: int, data: JsonObject) -> JsonObject:
        """Give an event in its new shape; the state is that before it."""
        new = reshaped_1(data)
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

    def _sealed(self, old: OldSession, seq: int, data: JsonObject) -> JsonObject:
        state = old.state
        first = not self._messages
        self._add("user", seq)
        results = [
            {"call_id": call_id, "text": words.NEVER_PRESENTED_1 if call_id in old.empty else ""}
            for call_id in (*state["unread"], *(call["call"]["id"] for call in state["calls"]))
        ]
        content = [passage_1("note", f"<note>\n{note['text']}\n</note>") for note in state["notes"]]
        for prompt in state["delivering"]:
            place = {"type": "prompt_content", "prompt_id": prompt["id"]}
            content += [passage_1("task", "<task>"), place, passage_1("task", "</task>")] if first else [place]
        return {**data, "results": results, "content": [*content, *data["content"]]}

    def _compacted(self, data: JsonObject) -> JsonObject:
        dropped = data["dropped"]
        if not dropped or not self._messages:
            return {**data, "through": 0}
        through = self._messages[min(dropped, len(self._messages) - 1)][1]
        del self._messages[1 : 1 + dropped]
        return {**data, "through": through, "summary": data.get("summary") or words.LEFT_OUT_1}


def context_ready_1(old: OldSession, data: JsonObject) -> None:
    """Send the request."""
    old.working("assembling", data["step"])
    state = old.state
    state["checklist"]["read"] = state["checklist"]["text"]
    state |= {"calls": [], "unread": [], "delivering": [], "notes": []}
    state["money"]["terms"] = data.get("terms")
    send_1(old, data["step"], attempt=1)


def budget_answered_1(old: OldSession, option: str) -> None:
    """Go on as the user says about money."""
    held = old.working("held")
    if option != "allow_once":
        end_turn_1(old, "budget", why=words.NO_MORE_MONEY_1)
        return
    agreed = old.state["money"]["agreed"]
    agreed += [held["about"]] if held["about"] not in agreed else []
    send_1(old, held["step"], held["attempt"], held["failures"])


def nobody_pays_1(old: OldSession) -> None:
    """End a turn that waits for a yes to what it costs."""
    end_turn_1(old, "budget", why=words.NOBODY_FOR_MONEY_1)


def context_exceeded_1(old: OldSession, data: JsonObject) -> None:
    """Make room."""
    old.working("assembling", data["step"])
    if old.state["space"]["compactions"] < 3:
        old.state["space"]["exceeded"] = data["tokens"]
        _compact(old, data["step"], attempt=0)
        return
    tokens, window = data["tokens"], data["window"]
    _too_long(old, f"The conversation is too long for the model: {tokens:,} tokens for a window of {window:,}.")


def _compact(old: OldSession, step: int, attempt: int) -> None:
    old.state["activity"] = {"type": "compacting", "step": step, "attempt": attempt}
    old.state["space"]["compactions"] += 1


def compacted_1(old: OldSession, data: JsonObject) -> None:
    """Go on with the room that was made."""
    attempt = old.working("compacting", data["step"])["attempt"]
    old.state["space"]["largest"] = data.get("largest", "")
    if data["dropped"] == 0 and not data.get("shortened"):
        _too_long(old, words.NOTHING_LEFT_1)
    elif attempt == 0:
        old.state["activity"] = {"type": "assembling", "step": data["step"]}
    else:
        send_1(old, data["step"], attempt + 1)


def _too_long(old: OldSession, why: str) -> None:
    end_turn_1(old, "error", error={"kind": "context_too_long", "message": _with_largest(old, why)})


def _with_largest(old: OldSession, why: str) -> str:
    largest = old.state["space"]["largest"]
    return f"{why} The largest part of it is {largest}." if largest else why


def reply_finished_1(old: OldSession, data: JsonObject) -> None:
    """Take a whole reply."""
    old.working("awaiting_reply", data["step"], data["attempt"])
    state, text = old.state, joined_text(data["message"].get("content", []))
    _bill(old, data["usage"], data.get("cost"), known=context_tokens_1(data["usage"]) > 0)
    if text.strip():
        state["turn"]["text"] = text
    state |= {"reply": data["stop"], "hint": data.get("hint", "")}
    old.idle()
    if state["cancelling"]:
        calls.interrupt_1(old)


def reply_failed_1(old: OldSession, data: JsonObject) -> None:
    """Try again, call another model, make room, or end the turn."""
    failures = old.working("awaiting_reply", data["step"], data["attempt"])["failures"] + 1
    _bill(old, data.get("usage", {}), data.get("cost"))
    calls.drop_1(old)
    old.idle()
    state, error, fallback = old.state, data["error"], old.state["model"]["fallback"]
    too_long, retryable = error["kind"] == "context_too_long", error["kind"] in _RETRYABLE
    if state["cancelling"]:
        return
    if too_long and state["space"]["compactions"] < 3:
        state["space"]["exceeded"] = 0
        state["model"]["window"] = error.get("window") or state["model"]["window"]
        _compact(old, data["step"], data["attempt"])
    elif fallback is not None and _should_fall_back(old, error, failures):
        _use_fallback(old, fallback, error)
        send_1(old, data["step"], data["attempt"] + 1)
    elif error["kind"] == "empty_reply" and failures > 1:
        mistaken_1(old, words.EMPTY_REPLY_1)
    elif retryable and failures <= state["limits"]["max_retries"]:
        _retry(old, data, failures)
    else:
        if too_long:
            error = {**error, "message": _with_largest(old, f"{error['message']} Making room did not help.")}
        end_turn_1(old, "error", error=error)


def _should_fall_back(old: OldSession, error: JsonObject, failures: int) -> bool:
    if old.state["model"]["replaced"] is not None:
        return False
    if error["kind"] == "balance":
        return True
    return error["kind"] in _RETRYABLE and (failures >= 2 or (error.get("retry_after") or 0.0) > 10.0)


def _use_fallback(old: OldSession, fallback: JsonObject, error: JsonObject) -> None:
    chosen = old.state["model"]["choice"]
    why = f"{chosen['model']} keeps failing ({error['message']}); {fallback['model']} takes over"
    use_model_1(old, fallback)
    old.state["model"]["replaced"] = chosen
    old.say("model_replaced", model=fallback["model"], why=why)


def _retry(old: OldSession, data: JsonObject, failures: int) -> None:
    ceiling, after, jitter = min(60.0, 2.0 ** (failures - 1)), data["error"].get("retry_after"), data.get("jitter", 0.0)
    seconds = ceiling * (0.5 + jitter / 2)
    if after is not None:
        seconds = min(60.0, max(0.0, after) + jitter * min(1.0, ceiling))
    waiting: dict[str, Any] = {"step": data["step"], "attempt": data["attempt"] + 1, "failures": failures}
    timer = f"retry-{data['step']}-{data['attempt']}"
    old.state["activity"] = {"type": "retrying", **waiting, "timer": timer}
    old.say("retry_planned", attempt=failures, seconds=seconds, most=old.state["limits"]["max_retries"])


def retry_now_1(old: OldSession) -> None:
    """Send the request again."""
    waiting = old.working("retrying")
    send_1(old, waiting["step"], waiting["attempt"], waiting["failures"])


def _bill(old: OldSession, usage: JsonObject, cost: float | None, *, known: bool = True) -> None:
    turn, money = old.state["turn"], old.state["money"]
    terms = money["terms"]
    used = {"cost": cost or 0.0, "tokens": context_tokens_1(usage)}
    if not known and terms is not None:
        used = worst_of_1(terms, money["reply_tokens"])
    if terms is not None:
        money["terms"] = {**terms, "day": _add({"cost": 0.0, "tokens": 0, **terms.get("day", {})}, used)}
    turn["usage"] = usage_sum_1(turn["usage"], usage)
    turn["cost"] = None if cost is None or turn["cost"] is None else turn["cost"] + cost
    money["spent"] = _add(money["spent"], used)


def _add(one: JsonObject, other: JsonObject) -> JsonObject:
    return {name: one[name] + other[name] for name in ("cost", "tokens")}
