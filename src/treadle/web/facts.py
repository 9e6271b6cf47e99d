"""What is true of a session now, as far as its notifications tell."""

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.spending import Spending
from treadle.protocol.notifications import Phase, TurnOutcome, TurnStop


class PageFacts(Struct, frozen=True, kw_only=True):
    """What is true of the session now, apart from what stands on the page.

    `added` and `removed` are `counted` by checkpoints, or else as the ends of turns said. `stop` is how the last turn
    ended. `retry_at` is when the model is asked again, on the clock of `PageContent.take`.
    """

    phase: Phase = Phase.WAITING_FOR_EVENT
    active: bool = False
    step: int = 0
    spending: Spending = Spending()
    counted: bool = False
    added: int = 0
    removed: int = 0
    stop: TurnStop | None = None
    retry: str = ""
    retry_at: float | None = None

    def without_retry(self) -> "PageFacts":
        """Give the same where no request waits to be sent again."""
        return replace(self, retry="", retry_at=None)

    def after_turn(self, outcome: TurnOutcome) -> "PageFacts":
        """Give what is true once a turn is over."""
        return replace(
            self.without_retry(),
            active=False,
            spending=self.spending.with_turn(outcome),
            stop=outcome.stop,
            added=self.added + sum(0 if self.counted else change.added for change in outcome.changes),
            removed=self.removed + sum(0 if self.counted else change.removed for change in outcome.changes),
        )
