"""What came of a task."""

from treadle.protocol.base import Record
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.tools import FileChange
from treadle.protocol.usage import Usage


class TaskResult(Record, frozen=True, kw_only=True):
    """What came of a task: the answer in `text`, and everything else in `outcome`."""

    session_id: str
    text: str
    outcome: TurnOutcome

    @property
    def ok(self) -> bool:
        """Whether it came to its end, and no call of it got a no: of a rule, of whoever was asked, or of nobody."""
        return self.outcome.stop is TurnStop.END_TURN and not (self.outcome.refused or self.outcome.denied)

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The files that the task changed, with the lines; `outcome.exact` says whether they are all."""
        return self.outcome.changes

    @property
    def cost(self) -> float | None:
        """US dollars; None where a price is not known."""
        return self.outcome.cost

    @property
    def cost_is_estimate(self) -> bool:
        """Whether a part of the cost is an estimate, such as that of a reply that was cut."""
        return self.outcome.usage.estimated

    @property
    def usage(self) -> Usage:
        """Tokens that models used."""
        return self.outcome.usage

    @property
    def error(self) -> str:
        """Why it stopped before its end, in words; empty where it did not."""
        if self.outcome.error is not None:
            return self.outcome.error.message
        if self.outcome.stop is TurnStop.END_TURN:
            return ""
        return self.outcome.why or f"It ended by {self.outcome.stop.value}."
