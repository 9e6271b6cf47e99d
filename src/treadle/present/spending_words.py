"""What a session has cost so far, as its notifications tell it: one count for every surface that shows it live."""

from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.models import money
from treadle.protocol.notifications import MessageDone, Notice, ReplyDropped, TurnOutcome


class Spending(Struct, frozen=True, kw_only=True):
    """Cost in US dollars: of the turns that ended, and of the present one.

    `unpriced`: a price is missing. `estimated`: a part is our own estimate.
    """

    ended: float = 0.0
    turn: float = 0.0
    unpriced: bool = False
    estimated: bool = False

    @property
    def total(self) -> float:
        """All of it, as far as it is known."""
        return self.ended + self.turn

    @property
    def words(self) -> str:
        """Say how much it is."""
        return money(self.total, unpriced=self.unpriced, estimated=self.estimated)

    def with_reply(self, reply: MessageDone | ReplyDropped) -> "Spending":
        """Count a model call of the present turn, whether its reply became whole or not."""
        return replace(
            self,
            turn=self.turn + (reply.cost or 0.0),
            unpriced=self.unpriced or reply.cost is None,
            estimated=self.estimated or reply.usage.estimated,
        )

    def with_notice(self, notice: Notice) -> "Spending":
        """Count what was billed while no turn went on."""
        return replace(
            self,
            ended=self.ended + (notice.cost or 0.0),
            unpriced=self.unpriced or notice.cost is None,
            estimated=self.estimated or notice.usage.estimated,
        )

    def with_turn(self, outcome: TurnOutcome) -> "Spending":
        """Take what the whole turn has cost, with what no reply of it told of: summaries, and models of tools."""
        return Spending(
            ended=self.ended + (self.turn if outcome.cost is None else outcome.cost),
            unpriced=self.unpriced or outcome.cost is None,
            estimated=self.estimated or outcome.usage.estimated,
        )
