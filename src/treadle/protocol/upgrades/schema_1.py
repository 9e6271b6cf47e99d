"""Logs of schema 1, which Treadle 0.1.0 wrote: they hold causes only. Told again with what it said. Frozen.

Its words were not in the log but computed at each reading. They stand here, so that an old session reads the same for
ever; what is changed here changes what was said.
"""

from collections.abc import Callable

import msgspec

from treadle.protocol.base import StoredEvent
from treadle.protocol.errors import DriftError
from treadle.protocol.upgrades import calls_1 as calls
from treadle.protocol.upgrades import checklist_1 as checklist
from treadle.protocol.upgrades import replies_1 as replies
from treadle.protocol.upgrades import turns_1 as turns
from treadle.protocol.upgrades.old_session import OldSession, UnfitError
from treadle.protocol.upgrades.shapes_1 import JsonObject, choice_1, limits_1

_UNFIT = (
    UnfitError,
    msgspec.MsgspecError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
_ENGINE = b'{"kind":"engine"}'


class UpgradeOf1:
    """Follows a log, and gives each row in schema 2 with what 0.1.0 said because of it behind."""

    def __init__(self) -> None:
        self._old = OldSession()
        self._conversation = replies.Conversation1()

    def take(self, row: StoredEvent) -> list[StoredEvent]:
        """Give the rows in the place of one; raises `DriftError`."""
        kind = "?"
        try:
            data = msgspec.json.decode(row.data)
            kind = str(data["type"])
            return self._retold(row, data)
        except _UNFIT as error:
            raise DriftError(row.seq, kind, str(error)) from error

    def _retold(self, row: StoredEvent, data: JsonObject) -> list[StoredEvent]:
        old, state = self._old, self._old.state
        if row.seq <= state["seq"]:
            raise UnfitError(f"its number {row.seq} is not after {state['seq']}")
        if (data["type"] == "session_started") == bool(state["session_id"]):
            raise UnfitError("a log begins with the start of its session, and has no other")
        state["seq"], old.said = row.seq, []
        own = self._conversation.reshaped(old, row.seq, data)
        if data["type"] == "prompt":
            _prompt(old, data, msgspec.json.decode(row.source))
        else:
            _TAKEN[data["type"]](old, data)
        turns.settle_1(old)
        sealed = [(row.source, own), *((_ENGINE, said) for said in old.said)]
        return [
            StoredEvent(seq=row.seq, at=row.at, source=source, version=2, data=msgspec.json.encode(one))
            for source, one in sealed
        ]


def _session_started(old: OldSession, data: JsonObject) -> None:
    fallback = data.get("fallback")
    old.state |= {"session_id": data["session_id"], "mode": data["mode"], "limits": limits_1(data.get("limits", {}))}
    old.state["model"] |= {"choice": choice_1(data), "fallback": None if fallback is None else choice_1(fallback)}


def _prompt(old: OldSession, data: JsonObject, source: JsonObject) -> None:
    if any(waiting["prompt"]["id"] == data["id"] for waiting in old.state["queue"]):
        raise UnfitError("a prompt with this id is already queued")
    old.state["queue"].append({"prompt": data, "source": source})


def _edit_queued(old: OldSession, data: JsonObject) -> None:
    content = data.get("content")
    waiting = {one["prompt"]["id"]: one for one in old.state["queue"]}[data["prompt_id"]]
    if content:
        waiting["prompt"] = {**waiting["prompt"], "content": content}
    else:
        old.state["queue"].remove(waiting)


def _answer(old: OldSession, data: JsonObject) -> None:
    questions = old.state["questions"]
    question = {one["id"]: one for one in questions}[data["question_id"]]
    if question["kind"] in ("permission", "followup"):
        calls.answered_1(old, question, data)
        return
    questions.remove(question)
    if old.state["activity"]["type"] == "held":
        replies.budget_answered_1(old, data["option"])
    elif question["kind"] == "budget":
        turns.steps_answered_1(old, data["option"])
    else:
        turns.guided_1(old, data.get("text", ""))


def _interrupt(old: OldSession, data: JsonObject) -> None:  # noqa: ARG001 - as every event
    if old.state["turn"] is None or old.state["cancelling"]:
        raise UnfitError("nothing is running")
    if old.state["activity"]["type"] != "awaiting_reply":
        old.idle()
    calls.interrupt_1(old)
    old.state |= {"cancelling": True, "questions": []}


def _set_mode(old: OldSession, data: JsonObject) -> None:
    old.state["mode"] = data["mode"]


def _revoke_allowance(old: OldSession, data: JsonObject) -> None:
    old.state["allowances"] = [one for one in old.state["allowances"] if one["id"] != data["allowance_id"]]


def _set_model(old: OldSession, data: JsonObject) -> None:
    turns.use_model_1(old, choice_1(data))
    old.state["model"]["replaced"] = None


def _set_fallback(old: OldSession, data: JsonObject) -> None:
    fallback = data.get("choice")
    old.state["model"]["fallback"] = None if fallback is None else choice_1(fallback)


def _set_limits(old: OldSession, data: JsonObject) -> None:
    old.state["limits"] = limits_1(data["limits"])


def _edit_checklist(old: OldSession, data: JsonObject) -> None:
    now = checklist.parse_1(data["text"])
    if note := checklist.edited_1(checklist.parse_1(old.state["checklist"]["text"]), now):
        old.note(note)
    _keep_checklist(old, checklist.render_1(now))


def _keep_checklist(old: OldSession, text: str) -> None:
    if text != old.state["checklist"]["text"]:
        old.state["checklist"]["text"] = text
        old.say("checklist_updated", text=text)


def _set_presence(old: OldSession, data: JsonObject) -> None:
    old.state["user_present"] = data["user_present"]
    if not data["user_present"]:
        _withdraw_questions(old)


def _withdraw_questions(old: OldSession) -> None:
    state = old.state
    for call in list(state["calls"]):
        if call["status"] == "asking":
            calls.withdraw_1(old, call)
    kinds = {question["kind"] for question in state["questions"]}
    if "guidance" in kinds:
        turns.end_turn_1(old, "loop" if state["guard"]["looping"] else "mistakes")
    elif state["activity"]["type"] == "held":
        replies.nobody_pays_1(old)
    elif "budget" in kinds:
        turns.end_turn_1(old, "max_turn_requests")


def _resumed(old: OldSession, data: JsonObject) -> None:
    state, activity = old.state, old.state["activity"]
    state["user_present"] = data["user_present"]
    if state["cancelling"]:
        calls.abandon_1(old)
        old.idle()
        return
    match activity["type"]:
        case "awaiting_reply":
            calls.drop_1(old)
            turns.send_1(old, activity["step"], activity["attempt"] + 1, activity["failures"])
        case "retrying":
            replies.retry_now_1(old)
        case "idle":
            calls.resume_1(old)
        case _:
            pass
    if not state["user_present"] and activity["type"] in ("idle", "held"):
        _withdraw_questions(old)


def _call_proposed(old: OldSession, data: JsonObject) -> None:
    old.working("awaiting_reply", data["step"], data["attempt"])
    calls.propose_1(old, data)
    wanted = checklist.parse_1(data.get("progress", ""))
    if wanted:
        known = old.state["checklist"]
        merged = checklist.merge_1(checklist.parse_1(known["read"]), wanted, checklist.parse_1(known["text"]))
        known |= {"age": 0, "read": checklist.render_1(merged)}
        _keep_checklist(old, checklist.render_1(merged))


def _call_started(old: OldSession, data: JsonObject) -> None:
    old.call(data["call_id"], "starting")["status"] = "running"


def _timer_fired(old: OldSession, data: JsonObject) -> None:
    turn = old.state["turn"]
    if turn is not None and data["timer"] == f"turn-{turn['number']}":
        old.state["stopping"] = "time"
        _interrupt(old, data)
    elif old.working("retrying")["timer"] == data["timer"]:
        replies.retry_now_1(old)
    else:
        raise UnfitError("no such timer runs")


_TAKEN: dict[str, Callable[[OldSession, JsonObject], None]] = {
    "session_started": _session_started,
    "edit_queued": _edit_queued,
    "answer": _answer,
    "interrupt": _interrupt,
    "set_mode": _set_mode,
    "revoke_allowance": _revoke_allowance,
    "set_model": _set_model,
    "set_fallback": _set_fallback,
    "set_limits": _set_limits,
    "edit_checklist": _edit_checklist,
    "set_presence": _set_presence,
    "resumed": _resumed,
    "context_ready": replies.context_ready_1,
    "context_exceeded": replies.context_exceeded_1,
    "compacted": replies.compacted_1,
    "call_proposed": _call_proposed,
    "reply_finished": replies.reply_finished_1,
    "reply_failed": replies.reply_failed_1,
    "call_judged": calls.judged_1,
    "call_started": _call_started,
    "call_finished": calls.finished_1,
    "timer_fired": _timer_fired,
}
