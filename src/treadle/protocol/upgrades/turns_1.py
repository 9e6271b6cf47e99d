"""The turns of Treadle 0.1.0: from a request over steps, replies and limits to the end. Frozen."""

import hashlib
from typing import Any

import msgspec

from treadle.protocol.upgrades import calls_1 as calls
from treadle.protocol.upgrades import checklist_1 as checklist
from treadle.protocol.upgrades import words_1 as words
from treadle.protocol.upgrades.budgets_1 import room_for_1
from treadle.protocol.upgrades.old_session import OldSession, joined_text
from treadle.protocol.upgrades.shapes_1 import JsonObject

_YES_OR_NO = ["allow_once", "reject_once"]
_USAGE = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "searches",
)


def settle_1(old: OldSession) -> None:
    """Go as far as the state allows without another event."""
    state = old.state
    if state["cancelling"]:
        if state["activity"]["type"] == "awaiting_reply" or any(one["status"] == "running" for one in state["calls"]):
            return
        late = state["stopping"] == "time"
        why = f"the turn's limit of {state['limits']['max_seconds']:g} s" if late else ""
        end_turn_1(old, state["stopping"] or "cancelled", why=why)
    if state["turn"] is not None and state["activity"]["type"] in ("idle", "awaiting_reply"):
        calls.schedule_1(old)
        open_calls = any(call["status"] != "finished" for call in state["calls"])
        if state["reply"] is not None and not state["questions"] and not open_calls:
            _after_step(old, state["reply"])
    if state["turn"] is None and state["queue"]:
        _start_turn(old)


def _after_step(old: OldSession, reply: str) -> None:
    for call in old.state["calls"]:
        if calls.flow_1(call) == "end_turn" and call["result"]["outcome"] == "ok":
            end_turn_1(old, "end_turn", text=joined_text(call["result"].get("content", [])), completed=True)
            return
    if old.state["calls"]:
        _guard(old)
        _go_on(old)
    else:
        _after_plain_reply(old, reply)


def _after_plain_reply(old: OldSession, reply: str) -> None:
    state, turn = old.state, old.state["turn"]
    worked = turn["worked"] or any(not done for _, done, _ in checklist.parse_1(state["checklist"]["text"]))
    if reply == "refusal":
        end_turn_1(old, "refusal")
    elif reply == "max_tokens":
        mistaken_1(old, words.CUT_REPLY_1)
    elif state["hint"]:
        mistaken_1(old, state["hint"])
    elif state["model"]["choice"]["tool_protocol"] == "xml":
        mistaken_1(old, words.NO_TOOL_USED_1)
    elif state["mode"] != "plan" and worked and turn["reminders"] < state["limits"]["reminders"]:
        turn["reminders"] += 1
        turn["held_back"] = turn["text"]
        old.note(words.UNFINISHED_1)
        begin_step_1(old)
    else:
        held, text = turn["held_back"], turn["text"]
        end_turn_1(old, "end_turn", text=text if held in text else f"{held}\n\n{text}")


def mistaken_1(old: OldSession, note: str) -> None:
    """Tell the model what was wrong with its reply, and count it."""
    old.note(note)
    old.state["guard"]["mistakes"] += 1
    _go_on(old)


def _go_on(old: OldSession) -> None:
    guard, made = old.state["guard"], old.state["calls"]
    old.state["turn"]["held_back"] = ""
    if guard["looping"]:
        name = made[-1]["call"]["name"] if made else "the same reply"
        _ask_guidance(old, "loop", f"The model repeats {name} with the same result. How should it continue?")
    elif guard["mistakes"] >= old.state["limits"]["max_mistakes"]:
        count = guard["mistakes"]
        text = f"{count} replies of the model in a row could not be used. How should it continue?"
        _ask_guidance(old, "mistakes", text)
    else:
        begin_step_1(old)


def _ask_guidance(old: OldSession, stop: str, text: str) -> None:
    if old.state["user_present"]:
        old.ask("guidance", text)
    else:
        end_turn_1(old, stop)


def guided_1(old: OldSession, text: str) -> None:
    """Take the user's guidance to the model and count anew."""
    old.note(f"The user's guidance: {text}")
    old.state["guard"] |= {"mistakes": 0, "recent": [], "polls": 0, "looping": False}
    begin_step_1(old)


def _guard(old: OldSession) -> None:
    """Count the reply whose calls are all finished: mistakes, and the same calls with the same results."""
    guard, made = old.state["guard"], old.state["calls"]
    results = [call["result"] for call in made]
    outcomes = {one["outcome"] for one in results}
    guard["mistakes"] = guard["mistakes"] + 1 if "invalid" in outcomes and not outcomes & {"ok", "failed"} else 0
    if any(one.get("changes") for one in results):
        guard |= {"recent": [], "polls": 0}
        return
    parts = [
        [call["call"]["name"], call["call"]["arguments"], call["result"]["outcome"], call["result"].get("content", [])]
        for call in made
    ]
    fingerprint = hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]
    if any(one.get("running") for one in results):
        _count_polls(old, fingerprint)
    else:
        guard |= {"recent": [*guard["recent"], fingerprint][-15:], "polls": 0}
        _count_repeats(old)


def _count_polls(old: OldSession, fingerprint: str) -> None:
    guard = old.state["guard"]
    count = guard["polls"] + 1 if guard["recent"] == [fingerprint] else 1
    guard |= {"recent": [fingerprint], "polls": count}
    if count >= 30:
        guard["looping"] = True
    elif count % 3 == 0:
        old.note(words.polled_1(count))


