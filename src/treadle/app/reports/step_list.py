"""The steps of a session, as a person follows its past: each with its calls, its price, and where it leads back to."""

from collections.abc import Container, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.words import call_name, clip_text, counted, describe_call, note_of, written_text
from treadle.protocol.checkpoints import CheckpointTaken, Moment
from treadle.protocol.events import (
    CallFinished,
    CallJudged,
    CallProposed,
    ContextReady,
    EditQueued,
    EventData,
    Prompt,
    ReplyFinished,
    Resumed,
    SessionStarted,
    SetMode,
    SetModel,
    TimerFired,
)
from treadle.protocol.messages import Text
from treadle.protocol.notifications import CallChanged, CallStatus
from treadle.protocol.sealed import ModelReplaced, PromptsDelivered, ResultMade, RetryPlanned, TurnSettled
from treadle.protocol.tools import CallResult, Outcome, Preview, ToolCall, ToolKind
from treadle.protocol.usage import Usage
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.keeping import count_events
from treadle.store.sqlite import SessionRow, Store
from treadle.tools.declarations import ATTEMPT_COMPLETION

_SHOWN, _SHORT = 160, 40
_TAGS = tuple(
    map(
        tag_of,
        (
            Prompt,
            EditQueued,
            PromptsDelivered,
            ContextReady,
            ReplyFinished,
            CallProposed,
            CallJudged,
            CallFinished,
            ResultMade,
            CheckpointTaken,
            TurnSettled,
            SessionStarted,
            SetModel,
            SetMode,
            ModelReplaced,
            RetryPlanned,
            TimerFired,
            Resumed,
        ),
    )
)


class StepCall(Struct, frozen=True, kw_only=True):
    """A call of a step: what it did to what, how many lines it added and removed, and how it ended if not well.

    `id` is the call's own, by which the conversation has more of it.
    """

    id: str = ""
    verb: str
    about: str
    figures: tuple[int, int] | None = None
    ended: str = ""


class PastStep(Struct, frozen=True, kw_only=True):
    """A step, or with number 0 a message of the user: the number of its first event, and when that was (milliseconds).

    A message stands where it was sent to the model, and not where it began to wait. With one that began a turn the
    conversation was at the event `to` before it; 0 elsewhere.
    `model` gave its reply. `checkpoint` has the files as they were after the step, or before the message; 0 for none.
    `changed` says that files differ there from those before the step; of a message, that it leads back to files.
    `turn` is the turn that ended with it, 0 for none. `replied` is the event of its reply, 0 for none, with which it
    leaves the conversation; `left` says that it has.
    """

    number: int
    seq: int
    at: int
    said: str = ""
    model: str = ""
    usage: Usage | None = None
    cost: float | None = None
    seconds: float | None = None
    calls: tuple[StepCall, ...] = ()
    checkpoint: int = 0
    to: int = 0
    turn: int = 0
    replied: int = 0
    left: bool = False
    changed: bool = False

    @property
    def place(self) -> str:
        """What its checkpoint is called."""
        return f"step {self.number}" if self.number else "before this message"


def past_steps(store: Store, row: SessionRow) -> list[PastStep]:
    """List messages and steps in their order. Takes its time for a long log; raises `StoreError`."""
    past = _Past(store.left_behind(row.id))
    for seq, at, raw, version in store.of_types(row.id, _TAGS):
        past.take(seq, at, event_data(raw, version))
    return past.steps


def steps_so_far(store: Store, session_id: str) -> int:
    """Count the steps that a session has begun, also those that left its conversation."""
    return count_events(store, session_id, tag_of(ContextReady))


