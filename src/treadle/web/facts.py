"""What is true of a session now, as far as its notifications tell."""

from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.notifications import Phase, TurnStop


class PageFacts(Struct, frozen=True, kw_only=True):
    """What is true of the session now, apart from what stands on the page. Cost in US dollars.

    `stop` is how the last turn ended. `retry_at` is when the model is asked again, on the clock of `PageView.take`.
    """

    phase: Phase = Phase.WAITING_FOR_EVENT
    active: bool = False
    step: int = 0
    cost: float = 0.0
    unpriced: bool = False
    added: int = 0
    removed: int = 0
    stop: TurnStop | None = None
    retry: str = ""
    retry_at: float | None = None

    def without_retry(self) -> "PageFacts":
        """Give the same where no request waits to be sent again."""
        return replace(self, retry="", retry_at=None)
