"""Both sides over real HTTP: adapters against the scripted server."""

import asyncio
import json

import pytest
from tests.providers.support import (
    KEY,
    called,
    collect,
    failure_of,
    first_piece,
    joined,
    provider_at,
    request,
    result,
    user,
)

from treadle.app.errors.error_report import describe_model_error
from treadle.present.failure_words import advice, describe_failure
from treadle.protocol.messages import ContentBlock, Message, Role, Text, Thinking, ToolUse, WireData
from treadle.protocol.models import (
    ErrorKind,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
    StreamUsage,
)
from treadle.protocol.usage import Usage
from treadle.providers.scripted.script import (
    BreakOff,
    Cut,
    Expectation,
    MakeCall,
    Pace,
    Refuse,
    SayText,
    SayThinking,
    Script,
    ScriptItem,
    Texts,
    Turn,
    Wait,
)
from treadle.providers.scripted.scripted_server import ScriptedServer

APIS = pytest.mark.parametrize("api", ["anthropic", "chat", "responses", "gemini", "bedrock"])
USAGE = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=1000, cache_write_tokens=30)


def script(*items: ScriptItem, pace: Pace | None = None, usage: Usage | None = USAGE) -> Script:
    return Script(turns=(Turn(items=items, usage=usage, pace=pace),))


def thinking_done(api: str) -> StreamThinkingDone:
    """The end of reasoning signed `sig`, in the form in which each API wants it back."""
    match api:
        case "anthropic":
            return StreamThinkingDone(signature="sig", wire=WireData(api="anthropic_messages:anthropic", data={}))
        case "bedrock":
            return StreamThinkingDone(signature="sig", wire=WireData(api="bedrock_converse:bedrock", data={}))
        case "chat":
            return StreamThinkingDone(wire=WireData(api="openai_chat:chat", data={"field": "reasoning_content"}))
        case "responses":
            summary = [{"type": "summary_text", "text": "Hm, naïve 🙂."}]
            item = {"type": "reasoning", "id": "reasoning_resp_0_0", "summary": summary, "encrypted_content": "sig"}
            return StreamThinkingDone(wire=WireData(api="openai_responses:responses", data={"item": item}))
        case _:
            return StreamThinkingDone(wire=WireData(api="gemini:gemini", data={"thoughtSignature": "sig"}))


def call_done(api: str, index: int) -> StreamCallDone:
    return StreamCallDone(index=index, wire=WireData(api="gemini:gemini", data={}) if api == "gemini" else None)


def billed(api: str) -> Usage:
    """What was billed: two of the APIs do not tell tokens written to the cache apart."""
    if api in ("anthropic", "chat", "bedrock"):
        return USAGE
    return Usage(input_tokens=130, output_tokens=20, cache_read_tokens=1000)


@APIS
@pytest.mark.parametrize("split", [1, 7, 0])
async def test_a_reply_with_all_kinds_of_blocks_arrives_whole_however_it_is_split(api: str, split: int) -> None:
    said = script(
        SayThinking(text="Hm, naïve 🙂.", signature="sig"),
        SayText(text="Let me look: é 漢字."),
        MakeCall(name="read_file", arguments={"path": "a/ü.py"}),
        MakeCall(name="read_file", arguments={"path": "b"}, id="mine"),
        pace=Pace(chunk=3),
    )
    async with ScriptedServer(said, split=split) as server:
        events = joined(await collect(provider_at(api, server.base_url), request()))
    first = 2 if api in ("anthropic", "responses", "bedrock") else 0
    calls = [
        StreamCallStart(index=first, name="read_file", wire_id="call_0_0"),
        StreamCallArguments(index=first, text='{"path":"a/ü.py"}'),
        call_done(api, first),
        StreamCallStart(index=first + 1, name="read_file", wire_id="mine"),
        StreamCallArguments(index=first + 1, text='{"path":"b"}'),
        call_done(api, first + 1),
    ]
    if api == "chat":  # this API does not say when a call is complete
        calls = [calls[0], calls[1], calls[3], calls[4], calls[2], calls[5]]
    assert events == [
        StreamThinking(text="Hm, naïve 🙂."),
        thinking_done(api),
        StreamText(text="Let me look: é 漢字."),
        *calls,
        StreamStop(reason=ReplyStop.TOOL_USE, usage=billed(api)),
    ]
    assert server.violations == []