class _Past:
    def __init__(self, cuts: Sequence[Container[int]]) -> None:
        self.steps: list[PastStep] = []
        self._cuts = cuts
        self._calls: dict[str, tuple[int, int, ToolCall]] = {}
        self._chosen = self._model = self._sent = ""
        self._waits = False
        self._prompts: dict[str, Prompt] = {}
        self._step = self._turn = self._taken = self._early = self._back = 0
        self._before = 1
        self._asked: int | None = None
        """The last message, as long as the checkpoint right before its work may come."""

    def take(self, seq: int, at: int, data: EventData) -> None:
        """Take an event of the log, in its order."""
        self._follow(data)
        match data:
            case Prompt() | EditQueued():
                self._wait(seq, data)
            case PromptsDelivered(turn=turn, prompt_ids=ids):
                self._send(seq, at, turn, ids)
            case ContextReady(step=step):
                self._step = max(self._step, step)
                self._begin(step, seq, at)
            case CallProposed(call=call):
                self._call(call)
            case CallJudged(call_id=call_id, preview=preview):
                self._name_call(call_id, preview)
            case CallFinished(call_id=call_id, result=result) | ResultMade(call_id=call_id, result=result):
                self._end_call(call_id, result)
            case ReplyFinished():
                self._reply(seq, at, data)
            case CheckpointTaken():
                self._note_checkpoint(data)
            case TurnSettled(turn=turn):
                self._before = self._before if self._is_cut(seq) else seq
                self._change(self._last(), turn=turn)
            case _:
                pass

    def _follow(self, data: EventData) -> None:
        """Keep track of which model is called. A request that is out is the old model's."""
        match data:
            case SessionStarted(choice=choice):
                self._chosen = self._model = choice.model
            case SetModel(choice=choice) | SetMode(choice=choice) if choice is not None:
                self._chosen = self._model = choice.model
                self._sent = choice.model if self._waits else self._sent
            case ModelReplaced(model=model):
                self._model = self._sent = model
            case TurnSettled():
                self._model = self._chosen
            case RetryPlanned(until=until):
                self._waits = until > 0
            case ContextReady() | TimerFired() | Resumed():
                self._sent, self._waits = self._model, False
            case _:
                pass

    def _begin(self, number: int, seq: int, at: int, said: str = "") -> None:
        self.steps.append(PastStep(number=number, seq=seq, at=at, said=said, left=self._is_cut(seq)))

    def _wait(self, seq: int, said: Prompt | EditQueued) -> None:
        match said:
            case Prompt(id=prompt_id):
                self._prompts[prompt_id] = said
                if self._before == 1 and not self._is_cut(seq):
                    self._before = seq - 1
            case EditQueued(prompt_id=prompt_id) if said.content and prompt_id in self._prompts:
                self._prompts[prompt_id] = said.edited(self._prompts[prompt_id])
            case EditQueued():
                pass

    def _send(self, seq: int, at: int, turn: int, ids: Sequence[str]) -> None:
        """Put messages where they were sent; with the first of a turn the last checkpoint has the files before it."""
        words = "\n".join(written_text(self._prompts.pop(one).content) for one in ids if one in self._prompts)
        self._asked = len(self.steps)
        self._begin(0, seq, at, clip_text(words, _SHOWN))
        if turn != self._turn:
            to = 0 if self._is_cut(seq) else self._before
            n = self._early or self._taken
            self._change(self._asked, checkpoint=n, changed=n > 0, to=to)
            self._turn, self._early = turn, 0

    def _is_cut(self, seq: int) -> bool:
        return any(seq in cut for cut in self._cuts)

    def _last(self, number: int = 0) -> int | None:
        """Give the place of the last step, or of the last with this number."""
        places = reversed(range(len(self.steps)))
        return next((at for at in places if (found := self.steps[at].number) and number in (0, found)), None)

    def _change(self, place: int | None, **changes: Any) -> None:
        if place is not None:
            self.steps[place] = replace(self.steps[place], **changes)

    def _call(self, call: ToolCall) -> None:
        place = self._last()
        if place is not None:
            name, known = call_name(call), self.steps[place].calls
            self._calls[call.id] = place, len(known), call
            made = StepCall(id=call.id, verb=name.verb, about=name.about)
            if call.name == ATTEMPT_COMPLETION.name:
                made = StepCall(
                    id=call.id, verb="Answer", about=counted(len(str(call.arguments.get("result", "")).split()), "word")
                )
            self._change(place, calls=(*known, made))

    def _name_call(self, call_id: str, preview: Preview) -> None:
        """Name a call by what it would do, as the conversation does."""
        if call_id in self._calls and self._calls[call_id][2].name != ATTEMPT_COMPLETION.name:
            kind, call = ToolKind.EDIT if preview.is_diff else ToolKind.OTHER, self._calls[call_id][2]
            name = describe_call(CallChanged(call=call, kind=kind, status=CallStatus.FINISHED, preview=preview))
            self._change_call(call_id, verb=name.verb, about=name.about, figures=name.figures)

    def _end_call(self, call_id: str, result: CallResult) -> None:
        if call_id in self._calls:
            note = note_of(ToolKind.OTHER, result) if result.outcome is Outcome.FAILED else ""
            ended = note if 0 < len(note) <= _SHORT else result.outcome.value
            self._change_call(call_id, ended="" if result.outcome is Outcome.OK else ended)

    def _change_call(self, call_id: str, **changes: Any) -> None:
        place, index, _ = self._calls[call_id]
        calls = list(self.steps[place].calls)
        calls[index] = replace(calls[index], **changes)
        self._change(place, calls=tuple(calls))

    def _reply(self, seq: int, at: int, reply: ReplyFinished) -> None:
        place = self._last(reply.step)
        if place is not None:
            said = " ".join(block.text for block in reply.message.content if isinstance(block, Text))
            seconds = (at - self.steps[place].at) / 1000
            self._change(place, said=clip_text(said, _SHOWN), usage=reply.usage, cost=reply.cost, seconds=seconds)
            # What leads back to the step before cuts behind the request of this one.
            self._change(place, model=self._sent, replied=seq, left=self.steps[place].left or self._is_cut(seq))

    def _note_checkpoint(self, taken: CheckpointTaken) -> None:
        """Put a checkpoint where it leads back to: to after its step, or the first of a turn to before its message.

        The first of all leads to before each message until then. Once files were restored, no step that had ended left
        the files as they are.
        """
        first, self._taken = not self._taken, taken.n
        if taken.moment is Moment.BEFORE and taken.step > self._step:
            self._early = taken.n  # a hook is about to change something, for the message that comes
        elif taken.moment is Moment.BEFORE:
            asked = [at for at, one in enumerate(self.steps) if not one.number] if first else [self._asked]
            self._asked = None
            for place in asked:
                self._change(place, checkpoint=taken.n, changed=True)
        elif taken.moment is Moment.RESTORED:
            self._back = max(self._back, self._step)
        elif taken.moment.may_end_work and taken.step > self._back:
            place = self._last(taken.step)
            changed = place is not None and (self.steps[place].changed or taken.files > 0)
            self._change(place, checkpoint=taken.n, changed=changed)