def _count_repeats(old: OldSession) -> None:
    recent, limits = old.state["guard"]["recent"], old.state["limits"]
    for period in (1, 2, 3):
        count = _repetitions(recent, period)
        if count >= (limits["max_repeats"] if period == 1 else max(2, limits["max_repeats"] - 1)):
            old.state["guard"]["looping"] = True
            return
        if count == limits["warn_repeats"] and _repetitions(recent[:-1], period) < count:
            names = ", ".join(dict.fromkeys(call["call"]["name"] for call in old.state["calls"]))
            old.note(words.repeated_1(names, count))
            return


def _repetitions(recent: list[str], period: int) -> int:
    block = recent[-period:]
    if len(block) < period or (period > 1 and len(set(block)) == 1):
        return 0
    count = 0
    for end in range(len(recent), period - 1, -period):
        if recent[end - period : end] != block:
            break
        count += 1
    return count


def _start_turn(old: OldSession) -> None:
    state = old.state
    state["turns"] += 1
    state["turn"] = {
        "number": state["turns"],
        "sources": [state["queue"][0]["source"]],
        "steps": 0,
        "usage": dict.fromkeys(_USAGE, 0),
        "cost": 0.0,
        "changes": [],
        "denied": 0,
        "text": "",
        "tainted": False,
        "fetched": [],
        "worked": False,
        "reminders": 0,
        "held_back": "",
        "more": 0,
        "presented": "",
    }
    state["guard"] = {"mistakes": 0, "recent": [], "polls": 0, "looping": False, "auto_approved": 0}
    _deliver(old, state["queue"][:1])
    begin_step_1(old)


def _deliver(old: OldSession, taken: list[JsonObject]) -> None:
    state = old.state
    for waiting in taken:
        state["queue"].remove(waiting)
        state["delivering"].append(waiting["prompt"])
        if waiting["source"] not in state["turn"]["sources"]:
            state["turn"]["sources"].append(waiting["source"])
        old.say("prompts_delivered", turn=state["turn"]["number"], prompt_ids=[waiting["prompt"]["id"]])


def begin_step_1(old: OldSession) -> None:
    """Start the next model call of the turn, unless the limit is reached."""
    state, turn, limit = old.state, old.state["turn"], old.state["limits"]["max_steps"]
    left = None if limit is None else max(0, limit + turn["more"] - turn["steps"])
    if left == 0:
        _ask_for_steps(old, limit)
        return
    _deliver(old, [one for one in state["queue"] if one["prompt"].get("delivery") == "steer"])
    if state["checklist"]["text"]:
        state["checklist"]["age"] += 1
        if note := checklist.reminder_1(checklist.parse_1(state["checklist"]["text"]), state["checklist"]["age"]):
            old.note(note)
    state["step"] += 1
    state |= {"reply": None, "hint": "", "activity": {"type": "assembling", "step": state["step"]}}
    state["space"] |= {"compactions": 0, "exceeded": 0}
    state["money"]["terms"] = None
    turn["steps"] += 1
    turn["presented"] = ""
    if left is not None and left == min(3, limit or left):
        old.note(words.steps_left_1(left))


def _ask_for_steps(old: OldSession, limit: int) -> None:
    if not old.state["user_present"]:
        end_turn_1(old, "max_turn_requests")
        return
    text = f"This turn has reached its limit of {old.state['turn']['steps']} steps. Go on?"
    old.ask("budget", text, options=_YES_OR_NO, more=f"{limit} more steps")


def steps_answered_1(old: OldSession, option: str) -> None:
    """Go on beyond the limit of steps, or end the turn."""
    if option != "allow_once":
        end_turn_1(old, "max_turn_requests")
        return
    old.state["turn"]["more"] += old.state["limits"]["max_steps"] or 0
    begin_step_1(old)


def send_1(old: OldSession, step: int, attempt: int, failures: int = 0) -> None:
    """Send the request if it fits into the budgets; else ask, or end the turn."""
    state, terms = old.state, old.state["money"]["terms"]
    room = room_for_1(state, terms) if terms is not None else None
    held = {"step": step, "attempt": attempt, "failures": failures}
    if room is None or not (room.text or room.why):
        state["money"]["reply_tokens"] = room.reply_tokens if room is not None else None
        state["activity"] = {"type": "awaiting_reply", **held}
    elif room.text and state["user_present"]:
        state["activity"] = {"type": "held", **held, "about": room.about}
        old.ask("budget", room.text, options=_YES_OR_NO, more=room.more)
    else:
        end_turn_1(old, "budget", why=room.text or room.why)


def use_model_1(old: OldSession, choice: JsonObject) -> None:
    """Call this model from the next request on."""
    model = old.state["model"]
    if model["choice"] is None or choice["model"] != model["choice"]["model"]:
        model["window"] = None
    model["choice"] = choice


def usage_sum_1(one: JsonObject, other: JsonObject) -> JsonObject:
    """Sum up what two calls used."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in _USAGE}


def end_turn_1(old: OldSession, stop: str, *, text: str | None = None, **said: Any) -> None:
    """End the turn. Results that the model has not read yet stay."""
    state, turn, model = old.state, old.state["turn"], old.state["model"]
    kept = {name: turn[name] for name in ("steps", "usage", "cost", "changes", "denied")}
    text = (turn["presented"] or turn["text"]) if text is None else text
    if model["replaced"] is not None:
        use_model_1(old, model["replaced"])
        model["replaced"] = None
        old.say("model_replaced", model=model["choice"]["model"], why=words.NEXT_TURN_1)
    state["unread"] = [*state["unread"], *(call["call"]["id"] for call in state["calls"])]
    state |= {"turn": None, "reply": None, "cancelling": False, "stopping": None, "questions": [], "calls": []}
    state["money"]["terms"] = None
    old.idle()
    old.say("turn_settled", turn=turn["number"], outcome={"stop": stop, "text": text, **kept, **said}, state=state)