@APIS
async def test_a_conversation_with_results_is_valid_for_the_real_api(api: str) -> None:
    turns = (
        Turn(items=(MakeCall(name="read_file", arguments={"path": "a.py"}),)),
        Turn(items=(SayText(text="Done."),), expect=Expectation(last_result=Texts(contains=("print",)), messages=3)),
    )
    answer = Message(role=Role.USER, content=(result("print()"), Text(text=""), Text(text="Go on.")))
    async with ScriptedServer(Script(turns=turns)) as server:
        events = await collect(provider_at(api, server.base_url), request(user("Hello"), called(), answer))
    assert events[0] == StreamText(text="Done.")
    assert isinstance(events[-1], StreamStop)
    assert server.violations == []


def assembled(events: list[StreamEvent]) -> Message:
    """The assistant's message of a stream, as the engine keeps it."""
    content: list[ContentBlock] = []
    text, arguments, wire_id = "", "", ""
    for event in joined(events):
        match event:
            case StreamThinking():
                text = event.text
            case StreamThinkingDone():
                content.append(Thinking(text=text, signature=event.signature, wire=event.wire))
                text = ""
            case StreamText():
                content.append(Text(text=event.text))
            case StreamCallStart():
                wire_id = event.wire_id
            case StreamCallArguments():
                arguments = event.text
            case StreamCallDone():
                use = ToolUse(
                    id="c1", name="read_file", arguments=json.loads(arguments), wire_id=wire_id, wire=event.wire
                )
                content.append(use)
            case StreamUsage() | StreamStop() | StreamFailure():
                pass
    return Message(role=Role.ASSISTANT, content=tuple(content))


@APIS
async def test_signed_reasoning_goes_back_as_it_came_and_stays_away_from_others(api: str) -> None:
    call = MakeCall(name="read_file", arguments={"path": "a.py"})
    turns = (Turn(items=(SayThinking(text="Hm", signature="SIGNED"), SayText(text="Yes."), call)), Turn())
    answer = Message(role=Role.USER, content=(result("print()"),))
    async with ScriptedServer(Script(turns=turns)) as server:
        said = assembled(await collect(provider_at(api, server.base_url), request()))
        for name in (api, "another"):
            await collect(provider_at(api, server.base_url, name=name), request(user("Hello"), said, answer))
    back, elsewhere = (json.dumps(dict(received.body)) for received in server.requests[1:])
    mark = "reasoning_content" if api == "chat" else "SIGNED"
    assert (mark in back, mark in elsewhere) == (True, False)
    assert server.violations == []


@APIS
@pytest.mark.parametrize(
    ("refusal", "kind", "wait"),
    [
        (Refuse(status=429, headers={"Retry-After": "7"}), ErrorKind.RATE_LIMIT, 7.0),
        (Refuse(status=529, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), ErrorKind.OVERLOADED, 0.0),
        (Refuse(status=503), ErrorKind.OVERLOADED, None),
        (Refuse(status=500), ErrorKind.SERVER, None),
        (Refuse(status=401, message=f"bad key {KEY}"), ErrorKind.AUTHENTICATION, None),
        (Refuse(status=403, code="permission_error"), ErrorKind.PERMISSION, None),
        (Refuse(status=404), ErrorKind.NOT_FOUND, None),
        (Refuse(status=413), ErrorKind.CONTEXT_TOO_LONG, None),
        (Refuse(status=400, message="prompt is too long: 20 tokens > 10 maximum"), ErrorKind.CONTEXT_TOO_LONG, None),
        (Refuse(status=400, message="max_tokens: bad"), ErrorKind.BAD_REQUEST, None),
        (Refuse(status=429, code="insufficient_quota"), ErrorKind.BALANCE, None),
        (Refuse(status=400, message="Your credit balance is too low"), ErrorKind.BALANCE, None),
    ],
)
async def test_http_errors_become_typed_errors(api: str, refusal: Refuse, kind: ErrorKind, wait: float | None) -> None:
    async with ScriptedServer(script(refusal)) as server:
        failed = await failure_of(provider_at(api, server.base_url), request())
    assert (failed.error.kind, failed.error.status, failed.error.retry_after) == (kind, refusal.status, wait)


@APIS
@pytest.mark.parametrize("kind", [ErrorKind.OVERLOADED, ErrorKind.RATE_LIMIT, ErrorKind.CONTEXT_TOO_LONG])
async def test_an_error_inside_the_stream_is_mapped_like_a_status(api: str, kind: ErrorKind) -> None:
    async with ScriptedServer(script(SayText(text="Well"), BreakOff(kind=kind, message="no more"))) as server:
        events = await collect(provider_at(api, server.base_url), request())
    assert events[0] == StreamText(text="Well")
    assert isinstance(events[-1], StreamFailure)
    assert (events[-1].error.kind, "no more" in events[-1].error.message) == (kind, True)


