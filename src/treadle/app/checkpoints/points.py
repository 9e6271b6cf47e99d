"""What a log says of checkpoints and turns, and where a way back leads; read without the rest of the log."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.layers import load_settings
from treadle.protocol.checkpoints import CheckpointTaken, Moment, Restore, Restored
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import ContextReady, EventData, Prompt
from treadle.protocol.messages import text_of, without_own_commands
from treadle.protocol.sealed import PromptsDelivered, TurnSettled
from treadle.protocol.tools import FileChange
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import Store

_TAGS = tuple(map(tag_of, (CheckpointTaken, Restore, Restored, ContextReady, Prompt, PromptsDelivered, TurnSettled)))
_BEHIND_A_STEP = ContextReady | PromptsDelivered | TurnSettled


class TakenAt(Struct, frozen=True):
    """A checkpoint with the number and the time (milliseconds since 1970, UTC) of its event."""

    seq: int
    at: int
    data: CheckpointTaken


class PastTurn(Struct, frozen=True, kw_only=True):
    """A turn of the conversation: what the user asked for, the event before that, and the one with which it began.

    Between these two files may have been restored. `prompts` are the ids of the messages that it began with, `changes`
    what was left of its work in the files when it ended: all of it where that is `exact`, None where it did not end. No
    checkpoint holds the `unseen` files that it changed.
    """

    number: int
    after: int
    began: int
    asked: str
    prompts: tuple[str, ...] = ()
    changes: tuple[FileChange, ...] | None = None
    exact: bool = False
    unseen: tuple[str, ...] = ()


def put_away(store: Store, session_id: str) -> frozenset[str]:
    """Name the files of which others have left nothing of the session's, by its checkpoints: it may come back."""
    found: set[str] = set()
    for _, _, raw, version in store.of_types(session_id, (tag_of(CheckpointTaken),)):
        data = event_data(raw, version)
        if isinstance(data, CheckpointTaken):
            found.difference_update(one.path for one in data.own or ())
            found.update(one.path for one in data.recounted if not (one.before or one.after))
    return frozenset(found)


