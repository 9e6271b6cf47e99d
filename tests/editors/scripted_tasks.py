"""Models that do what a message asks for, for tests that drive an editor."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.faults.driving import block, make, run
from treadle.providers.scripted.player import Performance, perform
from treadle.providers.scripted.script import Pace, SayText, Turn
from treadle.providers.scripted.seen_requests import SeenRequest


def turn(text: str, *calls: object) -> Turn:
    """Say something and make calls."""
    return Turn(items=(SayText(text=text), *calls))  # type: ignore[arg-type]


LINES = "".join(f"line {number}\n" for number in range(1, 31))
TWO = block("line 2\n", "line two\n") + block("line 20\n", "line twenty\n")
TWO_CHANGED = LINES.replace("line 2\n", "line two\n").replace("line 20\n", "line twenty\n")

DAY = {
    "LOOK": [turn("I look.", make("read_file", path="a.txt")), turn("The file has 30 lines.")],
    "EDIT": [turn("Two places.", make("replace_in_file", path="a.txt", diff=TWO)), turn("Both are changed.")],
    "HAND": [turn("A new file.", make("write_to_file", path="b.txt", content="one\ntwo\n")), turn("Written by hand.")],
    "DENY": [turn("A file more.", make("write_to_file", path="no.txt", content="no\n")), turn("I leave it.")],
    "TYPED": [
        turn("I read it.", make("read_file", path="calc.py")),
        turn("I change it.", make("replace_in_file", path="calc.py", diff=block("    - b\n", "    + b\n"))),
        turn("Both are in it."),
    ],
    "WAIT": [turn("I wait.", run("sleep 300")), turn("It is over.")],
    "KILL": [turn("One more.", make("write_to_file", path="kill.txt", content="x\n")), turn("Gone on.")],
}
"""Tasks for a day in an editor of a terminal."""


_OVER = Turn(items=(SayText(text="Nothing is left to do."),))


@dataclass
class Tasks:
    """Does the task whose name was said last: `Task NAME`, or words as its name; each request is its next turn."""

    turns: Mapping[str, Sequence[Turn]]
    model: str = "scripted"
    played: Counter[str] = field(default_factory=Counter)

    def play(self, seen: SeenRequest) -> Performance:
        name = max(self.turns, key=lambda one: seen.conversation.rfind(one if " " in one else f"Task {one}"))
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


def day_folder(tmp_path: Path) -> Path:
    """Make the folder that a day is spent in."""
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Be brief.\n")
    (folder / "a.txt").write_text(LINES)
    (folder / "calc.py").write_text("def less(a, b):\n    return a \\\n    - b\n")
    return folder
