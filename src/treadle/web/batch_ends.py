"""How a batch is, in words, and which batches have ended since the page looks."""

import time
from collections import Counter
from collections.abc import Mapping

from treadle.door.program import Exit
from treadle.door.reports import known_batches
from treadle.present.batch_progress import BatchProgress, spent_of
from treadle.web.column_foot import batch_reached

_STATES = {"done": "passed", "waits": "waiting", "working": "running", "error": "broken off"}
"""What a task's state is called; the others are called by their name. An error is not the model's failure."""


def task_word(state: str) -> str:
    """Say how a task is."""
    return _STATES.get(state, state)


def batch_state(one: BatchProgress, *, works: bool) -> tuple[str, str]:
    """Say how a batch is: its sign, and in a word."""
    if works:
        return ("stopped", "Pausing") if one.stopping else ("working", "Working")
    match one.exit_code:
        case Exit.DONE:
            return "done", "Done"
        case Exit.BUDGET:
            return "stopped", "Its money is used up"
        case None:
            return "gone", "Paused, as its program ended"
        case _:
            return "stopped", "Paused"


class BatchEnds:
    """The batches `at_work`, and those that ended since it was made: `ended` has what a notification says of each.

    `reached` says how far the batch is that works now, None before the first look.
    """

    def __init__(self) -> None:
        self.ended: dict[str, Mapping[str, str]] = {}
        self._since = int(time.time() * 1000)
        self.at_work: set[str] = set()
        self.reached: str | None = None

    def look(self) -> bool:
        """Look at the batches again; says whether one ended, works again that had, or came further."""
        before, at_work = (dict(self.ended), self.reached), set[str]()
        for one, works in known_batches():
            if works:
                at_work.add(one.run)
                self.ended.pop(one.run, None)
            elif one.run not in self.ended and (one.run in self.at_work or one.began_at >= self._since):
                self.ended[one.run] = _told(one)
        self.at_work = at_work
        self.reached = batch_reached()
        return (self.ended, self.reached) != before


def _told(one: BatchProgress) -> Mapping[str, str]:
    marks = [*one.before, *one.ended]
    states = [
        f"{number:,} {task_word(state)}" for state, number in sorted(Counter(mark.state for mark in marks).items())
    ]
    parts = [f"{len(marks):,} of {len(one.before) + one.tasks:,} tasks", *states, spent_of(one)]
    return {"title": f"Batch {one.run}: {batch_state(one, works=False)[1]}", "body": " · ".join(parts)}
