"""The state of a session of 0.1.0, as JSON, and what its machine said because of the event at hand. Frozen."""

from typing import Any

from treadle.protocol.upgrades.shapes_1 import JsonObject, limits_1


class UnfitError(Exception):
    """The event does not fit what came before it."""


class OldSession:
    """`state` is that of schema 2, but that the calls of a turn that goes on are kept as is convenient here.

    `said` are events; `empty` names the calls whose result has no content.
    """

    def __init__(self) -> None:
        self.said: list[JsonObject] = []
        self.empty: set[str] = set()
        self.state: JsonObject = {
            "session_id": "",
            "seq": 0,
            "mode": "ask",
            "model": {"choice": None, "fallback": None, "replaced": None, "window": None},
            "limits": limits_1({}),
            "user_present": False,
            "activity": {"type": "idle"},
            "step": 0,
            "turns": 0,
            "turn": None,
            "reply": None,
            "hint": "",
            "calls": [],
            "unread": [],
            "questions": [],
            "queue": [],
            "delivering": [],
            "notes": [],
            "allowances": [],
            "money": {"spent": {"cost": 0.0, "tokens": 0}, "terms": None, "reply_tokens": None, "agreed": []},
            "guard": {"mistakes": 0, "recent": [], "polls": 0, "looping": False, "auto_approved": 0},
            "checklist": {"text": "", "read": "", "age": 0},
            "space": {"compactions": 0, "exceeded": 0, "largest": ""},
            "changed": [],
            "runs": [],
            "cancelling": False,
            "stopping": None,
        }

    def say(self, kind: str, **fields: Any) -> None:
        """Add an event that the log did not keep."""
        self.said.append({"type": kind, **fields})

    def note(self, text: str) -> None:
        """Tell the model something with its next message."""
        self.state["notes"].append({"kind": "note", "text": text})

    def idle(self) -> None:
        """End the work on the model's side."""
        self.state["activity"] = {"type": "idle"}

    def working(self, kind: str, step: int | None = None, attempt: int | None = None) -> JsonObject:
        """Give the activity, which has to be this one."""
        activity: JsonObject = self.state["activity"]
        if activity["type"] != kind or step not in (None, activity["step"]):
            raise UnfitError(f"the session is not {kind.replace('_', ' ')}")
        if attempt not in (None, activity.get("attempt")):
            raise UnfitError("no such reply is expected")
        return activity

    def call(self, call_id: str, *wanted: str) -> JsonObject:
        """Give a call of the present step in one of these states."""
        for call in self.state["calls"]:
            if call["call"]["id"] == call_id and (not wanted or call["status"] in wanted):
                return call  # type: ignore[no-any-return]
        raise UnfitError("no such call is open")

    def ask(self, kind: str, text: str, **fields: Any) -> None:
        """Put a question to the user."""
        question = {"id": f"q{self.state['seq']}", "kind": kind, "text": text, **fields}
        self.state["questions"].append(question)
        self.say("question_put", question=question)

    def close(self, call_id: str) -> None:
        """Withdraw the questions about a call."""
        self.state["questions"] = [one for one in self.state["questions"] if one.get("call_id", "") != call_id]


def result(outcome: str, text: str) -> JsonObject:
    """Build a result of plain text."""
    return {"outcome": outcome, "content": [{"type": "text", "text": text}]}


def joined_text(content: list[JsonObject]) -> str:
    """Join the texts of a content."""
    return "".join(block["text"] for block in content if block["type"] == "text")
