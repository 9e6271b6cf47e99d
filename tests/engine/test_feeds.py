"""What surfaces are notified of while a reply comes: joined, weighed, remembered for those who come back."""

import asyncio
import gc
import tracemalloc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.test_runtime import DONE, Replies, working
from tests.fakes.engine import USAGE, FakeLog, calls, ports
from treadle.engine.runtime.feeds import RECENT, Feed, Feeds, weight
from treadle.engine.runtime.tool_call import LiveOutput
from treadle.protocol.attach import Stamped
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ErrorKind, ModelError, StreamFailure
from treadle.protocol.notifications import (
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    MessageDone,
    Notice,
    Notification,
    PromptDelivered,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TurnStop,
)
from treadle.protocol.tools import Outcome, Preview, ToolCall, ToolKind, result_text

CALL = ToolCall(id="c", name="look", arguments={})
RUNNING = CallChanged(call=CALL, kind=ToolKind.READ, status=CallStatus.RUNNING)


async def waiting(feed: Feed) -> list[Notification]:
    feed.close()
    return [told async for told in feed]


@pytest.mark.parametrize(
    ("pieces", "joined"),
    [
        ((TextDelta(text="a"), TextDelta(text="b")), (TextDelta(text="ab"),)),
        ((ThinkingDelta(text="a"), ThinkingDelta(text="b")), (ThinkingDelta(text="ab"),)),
        ((TextDelta(text="a"), ThinkingDelta(text="b")), (TextDelta(text="a"), ThinkingDelta(text="b"))),
        (
            (CallDelta(index=0, name="x", text="a"), CallDelta(index=0, name="x", text="b")),
            (CallDelta(index=0, name="x", text="ab"),),
        ),
        (
            (CallDelta(index=0, name="x", text="a"), CallDelta(index=1, name="x", text="b")),
            (CallDelta(index=0, name="x", text="a"), CallDelta(index=1, name="x", text="b")),
        ),
        (
            (CallDelta(index=0, name="x"), CallDelta(index=0, name="x")),
            (CallDelta(index=0, name="x"), CallDelta(index=0, name="x")),
        ),
        ((CallOutput(call_id="c", text="a"), CallOutput(call_id="c", text="b")), (CallOutput(call_id="c", text="ab"),)),
        (
            (CallOutput(call_id="c", text="a"), CallOutput(call_id="d", text="b")),
            (CallOutput(call_id="c", text="a"), CallOutput(call_id="d", text="b")),
        ),
    ],
)
async def test_pieces_of_the_same_text_that_wait_are_put_together(
    pieces: tuple[Notification, ...], joined: tuple[Notification, ...]
) -> None:
    feeds = Feeds()
    feed = feeds.follow()
    for piece in pieces:
        feeds.publish(piece)
    assert await waiting(feed) == list(joined)


def test_what_holds_more_text_weighs_as_much_more() -> None:
    def grown(short: Notification, long: Notification) -> int:
        return weight(long) - weight(short)

    def done(text: str) -> MessageDone:
        return MessageDone(step=1, message=Message(role=Role.ASSISTANT, content=(Text(text=text),)), usage=USAGE)

    def changed(preview: str, result: str) -> CallChanged:
        return CallChanged(
            call=CALL,
            kind=ToolKind.READ,
            status=CallStatus.FINISHED,
            preview=Preview(title="t", text=preview),
            result=result_text(Outcome.OK, result),
        )

    assert grown(TextDelta(text=""), TextDelta(text="x" * 70)) == 70
    assert grown(CallOutput(call_id="c", text=""), CallOutput(call_id="c", text="x" * 70)) == 70
    assert grown(done("x"), done("x" * 71)) == 70
    assert grown(changed("", "x"), changed("y" * 30, "x")) == 30
    assert grown(changed("y", "x"), changed("y", "x" * 71)) == 70
    prompts = [PromptDelivered(prompt_id="p", content=(Text(text="x" * count),)) for count in (1, 71)]
    assert grown(*prompts) == 70
    assert weight(RUNNING) > weight(Notice(text="x" * 70)) > 0


async def test_who_comes_back_is_given_what_was_missed_as_far_as_it_is_remembered() -> None:
    feeds = Feeds()
    for number in range(RECENT + 5):
        feeds.publish(Notice(text=str(number)))
    assert feeds.has(5)
    assert not feeds.has(4)
    assert await waiting(feeds.follow(after=RECENT + 2)) == [Notice(text=str(RECENT + more)) for more in (2, 3, 4)]


