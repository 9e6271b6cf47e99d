"""What a provider refuses leaves the conversation: the turn goes on, and who reads the log later reads the same."""

import asyncio

import pytest

from tests.engine.test_runtime import DONE, Replies, working
from tests.fakes.engine import STARTED, FakeLog, FakeTool, ports
from treadle.context.log_reader import TranscriptReader
from treadle.protocol.events import Prompt, ReplyFailed, SetMode, SetModel, SetPresence
from treadle.protocol.messages import Document, Image, Message, RedactedThinking, Text, Thinking, ToolResult, WireData
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelRequest,
    RefusedPart,
    ReplyStop,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
    ToolProtocol,
)
from treadle.protocol.notifications import TurnStop
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import CallResult, Outcome
from treadle.protocol.usage import Usage

PICTURE = Image(media_type="image/png", data="iVBORw0KGgo=")
PAPER = Document(media_type="application/pdf", data="JVBERi0=", title="a.pdf")
SIGNED = WireData(api="anthropic_messages:p", data={})
THOUGHT: list[StreamEvent] = [
    StreamThinking(text="Hm."),
    StreamThinkingDone(signature="s", wire=SIGNED),
    StreamText(text="done"),
    StreamStop(reason=ReplyStop.END_TURN, usage=Usage(input_tokens=10, output_tokens=2)),
]


def refused(part: RefusedPart) -> list[StreamEvent]:
    return [StreamFailure(error=ModelError(kind=ErrorKind.BAD_REQUEST, message="No.", status=400, refused=part))]


def parts(request: ModelRequest) -> list[object]:
    """Everything that a request has, those parts of results included."""
    blocks = [block for message in request.messages for block in message.content]
    return [*blocks, *(one for block in blocks if isinstance(block, ToolResult) for one in block.content)]


def has(request: ModelRequest, part: RefusedPart) -> bool:
    match part:
        case RefusedPart.IMAGE | RefusedPart.EVERY_IMAGE:
            return any(isinstance(one, Image) for one in parts(request))
        case RefusedPart.DOCUMENT:
            return any(isinstance(one, Document) for one in parts(request))
        case RefusedPart.THINKING:
            return any(isinstance(one, Thinking | RedactedThinking) and one.wire is not None for one in parts(request))
        case RefusedPart.TOOLS:
            return bool(request.tools)


def messages_of(log: FakeLog) -> tuple[Message, ...]:
    reader = TranscriptReader()
    for event in log.events:
        reader.take(event)
    return reader.transcript.messages(ToolProtocol.NATIVE, images=reader.takes_images)


@pytest.mark.parametrize("part", RefusedPart)
async def test_the_turn_goes_on_without_the_part_and_the_log_says_the_same(part: RefusedPart) -> None:
    async def look(_: object) -> CallResult:
        return CallResult(outcome=Outcome.OK, content=(PICTURE, PAPER))

    log = FakeLog()
    provider = Replies(THOUGHT, refused(part), DONE)
    async with working(ports(provider, FakeTool("look", look), log=log), log) as run:
        assert (await run.prompt("first")).stop is TurnStop.END_TURN
        await run.session.post(SetPresence(user_present=False))
        await run.session.post(Prompt(id="with", content=(Text(text="See."), PICTURE, PAPER)))
        outcome = await run.end()

    before, after = provider.requests[1:3]
    assert outcome.stop is TurnStop.END_TURN or part is RefusedPart.TOOLS  # a plain text is no end there
    assert (has(before, part), has(after, part)) == (True, False)
    assert len(run.of(ReplyFailed)) == 1
    if part is not RefusedPart.TOOLS:
        assert messages_of(log)[: len(after.messages)] == after.messages


@pytest.mark.parametrize("part", RefusedPart)
async def test_a_provider_that_goes_on_refusing_ends_the_turn_in_bounded_requests(part: RefusedPart) -> None:
    log = FakeLog()
    provider = Replies(refused(part))
    async with working(ports(provider, log=log), log) as run, asyncio.timeout(90):
        outcome = await run.prompt("go")

    assert outcome.stop is TurnStop.ERROR
    assert outcome.error is not None
    assert outcome.error.message == "No."
    assert len(provider.requests) <= 8


async def test_the_model_reads_a_line_in_the_place_of_an_image_and_a_later_one_is_sent() -> None:
    log = FakeLog()
    provider = Replies(refused(RefusedPart.IMAGE), DONE)
    async with working(ports(provider, log=log), log) as run:
        await run.session.post(Prompt(id="with", content=(PICTURE,)))
        await run.end()
        await run.session.post(Prompt(id="again", content=(PICTURE,)))
        await run.end()

    texts = [one.text for one in parts(provider.requests[1]) if isinstance(one, Text)]
    line = "[An image (image/png, 9 bytes) was left out: the provider refused it. Do not guess what it shows.]"
    assert line in texts
    assert has(provider.requests[2], RefusedPart.IMAGE)


async def test_a_model_that_takes_no_images_is_sent_none_from_then_on() -> None:
    log = FakeLog()
    provider = Replies(refused(RefusedPart.EVERY_IMAGE), DONE)
    async with working(ports(provider, log=log), log) as run:
        for name in ("one", "two"):
            await run.session.post(Prompt(id=name, content=(PICTURE,)))
            await run.end()

    assert [has(request, RefusedPart.IMAGE) for request in provider.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (SetMode(mode=Mode.PLAN), False),
        (SetMode(mode=Mode.PLAN, choice=STARTED.choice), True),
        (SetModel(choice=STARTED.choice), True),
    ],
)
async def test_images_stay_out_as_long_as_the_model_stays(change: SetMode | SetModel, shown: bool) -> None:
    log = FakeLog()
    provider = Replies(refused(RefusedPart.EVERY_IMAGE), DONE)
    async with working(ports(provider, log=log), log) as run:
        await run.session.post(Prompt(id="one", content=(PICTURE,)))
        await run.end()
        await run.session.post(change)
        await run.prompt("go on")

    assert [has(request, RefusedPart.IMAGE) for request in provider.requests] == [True, False, shown]


async def test_calls_are_written_as_text_once_function_calls_were_refused() -> None:
    async def look(_: object) -> CallResult:
        return CallResult(outcome=Outcome.OK, content=(Text(text="x"),))

    log = FakeLog()
    provider = Replies(refused(RefusedPart.TOOLS), DONE)
    async with working(ports(provider, FakeTool("look", look), log=log), log) as run:
        await run.session.post(SetPresence(user_present=False))
        await run.prompt("one")

    assert [bool(request.tools) for request in provider.requests[:3]] == [True, False, False]