@APIS
@pytest.mark.parametrize("after", [0, 1, 40, 150])
async def test_a_cut_stream_is_a_failure_and_never_a_stop(api: str, after: int) -> None:
    cut = script(SayText(text="Well"), Cut(after_bytes=after), SayText(text=", then"), pace=Pace(chunk=1))
    async with ScriptedServer(cut) as server:
        failed = await failure_of(provider_at(api, server.base_url), request())
    assert failed.error.kind is ErrorKind.NETWORK
    assert failed.error.retryable
    assert "ended its reply in the middle: the connection to " in failed.error.message
    assert "base URL" not in advice(failed.error, "p/m") + describe_model_error(failed.error, "p/m")
    assert describe_failure(failed.error, "anthropic/m") == "Anthropic ended its reply in the middle."


@APIS
async def test_errors_that_happen_some_times_only_pass_on_the_retry(api: str) -> None:
    said = script(Refuse(status=503, times=1), SayText(text="Here"), Cut(times=2), SayText(text=" I am"))
    async with ScriptedServer(said) as server:
        provider_events = [await collect(provider_at(api, server.base_url), request()) for _ in range(3)]
    assert [type(events[-1]) for events in provider_events] == [StreamFailure, StreamFailure, StreamStop]
    assert joined(provider_events[2])[0] == StreamText(text="Here I am")


@APIS
async def test_closing_the_stream_closes_the_socket(api: str) -> None:
    async with ScriptedServer(script(SayText(text="Well"), Wait(seconds=60), SayText(text="no"))) as server:
        provider = provider_at(api, server.base_url)
        stream = provider.stream(request())
        assert await first_piece(stream) == StreamText(text="Well")
        await stream.aclose()
        await _hung_up(server)
        await provider.close()


@APIS
async def test_cancelling_the_reader_closes_the_socket(api: str) -> None:
    async with ScriptedServer(script(SayText(text="Well"), Wait(seconds=60), SayText(text="no"))) as server:
        provider = provider_at(api, server.base_url)
        started = asyncio.Event()

        async def read() -> None:
            async for _ in provider.stream(request()):
                started.set()

        task = asyncio.create_task(read())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await _hung_up(server)
        await provider.close()


async def _hung_up(server: ScriptedServer) -> None:
    while server.hang_ups == 0:
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("api", ["anthropic", "chat"])
async def test_twenty_thousand_chunks_come_through(api: str) -> None:
    text = "0123456789" * 2_000
    async with ScriptedServer(script(SayText(text=text), pace=Pace(chunk=1))) as server:
        events = await collect(provider_at(api, server.base_url), request())
    assert len(events) == 20_001
    assert joined(events)[0] == StreamText(text=text)


@APIS
async def test_a_connection_is_used_again(api: str) -> None:
    turns = (Turn(items=(SayText(text="One"),)), Turn(items=(SayText(text="Two"),)))
    async with ScriptedServer(Script(turns=turns)) as server:
        provider = provider_at(api, server.base_url)
        first = [event async for event in provider.stream(request()) if not isinstance(event, StreamUsage)]
        said = Message(role=Role.ASSISTANT, content=(Text(text="One"),))
        second = await collect(provider, request(user("Hello"), said, user("And?")))
        assert (first[0], second[0]) == (StreamText(text="One"), StreamText(text="Two"))
        assert server.connections == 1


@APIS
async def test_without_tools_calls_are_written_as_text(api: str) -> None:
    said = script(SayText(text="Let me look."), MakeCall(name="read_file", arguments={"path": "a.py", "lines": [1, 2]}))
    async with ScriptedServer(said) as server:
        events = joined(await collect(provider_at(api, server.base_url), request(tools=())))
    text = "Let me look.\n<read_file>\n<path>a.py</path>\n<lines>[1,2]</lines>\n</read_file>\n"
    assert events == [StreamText(text=text), StreamStop(reason=ReplyStop.END_TURN, usage=billed(api))]


@APIS
async def test_the_key_is_checked_when_the_server_has_one(api: str) -> None:
    async with ScriptedServer(script(SayText(text="Hi")), api_key="another") as server:
        failed = await failure_of(provider_at(api, server.base_url), request())
        assert failed.error.kind is ErrorKind.AUTHENTICATION
    async with ScriptedServer(script(SayText(text="Hi")), api_key=KEY) as server:
        assert isinstance((await collect(provider_at(api, server.base_url), request()))[-1], StreamStop)
