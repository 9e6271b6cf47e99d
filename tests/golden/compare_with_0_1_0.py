"""Compare what this version reads off random logs of Treadle 0.1.0 with what 0.1.0 reads off them itself.

    python -m tests.golden.compare_with_0_1_0 SOURCE [WALKS] [FIRST]

SOURCE is the `src` folder of a checkout of 0.1.0. Not a part of the test run; prints every difference.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.messages import read_transcript
from tests.golden.logs import Row, read_rows
from treadle.context.notified import notifications
from treadle.engine.core.past_history import read_past
from treadle.engine.runtime.window import next_message
from treadle.protocol.events import Event
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import QuestionAsked, RetryScheduled, TurnEnded, TurnStarted

SAME = (
    *("session_id", "seq", "mode", "limits", "user_present", "activity", "step", "turns", "turn", "reply", "hint"),
    *("questions", "queue", "delivering", "notes", "allowances", "changed", "runs", "cancelling", "stopping"),
)


def walks(source: str, first: int, count: int) -> Iterator[dict[str, Any]]:
    """Give random walks of 0.1.0."""
    script = Path(__file__).with_name("walk_0_1_0.py")
    command = [sys.executable, str(script), str(first), str(first + count)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": source}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise SystemExit("0.1.0 failed.")


def told(walked: dict[str, Any]) -> Iterator[str]:
    """Name what this version sends again, or asks, otherwise: nothing, whatever its words and rules are."""
    events = list(read_rows([Row(*row) for row in walked["rows"]]))
    transcript = read_transcript(events)
    found = {
        "native": transcript.messages(ToolProtocol.NATIVE),
        "xml": transcript.messages(ToolProtocol.XML, images=False),
        "notified": list(notified(events)),
    }
    yield from _unlike(found, walked)


def decided(walked: dict[str, Any]) -> Iterator[str]:
    """Name what this version goes on with otherwise, as long as its words and rules are those of 0.1.0."""
    past = read_past(list(read_rows([Row(*row) for row in walked["rows"]])))
    transcript, state = past.transcript, past.state
    message = next_message(state, past.reader, "env")
    found = {
        "tokens": (transcript.tokens, transcript.most_tokens, transcript.droppable()),
        "requests": transcript.facts(transcript.droppable()).requests,
    }
    if all(call.finished for call in state.calls):  # nothing is sealed before each call has its result
        found["next"] = past.reader.blocks(message.results, message.content)
    yield from _unlike(found, walked)
    new = plain(state)
    open_calls = [call["call"]["id"] for call in new["calls"]]
    expected = meaning(walked["state"], open_calls)
    yield from _unlike({name: value for name, value in state_of(new).items() if name in expected}, expected)


def _unlike(found: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    for name, value in found.items():
        if plain(value) != expected[name]:
            yield f"{name}:\n  {plain(value)}\n  {expected[name]}"


def notified(events: list[Event]) -> Iterator[Any]:
    """What a person was asked, and how turns ended."""
    for one in notifications(events):
        if isinstance(one, QuestionAsked):
            asked = one.question
            yield [asked.id, asked.kind, asked.text, asked.options, asked.call_id, asked.more]
        elif isinstance(one, TurnEnded | TurnStarted | RetryScheduled):
            yield one


def plain(value: object) -> Any:
    """Give a value as JSON would bring it back."""
    return json.loads(json.dumps(msgspec.to_builtins(value, order="deterministic")))


def meaning(old: dict[str, Any], open_calls: list[str]) -> dict[str, Any]:
    """What a state of 0.1.0 means."""
    old = {"limits": {}, "activity": {"type": "idle"}, "mode": "ask", "tool_protocol": "native", **old}
    said = {name: bare(old.get(name)) for name in SAME if name not in ("limits", "turn")}
    if old.get("turn") is None:
        said["guard"], said["calls"] = None, []
        said["unread"] = [call["call"]["id"] for call in old.get("calls", ())]
    else:
        names = ("mistakes", "polls", "looping", "unasked")
        said["guard"] = [*(old.get(name) or 0 for name in names), pattern(old.get("recent", ()))]
        said["calls"] = [call["call"]["id"] for call in old.get("calls", ())]
        said["statuses"] = [call.get("status", "proposed") for call in old.get("calls", ()) if old.get("turn")]
    said["results"] = [bare(call.get("result")) for call in old.get("calls", ()) if call["call"]["id"] in open_calls]
    said["turn"] = bare(old.get("turn"))
    choice = {name: old.get(name) for name in ("model", "tool_protocol", "thinking_budget")}
    said["model"] = bare([choice, old.get("fallback"), old.get("replaced"), old.get("window")])
    money = [old.get(name) for name in ("spent", "terms", "reply_tokens")]
    said["money"] = [*map(bare, money), sorted(old.get("asked", ()))]
    said["checklist"] = [old.get("checklist", ""), old.get("checklist_told", ""), old.get("checklist_age", 0)]
    said["space"] = [old.get("compactions", 0), old.get("exceeded", 0), old.get("largest", "")]
    renamed = {"max_unasked": "max_auto_approved"}
    said["limits"] = bare({renamed.get(name, name): value for name, value in old["limits"].items()})
    return said


def state_of(new: dict[str, Any]) -> dict[str, Any]:
    """What a state of this version means, in the same shape."""
    said = {name: bare(new[name]) for name in SAME if name not in ("limits", "turn")}
    calls = [call["call"]["id"] for call in new["calls"]]
    guard = new["guard"]
    if new["turn"] is None:
        said["guard"], said["calls"], said["unread"] = None, calls, new["unread"]
    else:
        said["guard"] = [*(guard[name] for name in ("mistakes", "polls", "looping", "auto_approved"))]
        said["guard"] = [*(one or 0 for one in said["guard"]), pattern(guard["recent"])]
        said["calls"], said["unread"] = [*new["unread"], *calls], None
    said["statuses"] = (
        [*("finished" for _ in new["unread"]), *(call["status"] for call in new["calls"])] if new["turn"] else []
    )
    said["results"] = [bare(call["result"]) for call in new["calls"]]
    said["turn"] = bare(new["turn"])
    model, money = new["model"], new["money"]
    said["model"] = bare([model[name] for name in ("choice", "fallback", "replaced", "window")])
    said["money"] = [*(bare(money[name]) for name in ("spent", "terms", "reply_tokens")), sorted(money["agreed"])]
    said["checklist"] = [new["checklist"][name] for name in ("text", "read", "age")]
    said["space"] = [new["space"][name] for name in ("compactions", "exceeded", "largest")]
    said["limits"] = bare(new["limits"])
    return said


def pattern(recent: Any) -> list[int]:
    """Say which of these are the same, whatever they are."""
    return [list(recent).index(one) for one in recent]


def bare(value: Any) -> Any:
    """Leave out of a value what is empty, as 0.1.0 wrote only what is not a default."""
    match value:
        case "" | 0 | False | []:
            return None
        case dict():
            kept = {name: bare(one) for name, one in value.items() if name not in _DEFAULTS or one != _DEFAULTS[name]}
            return {name: one for name, one in kept.items() if one is not None} or None
        case list():
            return [bare(one) for one in value]
        case _:
            return value


_DEFAULTS = {"soft": 0.8, "max_mistakes": 3, "max_retries": 6, "warn_repeats": 3, "max_repeats": 5}


def main() -> None:
    """Walk and compare."""
    source, count, first = sys.argv[1], int((*sys.argv[2:], "1000")[0]), int((*sys.argv[3:], "0")[0])
    walked = events = wrong = 0
    for one in walks(source, first, count):
        walked, events = walked + 1, events + len(one["rows"])
        try:
            found = [*told(one), *decided(one)]
        except Exception as error:  # noqa: BLE001 - it is what we look for
            found = [f"{type(error).__name__}: {error}"]
        wrong += bool(found)
        for difference in found[:3] if wrong <= 10 else ():
            sys.stdout.write(f"walk {one['seed']}: {difference[:1500]}\n")
    sys.stdout.write(f"{walked} walks, {events} events, {wrong} differ\n")


if __name__ == "__main__":
    main()
