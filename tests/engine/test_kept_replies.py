"""The text of a reply is kept as it comes: a killed program leaves it in the log, and the model reads none of it."""

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.engine.test_bill import PRICED, begun, hanging, of
from tests.fakes.engine import FakeLog
from treadle.context.log_reader import BegunReply, TranscriptReader, with_cut_reply
from treadle.context.notified import stamped_notifications
from treadle.engine.core.advance import fold
from treadle.engine.core.state import Retrying
from treadle.engine.runtime import model_call
from treadle.engine.runtime.lost import lost_calls
from treadle.engine.runtime.model_requests import request_size
from treadle.present.fold import fold_notification
from treadle.present.items import Item, NoteItem, ProseItem
from treadle.present.reply_fold import CUT_OFF_HERE
from treadle.present.view import SessionView
from treadle.protocol.events import ENGINE, Event, EventData, Interrupt, ReplyFailed, ReplyPart, Resumed
from treadle.protocol.messages import Message, Text, text_of
from treadle.protocol.models import ErrorKind, ModelError, StreamText, ToolProtocol
from treadle.protocol.usage import Usage


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_call, "_KEPT_EVERY", 0.0)


async def heard_so_far(*words: str) -> tuple[FakeLog, asyncio.Task[None], object]:
    """Let a model say this, and nothing more; gives the log as a kill would leave it."""
    provider, log = hanging(*(StreamText(text=word) for word in words)), FakeLog()
    session, working = await begun(provider, log)
    await provider.said.wait()
    while not of(log, ReplyPart):
        await asyncio.sleep(0.001)
    return log, working, session


def read(events: list[Event]) -> TranscriptReader:
    reader = TranscriptReader()
    for event in events:
        reader.take(event)
    return reader


def items(events: list[Event]) -> list[Item]:
    view, found = SessionView(root="/w"), dict[int, Item | None]()
    for one in stamped_notifications(events):
        view, changed = fold_notification(view, one)
        found.update((placed.position, placed.item) for placed in changed)
    return [item for _, item in sorted(found.items()) if item is not None]


def prose(events: list[Event]) -> str:
    return "".join(one.written for one in items(events) if isinstance(one, ProseItem))


async def end(working: "asyncio.Task[None]") -> None:
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


@pytest.mark.usefixtures("at_once")
async def test_what_a_killed_program_had_heard_is_shown_as_cut_off_and_not_sent() -> None:
    log, working, _ = await heard_so_far("The first ", "half")
    events = list(log.events)
    assert prose(events) == ""  # a program that is alive shows what it hears
    shown = items(list(with_cut_reply(events)))
    assert prose(list(with_cut_reply(events))) == "The first half"
    assert shown[-1] == NoteItem(CUT_OFF_HERE)
    reader, state = read(events), fold(events)
    (lost,) = lost_calls(state, reader, PRICED)
    assert isinstance(lost, ReplyFailed)
    assert lost.left
    assert lost.partial is not None
    assert text_of(lost.partial.content) == "The first half"
    assert lost.usage.output_tokens > 0
    before = request_size(reader)
    events.append(Event(seq=events[-1].seq + 1, at=events[-1].at, source=ENGINE, data=lost))
    after = read(events)
    assert request_size(after) == before
    assert isinstance(fold(events).activity, Retrying)
    assert items(events) == shown
    assert not list(lost_calls(fold(events), after, PRICED))
    await end(working)


@pytest.mark.usefixtures("at_once")
async def test_a_whole_reply_and_one_that_the_user_cuts_are_shown_once() -> None:
    log, working, session = await heard_so_far("Half of it")
    await session.post(Interrupt())  # type: ignore[attr-defined]
    while not of(log, ReplyFailed):
        await asyncio.sleep(0.001)
    events = list(log.events)
    assert prose(events) == prose(list(with_cut_reply(events))) == "Half of it"
    assert not any(isinstance(one, NoteItem) and one.text == CUT_OFF_HERE for one in items(events))
    assert "Half of it" in str(read(events).transcript.messages(ToolProtocol.XML))
    await end(working)


@pytest.mark.usefixtures("at_once")
async def test_a_program_that_ends_keeps_all_that_it_heard() -> None:
    log, working, session = await heard_so_far("All of ", "it")
    await session.close()  # type: ignore[attr-defined]
    await working
    (failed,) = of(log, ReplyFailed)
    assert (failed.left, text_of(failed.partial.content)) == (True, "All of it")
    assert prose(list(log.events)) == "All of it"
    assert "All of it" not in str(read(list(log.events)).transcript.messages(ToolProtocol.XML))


async def test_a_short_reply_adds_nothing_to_the_log() -> None:
    provider, log = hanging(StreamText(text="short")), FakeLog()
    session, working = await begun(provider, log)
    await provider.said.wait()
    await session.post(Interrupt())
    while not of(log, ReplyFailed):
        await asyncio.sleep(0.001)
    assert not of(log, ReplyPart)
    await end(working)


def begun_text(data: Iterable[EventData]) -> str:
    reply = BegunReply()
    for one in data:
        reply.take(one)
    message = reply.message()
    return "" if message is None else text_of(message.content)


PARTS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.text("ab \n", max_size=4)), max_size=12)
FAILED = ReplyFailed(step=1, attempt=0, error=ModelError(kind=ErrorKind.CANCELLED, message=""), usage=Usage())


@given(PARTS)
def test_only_the_parts_of_the_newest_attempt_are_its_text(parts: list[tuple[int, int, str]]) -> None:
    data: Sequence[EventData] = [ReplyPart(step=step, attempt=attempt, text=text) for step, attempt, text in parts]
    newest: list[str] = []
    for before, (step, attempt, text) in zip([None, *parts], parts, strict=False):
        newest = [*newest, text] if before is not None and before[:2] == (step, attempt) else [text]
    wanted = "".join(newest)
    assert begun_text(data) == (wanted if wanted.strip() else "")
    assert begun_text([*data, FAILED]) == ""
    ended = [*data, FAILED, replace(FAILED, partial=Message(role="assistant", content=(Text(text="x"),)))]  # type: ignore[arg-type]
    assert begun_text(ended) == ""
    assert begun_text([*data, Resumed(user_present=True)]) == begun_text(data)
