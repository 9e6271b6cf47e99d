"""What a log says of checkpoints and turns, and where a way back leads; read without the rest of the log."""

from collections.abc import Sequence

from msgspec import Struct

from treadle.protocol.checkpoints import CheckpointTaken, Moment, Restore, Restored
from treadle.protocol.errors import SessionError
from treadle.protocol.events import ContextReady, EventData, Prompt
from treadle.protocol.messages import text_of, without_own_commands
from treadle.protocol.sealed import PromptsDelivered, TurnSettled
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import Store

_TAGS = tuple(map(tag_of, (CheckpointTaken, Restored, ContextReady, Prompt, PromptsDelivered, TurnSettled)))


class Point(Struct, frozen=True):
    """An event with its number and its time (milliseconds since 1970, UTC)."""

    seq: int
    at: int
    data: EventData


class PastTurn(Struct, frozen=True, kw_only=True):
    """A turn of the conversation: what the user asked for, and after which event it began."""

    number: int
    after: int
    asked: str


class Points:
    """The checkpoints of a session, oldest first, and the turns that its conversation has."""

    def __init__(self, store: Store, session_id: str, before: int = 2**62) -> None:
        cuts = store.read(session_id, before=before, whole=False).without
        rows = store.query(
            f"SELECT seq, at, data, version FROM events WHERE session_id = ? AND seq < ? AND type IN {_TAGS} "  # noqa: S608
            "ORDER BY seq",
            (session_id, before),
        )
        every = [Point(seq, at, event_data(data, version)) for seq, at, data, version in rows]
        self.checkpoints = tuple(one for one in every if isinstance(one.data, CheckpointTaken))
        self._restores = [one for one in every if isinstance(one.data, Restored)]
        self._steps = [one for one in every if isinstance(one.data, ContextReady)]
        self._stands = [one for one in every if not any(one.seq in cut for cut in cuts)]

    def checkpoint(self, n: int) -> CheckpointTaken:
        """Find a checkpoint by its number; raises `SessionError`."""
        found = [one.data for one in self.checkpoints if isinstance(one.data, CheckpointTaken) and one.data.n == n]
        if found:
            return found[-1]
        raise SessionError(
            "checkpoint-unknown",
            f"There is no checkpoint {n} in this session.",
            why=f"It has {len(self.checkpoints) or 'none'}.",
            fix="`treadle checkpoint list` lists them.",
        )

    def turns(self) -> tuple[PastTurn, ...]:
        """List the turns that the conversation has now."""
        asked: dict[str, str] = {}
        turns: list[PastTurn] = []
        before = 1
        for point in self._stands:
            match point.data:
                case Prompt(id=prompt_id, content=content):
                    asked[prompt_id] = text_of(without_own_commands(content))
                    if before == 1:
                        before = point.seq - 1
                case PromptsDelivered(turn=number, prompt_ids=ids) if not turns or turns[-1].number != number:
                    turns.append(PastTurn(number=number, after=before, asked=asked.get(ids[0], "")))
                case TurnSettled():
                    before = point.seq
                case _:
                    pass
        return tuple(turns)

    def conversation_at(self, n: int) -> int:
        """Give the number of the event after which the conversation was at a checkpoint: no call was open there."""
        taken = self.checkpoint(n)
        step = taken.step + 1 if taken.moment.ends_work else taken.step
        return next(
            (one.seq for one in self._steps if isinstance(one.data, ContextReady) and one.data.step >= step),
            self._end_of_turn(n),
        )

    def _end_of_turn(self, n: int) -> int:
        """Give the last end of a turn; where there is none, the checkpoint itself."""
        ends = [one.seq for one in self._stands if isinstance(one.data, TurnSettled)]
        return ends[-1] if ends else next(one.seq for one in self.checkpoints if _number(one) == n)

    def before_turn(self, turn: PastTurn, *, files: bool = True) -> Restore:
        """Say how to go back to before a turn."""
        n = self._checkpoint_before(turn.after) if files else 0
        return Restore(checkpoint=n, files=bool(n), conversation=True, to=turn.after)

    def undo(self) -> int:
        """Give the checkpoint before the last turn whose changes are not undone yet; 0 where there are none."""
        if not self.checkpoints:
            return 0
        at = self._restored() or _taken(self.checkpoints[-1])
        before = (self._checkpoint_before(turn.after) for turn in reversed(self.turns()))
        return next((n for n in before if 0 < n < at.n and self.checkpoint(n).trees != at.trees), 0)

    def _restored(self) -> CheckpointTaken | None:
        """Give the checkpoint whose files are there, where one was restored and nothing was done since."""
        worked = [one.seq for one in self.checkpoints if _taken(one).moment is Moment.AFTER]
        since = [one.data for one in self._restores if one.seq > worked[-1]] if worked else []
        numbers = [data.checkpoint for data in since if isinstance(data, Restored) and data.checkpoint]
        return self.checkpoint(numbers[-1]) if numbers else None

    def _checkpoint_before(self, seq: int) -> int:
        """Give the checkpoint from which the first work after an event went out; 0 where there was no such work."""
        numbers = [_number(one) for one in self.checkpoints if one.seq > seq and _taken(one).moment.ends_work]
        return max(1, numbers[0] - 1) if numbers else 0


def _taken(point: Point) -> CheckpointTaken:
    assert isinstance(point.data, CheckpointTaken)  # noqa: S101 - only these are kept as checkpoints
    return point.data


def _number(point: Point) -> int:
    return _taken(point).n


def chain(checkpoints: Sequence[Point]) -> list[CheckpointTaken]:
    """Give the checkpoints themselves."""
    return [_taken(one) for one in checkpoints]
