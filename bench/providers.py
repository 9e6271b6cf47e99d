"""CPU of reading a reply of 20,000 pieces at each wire API, in network-sized chunks, beside bare JSON decoding."""

import json
import time
from collections.abc import Callable

from treadle.protocol.models import (
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
)
from treadle.protocol.usage import Usage
from treadle.providers.anthropic_messages import AnthropicMessages
from treadle.providers.bedrock_converse import BedrockConverse
from treadle.providers.endpoint import Endpoint
from treadle.providers.gemini import Gemini
from treadle.providers.openai_chat import OpenAIChat
from treadle.providers.openai_responses import OpenAIResponses
from treadle.providers.scripted.anthropic_format import AnthropicFormat
from treadle.providers.scripted.bedrock_format import BedrockFormat
from treadle.providers.scripted.chat_format import ChatFormat
from treadle.providers.scripted.gemini_format import GeminiFormat
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.responses_format import ResponsesFormat
from treadle.providers.scripted.wire_format import WireFormat
from treadle.providers.wire import WireApi

PIECES = 20_000
CHUNK = 1_400
RUNS = 3
APIS: dict[str, tuple[Callable[[Endpoint], WireApi], WireFormat]] = {
    "Anthropic Messages": (AnthropicMessages, AnthropicFormat()),
    "OpenAI Chat Completions": (OpenAIChat, ChatFormat()),
    "OpenAI Responses": (OpenAIResponses, ResponsesFormat()),
    "Gemini": (Gemini, GeminiFormat()),
    "Bedrock Converse": (BedrockConverse, BedrockFormat()),
}
STOP = StreamStop(reason=ReplyStop.END_TURN, usage=Usage(input_tokens=10, output_tokens=PIECES))
TEXT: tuple[StreamEvent, ...] = (*[StreamText(text="word")] * PIECES, STOP)
CALL: tuple[StreamEvent, ...] = (
    StreamCallStart(index=0, name="write_to_file", wire_id="c"),
    StreamCallArguments(index=0, text='{"content":"'),
    *[StreamCallArguments(index=0, text="word")] * PIECES,
    StreamCallArguments(index=0, text='"}'),
    StreamCallDone(index=0),
    STOP,
)


def written(form: WireFormat, events: tuple[StreamEvent, ...]) -> bytes:
    """The bytes of a reply."""
    writer = form.writer({"model": "m"}, Performance(number=0, usage=Usage(), steps=()))
    return writer.begin() + b"".join(map(writer.write, events))


def read(api: WireApi, body: bytes) -> int:
    """Read a reply as it would come from the network; gives the number of events."""
    decoder, reader = api.framing.decoder(1 << 30), api.reader()
    found = 0
    for start in range(0, len(body), CHUNK):
        for event in decoder.feed(body[start : start + CHUNK]):
            found += sum(1 for _ in reader.read(event))
    return found


def seconds(work: Callable[[], object]) -> float:
    """The least CPU time of some runs."""
    best = float("inf")
    for _ in range(RUNS):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def main() -> None:
    """Print one row for each wire API and kind of reply."""
    piece = json.dumps({"type": "delta", "index": 0, "delta": {"type": "text", "text": "word"}})
    bare = seconds(lambda: [json.loads(piece) for _ in range(PIECES)])
    print(f"{'bare json.loads of as many events':48} {bare:6.3f} s")
    for name, (make, form) in APIS.items():
        api = make(Endpoint(name="x", base_url="http://x"))
        for kind, events in (("text", TEXT), ("one call", CALL)):
            body = written(form, events)
            taken = seconds(lambda body=body, api=api: read(api, body))  # type: ignore[misc]
            print(f"{name + ', ' + kind:48} {taken:6.3f} s  {taken / bare:5.1f}x bare")


if __name__ == "__main__":
    main()
