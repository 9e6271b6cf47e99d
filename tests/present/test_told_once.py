"""What a person saw of a session is what they see when it is told again, whatever happened in it."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

import pytest
from msgspec.structs import replace

from tests.engine.exploring import BOUNDED, TUI, World, walk
from treadle.context.log_reader import BegunReply
from treadle.context.notified import stamped_notifications
from treadle.engine.core.machine_effects import Effect
from treadle.engine.core.state import AwaitingReply
from treadle.present.fold import fold_notification
from treadle.present.items import CallItem, Item, NoteItem, Placed, ThoughtItem, TurnItem
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.codec import decode_data, encode
from treadle.protocol.events import (
    CallProposed,
    CallStarted,
    Event,
    EventData,
    Interrupt,
    ReplyFailed,
    ReplyFinished,
    ReplyPart,
    Resumed,
    Source,
)
from treadle.protocol.limits import Limits
from treadle.protocol.messages import ContentBlock, Message, Role, Text, Thinking, ToolUse
from treadle.protocol.models import ErrorKind, ReplyStop
from treadle.protocol.notifications import (
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    Notification,
    TextDelta,
    ThinkingDelta,
)
from treadle.protocol.sealed import Sealed

_STEP = 730
"""Milliseconds between two events."""

_PATIENCE = 20

_CUT = "what was cut"

_KEEPS = 0.3
"""How likely a part of a reply is kept before something comes of it."""


@dataclass
class Streaming(World):
    """A session whose surfaces hear the pieces of its replies, of its calls and of their output as they come.

    Where it does not stream they hear whole messages only, as of a server that does not stream.
    """

    jitter: random.Random = field(default_factory=random.Random)
    streams: bool = True

    def take(self, data: EventData, source: Source = TUI) -> tuple[Effect, ...]:
        """Take an event; what was heard before it stands before what came of it."""
        self.at += 0 if isinstance(data, get_args(Sealed)) else _STEP
        if isinstance(data, Resumed):  # another program goes on: what it heard is what the log tells it
            if isinstance(waiting := self.state.activity, AwaitingReply):
                failed = super().failure(waiting.step, waiting.attempt, ErrorKind.CANCELLED)
                super().take(replace(failed, left=True, partial=self._kept()))
            self.stamped = told(self)
        elif isinstance(data, CallProposed | ReplyFinished | ReplyFailed | Interrupt) and self.jitter.random() < _KEEPS:
            self._keep_part()
        known = len(self.stamped)
        pieces = [Stamped(notification=one, at=self.at - 1) for one in self._pieces(data)] if self.streams else []
        effects = super().take(data, source)
        self.stamped[known:known] = pieces
        return effects

    def reply(self, step: int, attempt: int, *, text: str = "answer", stop: ReplyStop | None = None) -> ReplyFinished:
        """Let a reply say something before each of its calls."""
        plain = super().reply(step, attempt, text=text, stop=stop)
        uses = [block for block in plain.message.content if isinstance(block, ToolUse)]
        content = [block for number, use in enumerate(uses) for block in (*_before(number), use)]
        return replace(plain, message=Message(role=Role.ASSISTANT, content=tuple(content or plain.message.content)))

    def failure(self, step: int, attempt: int, kind: ErrorKind) -> ReplyFailed:
        """Keep the words that the user cut."""
        failed = super().failure(step, attempt, kind)
        words = [block for number in range(self._uses(step, attempt)) for block in _before(number)]
        kept = (*words, Text(text=_CUT))
        return replace(failed, partial=Message(role=Role.ASSISTANT, content=kept)) if self.state.cancelling else failed

    def _keep_part(self) -> None:
        """Keep more of the text that was heard, as a slow reply does every second."""
        if isinstance(waiting := self.state.activity, AwaitingReply):
            part = ReplyPart(step=waiting.step, attempt=waiting.attempt, text=f"Part {len(self.log)}.\n\n")
            super().take(part)

    def _kept(self) -> Message | None:
        """What a program that takes the session up finds of the reply."""
        begun = BegunReply()
        for event in self.log:
            begun.take(event.data)
        return begun.message()

    def _uses(self, step: int, attempt: int) -> int:
        return sum(use.id.startswith(f"call_{step}_{attempt}_") for use in self.proposed)

    def _pieces(self, data: EventData) -> Iterator[Notification]:
        match data:
            case CallProposed(call=call, step=step):
                attempt = int(call.id.split("_")[2])
                yield from self._in_pieces(_before(self._uses(step, attempt) - 1))
                yield CallDelta(index=0, name=call.name)
                yield CallDelta(index=0, name=call.name, parameter="n", text="1")
            case ReplyFinished(message=message) if not any(isinstance(one, ToolUse) for one in message.content):
                yield from self._in_pieces(message.content)
            case ReplyFailed():
                yield from self._in_pieces([Text(text=_CUT)])
            case CallStarted(call_id=call_id):
                yield CallOutput(call_id=call_id, text="printed\n")
            case _:
                return

    def _in_pieces(self, blocks: Sequence[ContentBlock]) -> Iterator[Notification]:
        for block in blocks:
            if isinstance(block, Text | Thinking):
                cut = self.jitter.randrange(len(block.text))
                kind = TextDelta if isinstance(block, Text) else ThinkingDelta
                yield from (kind(text=part) for part in (block.text[:cut], block.text[cut:]) if part)


def _before(number: int) -> list[ContentBlock]:
    """What a reply says before its call of this number."""
    if number:
        return [Text(text=f"Then I look again.\n\n- at {number}\n")]
    return [Thinking(text="hm\n\nwell"), Text(text="# First\n\nI look.")]


def wander(seed: int, *, streams: bool, moves: int = 90) -> Streaming:
    """Drive a session at random."""
    jitter = random.Random(seed)
    limits = BOUNDED if jitter.random() < 0.4 else Limits(max_steps=8, max_retries=2)
    world = Streaming(limits=limits, jitter=jitter, streams=streams)
    walk(jitter, limits, longest=moves, world=world)
    world.try_take(Interrupt())
    for _ in range(_PATIENCE):  # a reply that is under way is in no log
        if isinstance(waiting := world.state.activity, AwaitingReply):
            world.try_take(world.failure(waiting.step, waiting.attempt, ErrorKind.CANCELLED))
        elif world.outstanding:
            world.work_on(next(iter(world.outstanding.values())), jitter.choice)
        world.try_take(Interrupt())
    return world


def told(world: Streaming) -> list[Stamped]:
    """What the log tells, as it comes back from the disk."""
    events = [Event(seq=one.seq, at=one.at, source=one.source, data=decode_data(encode(one.data))) for one in world.log]
    return stamped_notifications(events)


def folded(stamped: Iterable[Stamped]) -> tuple[SessionView, list[Placed]]:
    """The view, and the items that are there, in their order."""
    view, items = SessionView(root="/w"), dict[int, Placed]()
    for one in stamped:
        before = view
        view, changed = fold_notification(view, one)
        assert view.version == before.version + 1
        assert [placed.position for placed in changed] == sorted({placed.position for placed in changed})
        items.update((placed.position, placed) for placed in changed)
    assert sorted(items) == list(range(view.places))
    return view, [items[position] for position in sorted(items) if items[position].item is not None]


def seen(placed: Sequence[Placed], world: Streaming) -> list[Item | None]:
    """What a person sees, but for notices, which no log has, and how long the model thought.

    No log tells when a question ended that a killed program had asked.
    """
    killed = any(isinstance(event.data, Resumed) for event in world.log)
    return [_as_told(one.item, killed=killed) for one in placed if not isinstance(one.item, NoteItem)]


def _as_told(item: Item | None, *, killed: bool) -> Item | None:
    match item:
        case TurnItem() if killed:
            return replace(item, seconds=None, waited=0.0)
        case ThoughtItem():
            return replace(item, seconds=None)
        case CallItem(changed=changed) if changed.status is not CallStatus.FINISHED:
            # No log tells of each state of an open call, nor what it has printed so far.
            return CallItem(CallChanged(call=changed.call, kind=changed.kind, status=CallStatus.PROPOSED))
        case _:
            return item


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    "seed", [*range(100), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(100, 2_000))]
)
def test_a_session_told_again_shows_what_was_seen(seed: int, streams: bool) -> None:
    world = wander(seed, streams=streams)
    (live, live_items), (again, again_items) = folded(world.stamped), folded(told(world))
    assert [live.awaiting, again.awaiting, again.proposed, again.beside] == [False, False, (), ()]
    assert seen(again_items, world) == seen(live_items, world)
    assert again.spending == live.spending
    assert (again.step, again.received, again.mode, again.model) == (live.step, live.received, live.mode, live.model)