PIECES = st.sampled_from(
    (
        TextDelta(text="abc"),
        TextDelta(text="d"),
        ThinkingDelta(text="ef"),
        CallDelta(index=0, name="x", text="gh"),
        CallDelta(index=1, name="y", text=""),
        CallOutput(call_id="c", text="ij"),
        CallOutput(call_id="d", text="k"),
        RUNNING,
        Notice(text="l"),
    )
)


@given(st.lists(st.tuples(PIECES, st.integers(1, 5)), max_size=12), st.data())
def test_who_comes_back_between_pieces_of_a_text_is_given_the_rest_of_it(
    told: list[tuple[Notification, int]], data: st.DataObject
) -> None:
    feeds = Feeds()
    whole = [piece for piece, times in told for _ in range(times)]
    for piece in whole:
        feeds.publish(piece)
    after = data.draw(st.integers(0, len(whole)))
    listened = Feed()
    for number, piece in enumerate(whole, 1):
        if number > after:
            listened.put(Stamped(notification=piece, number=number))
    assert feeds.has(after)
    assert feeds.follow(after=after).taken() == listened.taken()


def test_a_long_reply_takes_little_more_than_its_text_and_is_remembered_whole() -> None:
    feeds = Feeds()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(20_000):
        feeds.publish(TextDelta(text=f"{number:04}"))
    took = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert feeds.has(1)
    assert took < 20_000 * 25  # its text twice, and the length of each piece


def test_large_ones_are_forgotten_earlier() -> None:
    feeds = Feeds()
    for _ in range(4):
        feeds.publish(TextDelta(text="x" * 3_000_000))
    assert not feeds.has(1)
    assert feeds.has(2)


async def test_who_left_is_told_nothing_more_and_its_feed_ends() -> None:
    feeds = Feeds()
    feed = feeds.follow()
    feed.leave()
    feeds.publish(Notice(text="late"))
    assert feed.closed
    async with asyncio.timeout(90):
        assert [told async for told in feed] == []
    kept = weakref.ref(feed)
    del feed
    gc.collect()
    assert kept() is None


async def listens(feeds: Feeds, heard: list[Notification], begun: asyncio.Event) -> None:
    async with feeds.follow() as feed:
        begun.set()
        async for one in feed:
            heard.append(one)
            if one == Notice(text="enough"):
                break


@pytest.mark.parametrize("how", ["leaves early", "is cancelled"])
async def test_who_leaves_a_feed_in_any_way_is_forgotten_at_once(how: str) -> None:
    feeds, heard, begun = Feeds(), list[Notification](), asyncio.Event()
    listening = asyncio.create_task(listens(feeds, heard, begun))
    await begun.wait()
    feeds.publish(Notice(text="one"))
    if how == "leaves early":
        feeds.publish(Notice(text="enough"))
        await listening
    else:
        await asyncio.sleep(0)
        listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    feeds.publish(Notice(text="late"))
    assert Notice(text="late") not in heard
    assert feeds.listeners == 0


async def test_a_reader_that_waits_is_told_when_another_task_leaves_its_feed() -> None:
    feeds = Feeds()
    feed = feeds.follow()

    async def read() -> list[Notification]:
        return [one async for one in feed]

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    feed.leave()
    feed.leave()  # a second time does no harm
    async with asyncio.timeout(90):
        assert await reading == []


async def test_what_is_streamed_reaches_who_listens_before_the_message_does() -> None:
    log = FakeLog()
    async with working(ports(Replies(DONE), log=log), log) as run:
        await run.prompt()
    kinds = [type(told) for told in run.told]
    assert TextDelta(text="done") in run.told
    assert kinds.index(TextDelta) < kinds.index(MessageDone)


async def test_what_failed_for_a_while_is_sent_again_when_its_time_has_come() -> None:
    busy = ModelError(kind=ErrorKind.OVERLOADED, message="busy", retry_after=0.01)
    log, provider = FakeLog(), Replies([StreamFailure(error=busy)], DONE)
    async with working(ports(provider, log=log), log) as run:
        outcome = await run.prompt()
    assert (outcome.stop, outcome.text, len(provider.requests)) == (TurnStop.END_TURN, "done", 2)
    assert [told.attempt for told in run.told if isinstance(told, RetryScheduled)] == [1]


def test_of_a_call_that_is_cut_the_end_of_its_output_is_kept() -> None:
    output = LiveOutput()
    for number in range(40):
        output.add(f"{number:04d}" + "." * 996)
    assert output.text.startswith("0032")
    assert len(output.text) == 8_000
    assert output.size == sum(map(len, output.pieces)) <= 9_000


async def test_calls_of_a_reply_are_streamed_as_they_are_written() -> None:
    log = FakeLog()
    async with working(ports(Replies(calls("look"), DONE), log=log), log) as run:
        await run.prompt()
    assert any(isinstance(told, CallDelta) and told.name == "look" for told in run.told)
