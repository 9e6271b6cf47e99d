"""Models that do what a message asks for, for tests that drive an editor."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.e2e.faults.driving import block, make
from treadle.providers.scripted.player import Performance, perform
from treadle.providers.scripted.script import Pace, SayText, Turn
from treadle.providers.scripted.seen_requests import SeenRequest

_OVER = Turn(items=(SayText(text="Nothing is left to do."),))


@dataclass
class Tasks:
    """Does the task whose name was said last: `Task NAME`; each request is its next turn."""

    turns: Mapping[str, Sequence[Turn]]
    model: str = "scripted"
    played: Counter[str] = field(default_factory=Counter)

    def play(self, seen: SeenRequest) -> Performance:
        name = max(self.turns, key=lambda one: seen.conversation.rfind(f"Task {one}"))
        turns = self.turns[name]
        at = self.played[name]
        self.played[name] += 1
        return perform(turns[at] if at < len(turns) else _OVER, seen, Pace())


@dataclass
class EditsAsked:
    """Reads the file, then makes the edits of the last message: an object with its `number` and lines, old and new."""

    model: str = "scripted"
    played: Counter[int] = field(default_factory=Counter)

    def play(self, seen: SeenRequest) -> Performance:
        (*_, found) = re.findall(r'\{"number":.*\}', seen.conversation)
        wanted = json.loads(found)
        number = wanted["number"]
        self.played[number] += 1
        blocks = "".join(block(f"{old}\n", f"{new}\n") for old, new in wanted["edits"])
        turns = (
            Turn(items=(SayText(text="I read it."), make("read_file", path="a.txt"))),
            Turn(items=(SayText(text="I change it."), make("replace_in_file", path="a.txt", diff=blocks))),
        )
        return perform((*turns, _OVER)[min(self.played[number], 3) - 1], seen, Pace())