class Points:
    """The checkpoints of a session, oldest first, and the turns that its conversation has."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._cuts = store.left_behind(session_id)
        self._events: list[tuple[int, EventData]] = []
        checkpoints: list[TakenAt] = []
        for seq, at, raw, version in store.of_types(session_id, _TAGS):
            data = event_data(raw, version)
            self._events.append((seq, data))
            if isinstance(data, CheckpointTaken):
                checkpoints.append(TakenAt(seq, at, data))
        self.checkpoints = tuple(checkpoints)
        self._found = dict(self._before_messages())

    def _before_messages(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Give for each event with which messages were sent the last such one before it, and the last step."""
        since = step = 0
        for seq, data in self._events:
            match data:
                case PromptsDelivered():
                    yield seq, (since, step)
                    since = seq
                case ContextReady():
                    step = max(step, data.step)
                case _:
                    pass

    def _in_conversation(self) -> Iterator[tuple[int, EventData]]:
        return ((seq, data) for seq, data in self._events if not any(seq in cut for cut in self._cuts))

    def checkpoint(self, n: int) -> CheckpointTaken:
        """Find a checkpoint by its number; raises `SessionError`."""
        return self._taken(n).data

    def last(self) -> CheckpointTaken:
        """Give the newest checkpoint; raises `SessionError` where there is none."""
        if self.checkpoints:
            return self.checkpoints[-1].data
        raise SessionError(
            "checkpoint-unknown",
            "This session has no checkpoints.",
            why=self.unkept() or "Nothing in it has changed files yet.",
            fix="`treadle checkpoint list` lists them.",
        )

    def unkept(self) -> str:
        """Say why no checkpoint has what the session changed; empty where one has, or nothing was changed."""
        if not self.checkpoints and _are_off():
            return "Checkpoints are off: checkpoints.enabled is false in your settings."
        if any(turn.changes and not self._checkpoint_before(turn) for turn in self.turns()):
            return "No checkpoint was taken of what it changed: they were off, or its folder cannot have any."
        return ""

    def _taken(self, n: int) -> TakenAt:
        if found := [one for one in self.checkpoints if one.data.n == n]:
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
        for seq, data in self._in_conversation():
            match data:
                case Prompt(id=prompt_id, content=content):
                    asked[prompt_id] = text_of(without_own_commands(content))
                    if before == 1:
                        before = seq - 1
                case PromptsDelivered(turn=number, prompt_ids=ids) if not turns or turns[-1].number != number:
                    words = asked.get(ids[0], "")
                    turns.append(PastTurn(number=number, after=before, began=seq, asked=words, prompts=ids))
                case TurnSettled(turn=number, outcome=outcome):
                    before = seq
                    if turns and turns[-1].number == number:
                        said = {name: getattr(outcome, name) for name in ("changes", "exact", "unseen")}
                        turns[-1] = replace(turns[-1], **said)
                case _:
                    pass
        return tuple(turns)

    def conversation_at(self, n: int) -> int:
        """Give the number of the event after which the conversation was at a checkpoint: no call was open there."""
        taken = self._taken(n)
        if not taken.data.moment.of_step:
            return taken.seq
        began = (seq for seq, data in self._events if isinstance(data, ContextReady) and data.step == taken.data.step)
        step = next(began, taken.seq)
        later = (one.data.step for one in self.checkpoints if one.seq > taken.seq and one.data.moment.of_step)
        if taken.data.moment is Moment.BEFORE or taken.data.step in later:
            return step  # in the middle of the step: what it did after that is not in the files
        ends = [(seq, data) for seq, data in self._events if seq > step and isinstance(data, _BEHIND_A_STEP)]
        if ends and isinstance(ends[0][1], ContextReady):
            return ends[0][0] - 1  # the next request is no part of it, unless it takes a message along
        return next((seq for seq, data in ends if not isinstance(data, PromptsDelivered)), taken.seq)

    def late_for(self, n: int, to: int, step: int) -> Sequence[TakenAt]:
        """Give the checkpoints up to `n` of steps up to `step` that were taken only behind the event `to`."""
        behind = (one for one in self.checkpoints if one.seq > to and one.data.n <= n)
        return tuple(takewhile(lambda one: one.data.moment.of_step and one.data.step <= step, behind))

    def cut_turn(self, to: int) -> int:
        """Give the number of the turn of which a part stays when it goes back to an event; 0 for none."""
        staying = [turn for turn in self.turns() if turn.after < to]
        if not staying:
            return 0
        settled = (seq for seq, data in self._in_conversation() if isinstance(data, TurnSettled))
        ended = next((seq for seq in settled if seq > staying[-1].after), None)
        return staying[-1].number if ended is None or ended > to else 0

    def before_turn(self, turn: PastTurn) -> Restore:
        """Say how to go back to before a turn, with its files where there are checkpoints of it."""
        n = self._checkpoint_before(turn)
        return Restore(checkpoint=n, files=bool(n), conversation=True, to=turn.after)

    def undo(self) -> int:
        """Give the checkpoint before the last turn whose changes are not undone yet; 0 where there are none."""
        return self._undo()[1]

    def undo_of(self, number: int) -> int:
        """Give the checkpoint before the last turn; raises `SessionError` where that is another or nothing to undo."""
        turns = self.turns()
        turn = next((one for one in turns if one.number == number), None)
        last, n = self._undo()
        if turn is None:
            why = "It is not in the conversation."
        elif turn is not turns[-1]:
            why = "A later turn came after it."
        elif not self._checkpoint_before(turn):
            why = self.unkept() or "It changed no files."
        elif last != turn.began:
            why = "Nothing of what it changed is in the files any more."
        else:
            return n
        raise SessionError(
            "nothing-to-undo", "This turn cannot be undone.", why=why, fix="Restore to a step in the timeline."
        )

    def _undo(self) -> tuple[int, int]:
        """Give with which event the turn that is undone next began, and the checkpoint before it; zeros for none."""
        there = self._turns_in_files()
        for turn in reversed(self.turns()):
            n = self._checkpoint_before(turn) if turn.began in there else 0
            if n and self.checkpoint(n).trees != self.checkpoints[-1].data.trees:
                return turn.began, n
        return 0, 0

    def _turns_in_files(self) -> frozenset[int]:
        """Give the turns whose work is in the files now, by the events with which they began.

        Who goes back to a checkpoint takes back what came after it, and brings back what was in the files then. A turn
        of which a file was left as it is, because of a conflict, is not undone.
        """
        turn = number = 0
        there: frozenset[int] = frozenset()
        work: set[str] = set()
        at: dict[int, frozenset[int]] = {}
        paths: dict[int, set[str]] = {}
        last: CheckpointTaken | None = None
        with_files = True
        for seq, data in self._in_turns():
            match data:
                case PromptsDelivered(turn=delivered) if delivered != number:
                    turn, number = seq, delivered
                    work = set()
                case CheckpointTaken(moment=moment):
                    # A turn that was stopped has settled before: then the checkpoint knows of no turn.
                    changes = data.turn if number else data.own
                    if moment is Moment.AFTER and changes is not None and (number or changes):
                        work = (work - {one.path for one in changes}) | _left_of(changes)
                        paths[turn] = paths.get(turn, set()) | work
                        there = there | {turn} if work else there - {turn}
                    elif moment in (Moment.AFTER, Moment.FOUND) and (last is None or data.trees != last.trees):
                        there |= {turn}
                    at[data.n], last = there, data
                case TurnSettled(turn=settled) if settled == number:
                    number = 0
                case Restore(files=with_files):
                    number = 0
                case Restored(checkpoint=n, error="", conflicts=conflicts) if with_files and n in at and last:
                    stays = {one.path for one in conflicts}
                    there = at[n] | {one for one in there if stays & paths.get(one, stays)}
                    if last.moment is Moment.RESTORED:
                        at[last.n] = there
                case _:
                    pass
        return there

    def _in_turns(self) -> Iterator[tuple[int, EventData]]:
        """Give the events with what hooks changed before a turn began as a part of that turn."""
        step, goes_on = 0, False
        early: list[tuple[int, EventData]] = []
        for seq, data in self._events:
            match data:
                case ContextReady(step=step):
                    pass
                case CheckpointTaken(moment=Moment.AFTER) if not goes_on and data.step > step:
                    early.append((seq, data))
                    continue
                case PromptsDelivered() | TurnSettled():
                    goes_on = isinstance(data, PromptsDelivered)
                case _:
                    pass
            yield seq, data
            if early and not isinstance(data, Prompt | CheckpointTaken):
                yield from early
                early = []
        yield from early

    def _checkpoint_before(self, turn: PastTurn) -> int:
        """Give the checkpoint of the files as a turn found them; 0 where nothing was done in them since.

        What hooks changed before a message was sent belongs to the turn that it began: its step had not begun.
        """
        since, step = self._found.get(turn.began, (0, 0))
        numbers = (
            one.data.n
            for one in self.checkpoints
            if one.data.moment.may_end_work and (one.seq > turn.began or (one.seq > since and one.data.step > step))
        )
        return next((max(1, n - 1) for n in numbers), 0)


def _are_off() -> bool:
    """Whether the user has none taken; broken settings say nothing of it."""
    try:
        return not load_settings({}).checkpoints.enabled
    except ConfigError:
        return False


def _left_of(changes: Iterable[FileChange]) -> set[str]:
    """Give the paths of changes of which something is left."""
    return {one.path for one in changes if one.before or one.after}
