"""A conversation that began at one wire API goes on at any other, with only what cannot be said there left out."""

import json
from itertools import product

import msgspec
import pytest
from tests.providers.support import APIS, collect, provider_at, request

from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    Message,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from treadle.protocol.models import (
    ModelRequest,
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
from treadle.providers.scripted.script import MakeCall, SayText, SayThinking, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

PICTURE = Image(media_type="image/png", data="iVBORw0KGgpQSUNUVVJF")
SHOT = Image(media_type="image/png", data="iVBORw0KGgpTSE9U")
PAPER = Document(media_type="application/pdf", data="JVBERi1QQVBFUg==", title="paper.pdf")
MODEL = "anthropic.claude-sonnet-4-5"

SAID = (
    SayThinking(text="I should look.", signature="SIGNED"),
    SayText(text="Let me look."),
    MakeCall(name="read_file", arguments={"path": "first.py"}),
    MakeCall(name="read_file", arguments={"path": "second.py"}),
)
MARKS = {
    "question": "What is in the picture?",
    "picture": PICTURE.data,
    "document": PAPER.data,
    "text": "Let me look.",
    "first call": "first.py",
    "second call": "second.py",
    "result": "print(1)",
    "picture in a result": SHOT.data,
    "failed result": "there is no such file",
    "answer": "Go on.",
}
REASONING = {"chat": "I should look."}
"""What goes back of reasoning, where that is not its signature."""

FAILED = {"anthropic": '"is_error": true', "gemini": '"error": "there is', "bedrock": '"status": "error"'}
"""How an API says that a call failed; the others have only the words of the result."""


def message_of(events: list[StreamEvent]) -> Message:
    """The message of a whole stream, as the engine keeps it."""
    content: list[ContentBlock] = []
    calls: dict[int, ToolUse] = {}
    texts: dict[int, str] = {}
    thought, said = "", ""
    for event in events:
        match event:
            case StreamThinking():
                thought += event.text
            case StreamThinkingDone(redacted=""):
                content.append(Thinking(text=thought, signature=event.signature, wire=event.wire))
                thought = ""
            case StreamThinkingDone():
                content.append(RedactedThinking(data=event.redacted, wire=event.wire))
            case StreamText():
                said += event.text
            case StreamCallStart():
                if said:
                    content.append(Text(text=said))
                    said = ""
                call_id = f"own-{event.index}"
                calls[event.index] = ToolUse(id=call_id, name=event.name, arguments={}, wire_id=event.wire_id)
                texts[event.index] = ""
            case StreamCallArguments():
                texts[event.index] += event.text
            case StreamCallDone():
                arguments = json.loads(texts[event.index])
                content.append(msgspec.structs.replace(calls[event.index], arguments=arguments, wire=event.wire))
            case StreamUsage() | StreamStop() | StreamFailure():
                pass
    return Message(role=Role.ASSISTANT, content=tuple(content))


def after(said: Message) -> ModelRequest:
    """The request that goes on after a reply with two calls."""
    first, second = (block for block in said.content if isinstance(block, ToolUse))
    results = (
        ToolResult(call_id=first.id, name=first.name, content=(Text(text="print(1)"), SHOT), wire_id=first.wire_id),
        ToolResult(
            call_id=second.id,
            name=second.name,
            content=(Text(text="there is no such file"),),
            is_error=True,
            wire_id=second.wire_id,
        ),
    )
    question = Message(role=Role.USER, content=(Text(text="What is in the picture?"), PICTURE, PAPER))
    answer = Message(role=Role.USER, content=(*results, Text(text="Go on.")))
    return msgspec.structs.replace(request(question, said, answer), model=MODEL)


async def begun_at(api: str) -> Message:
    async with ScriptedServer(Script(turns=(Turn(items=SAID),))) as server:
        return message_of(await collect(provider_at(api, server.base_url), request()))


async def sent_to(api: str, asked: ModelRequest) -> tuple[str, list[str]]:
    """What is sent, as JSON, and what a server that is as strict as the real one has against it."""
    turns = (Turn(items=(SayText(text="?"),)), Turn(items=(SayText(text="Done."),)))
    async with ScriptedServer(Script(turns=turns)) as server:
        events = await collect(provider_at(api, server.base_url), asked)
        assert isinstance(events[-1], StreamStop)
        return json.dumps(server.requests[0].body, ensure_ascii=False), server.violations


@pytest.mark.parametrize(("source", "target"), list(product(APIS, APIS)))
async def test_a_conversation_goes_on_at_any_api(source: str, target: str) -> None:
    said = await begun_at(source)
    body, violations = await sent_to(target, after(said))
    text = body.replace('\\"', '"')
    assert violations == []
    missing = {name for name, mark in MARKS.items() if mark not in text}
    if REASONING.get(source, "SIGNED") not in text:
        missing.add("reasoning")
    if FAILED.get(target, "none") not in text:
        missing.add("mark of failure")
    left_out = {"reasoning"} if source != target else set()
    assert missing == left_out | ({"mark of failure"} if target not in FAILED else set())


@pytest.mark.parametrize("api", APIS)
async def test_what_went_out_and_came_back_is_the_same_message(api: str) -> None:
    said = await begun_at(api)
    kinds = [type(block) for block in said.content]
    assert kinds == [Thinking, Text, ToolUse, ToolUse]
    assert [block.arguments for block in said.content if isinstance(block, ToolUse)] == [
        {"path": "first.py"},
        {"path": "second.py"},
    ]
    body, _ = await sent_to(api, after(said))
    again, _ = await sent_to(api, after(said))
    assert body == again
    places = [body.index(mark) for mark in ("Let me look.", "first.py", "second.py", "print(1)", "there is no such")]
    assert places == sorted(places)
