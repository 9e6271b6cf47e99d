"""Histories of the engine in all their oddness, and providers that send them: what a real API has to take."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from tests.engine.exploring import TUI, Choose, World, walk

from treadle.app.models.model_notes import clip_thinking
from treadle.engine.core.machine_effects import CallModel, Effect
from treadle.protocol.events import EventData, Source
from treadle.protocol.limits import Limits
from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    Message,
    RedactedThinking,
    ResultContent,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    WireData,
)
from treadle.protocol.models import ModelRequest, ToolProtocol
from treadle.protocol.tools import Risk, ToolSpec, ToolTraits
from treadle.providers.anthropic_messages import AnthropicMessages
from treadle.providers.bedrock_converse import BedrockConverse
from treadle.providers.endpoint import Endpoint
from treadle.providers.gemini import Gemini
from treadle.providers.model_data import built_in_models
from treadle.providers.openai_chat import OpenAIChat
from treadle.providers.openai_responses import OpenAIResponses
from treadle.providers.provider_rows import ROWS, Wire
from treadle.providers.scripted.anthropic_rules import ANTHROPIC_BOOK
from treadle.providers.scripted.bedrock_rules import BEDROCK_BOOK
from treadle.providers.scripted.chat_rules import CHAT_BOOK
from treadle.providers.scripted.gemini_rules import GEMINI_BOOK
from treadle.providers.scripted.request_rules import WireRules
from treadle.providers.scripted.responses_rules import RESPONSES_BOOK
from treadle.providers.wire import WireApi

MAKERS: dict[Wire, Any] = {
    Wire.ANTHROPIC_MESSAGES: AnthropicMessages,
    Wire.OPENAI_CHAT: OpenAIChat,
    Wire.OPENAI_RESPONSES: OpenAIResponses,
    Wire.GEMINI: Gemini,
    Wire.BEDROCK_CONVERSE: BedrockConverse,
}
BOOKS: dict[Wire, WireRules] = {
    Wire.ANTHROPIC_MESSAGES: ANTHROPIC_BOOK,
    Wire.OPENAI_CHAT: CHAT_BOOK,
    Wire.OPENAI_RESPONSES: RESPONSES_BOOK,
    Wire.GEMINI: GEMINI_BOOK,
    Wire.BEDROCK_CONVERSE: BEDROCK_BOOK,
}
ROW = {row.name: row for row in ROWS}
PICTURE = Image(
    media_type="image/png",
    data="iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
)
PAPER = Document(media_type="application/pdf", data="JVBERi1QQVBFUg==", title="a paper: No. 1.pdf")


class Place(Struct, frozen=True):
    """A provider of the catalogue with a model of it, and under which name the doubles know what it refuses."""

    provider: str
    model: str
    vendor: str = ""

    @property
    def wire(self) -> Wire:
        return ROW[self.provider].wire

    def api(self) -> WireApi:
        row = ROW[self.provider]
        address = row.base_url or "https://a.example"
        made: WireApi = MAKERS[row.wire](Endpoint(name=row.name, base_url=address, api_key="k", quirks=row.quirks))
        return made

    def broken(self, body: Any) -> list[str]:
        """What its double has against a body; the model and the stream may stand in the path."""
        whole = {"model": self.model, "stream": True, **body}
        found = BOOKS[self.wire].broken(whole, self.vendor)
        return [f"{one.rule.what}: {one.said}" for one in found]


PLACES = (
    Place("anthropic", "claude-sonnet-4-5"),
    Place("anthropic", "claude-sonnet-4-5:1m"),
    Place("anthropic", "claude-opus-4-7"),
    Place("anthropic", "claude-opus-4-1"),
    Place("anthropic", "claude-3-5-haiku-20241022"),
    Place("vertex-anthropic", "claude-sonnet-4-5"),
    Place("minimax", "MiniMax-M2"),
    Place("openai", "gpt-5.5", "openai"),
    Place("openai", "gpt-4.1", "openai"),
    Place("azure", "gpt-5", "azure"),
    Place("xai-responses", "grok-4"),
    Place("openai-chat", "gpt-5.5", "openai"),
    Place("openai-chat", "gpt-5", "openai"),
    Place("openai-chat", "gpt-4.1", "openai"),
    Place("openai-compatible", "any"),
    Place("openai-compatible", "any", "alibaba"),
    Place("mistral", "mistral-large-latest", "mistral"),
    Place("deepseek", "deepseek-v4-flash", "deepseek"),
    Place("moonshot", "kimi-k2.6", "moonshot"),
    Place("groq", "openai/gpt-oss-120b", "groq"),
    Place("openrouter", "anthropic/claude-sonnet-4.5", "openrouter"),
    Place("gemini", "gemini-2.5-pro"),
    Place("gemini", "gemini-2.5-flash-lite"),
    Place("gemini", "gemini-3-pro-preview"),
    Place("vertex", "gemini-3-flash-preview", "vertex"),
    Place("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    Place("bedrock", "us.meta.llama4-maverick-17b-instruct-v1:0"),
    Place("bedrock", "amazon.nova-pro-v1:0"),
    Place("bedrock", "mistral.mistral-large-2407-v1:0"),
)
_TEXTS = ("Yes.", "Let me look.\n", "ends with blanks  ", " ", "\n\n", "ünïcode 🦊", "x" * 300)
_NAMES = ("read_file", "read_file", "default_api:read_file", "read file", "lese.datei", "n" * 90, "nameless_tool")
_RESULTS = ("print(1)", "", "  \n", "no such file", "y" * 400)


def _ids(jitter: random.Random, number: int) -> str:
    """An id as one of many providers gives it, or none."""
    return jitter.choice(
        (
            "",
            f"toolu_01{number:022}",
            f"call_{number:024}",
            f"tooluse_{number}",
            f"a{number:08}",
            f"functions.read_file:{number}",
            f"call_{number}__thought__" + "QUJD" * 40,
            f"chatcmpl-tool-{number:032}",
            f"rätsel {number}",
        )
    )


def _wires(jitter: random.Random, home: Place) -> WireData | None:
    """What reasoning or a call came with, from any of the places, often from the one where the session is."""
    place = jitter.choice((home, jitter.choice(PLACES)))
    api = {
        Wire.ANTHROPIC_MESSAGES: "anthropic_messages",
        Wire.OPENAI_CHAT: "openai_chat",
        Wire.OPENAI_RESPONSES: "openai_responses",
        Wire.GEMINI: "gemini",
        Wire.BEDROCK_CONVERSE: "bedrock_converse",
    }[place.wire]
    data: dict[str, Any] = {}
    if place.wire is Wire.OPENAI_CHAT:
        fields = ("reasoning",) if place.provider == "groq" else ("reasoning_content", "reasoning")
        data = {"field": jitter.choice(fields)}
    if place.wire is Wire.OPENAI_RESPONSES:
        number = f"{jitter.randrange(1 << 40):x}"
        data = {
            "item": {
                "type": "reasoning",
                "id": jitter.choice((f"rs_{number}", number + "0" * 400)),
                "summary": [],
                "encrypted_content": "gAAA",
            }
        }
    if place.wire is Wire.GEMINI:
        data = jitter.choice(({}, {"thoughtSignature": "QUJDRA=="}))
    return jitter.choice((None, WireData(api=f"{api}:{place.provider}", data=data)))


def _attached(jitter: random.Random) -> tuple[ResultContent, ...]:
    texts = (Text(text=jitter.choice(_RESULTS)),)
    return jitter.choice((texts, texts, (*texts, PICTURE), (PICTURE,), (PAPER,), ()))


class Decorator:
    """Makes the plain messages of the engine's tests into those that models, tools and persons really make."""

    def __init__(self, jitter: random.Random, home: Place) -> None:
        self._jitter = jitter
        self._home = home
        self._ids: dict[str, tuple[str, str]] = {}

    def message(self, message: Message) -> Message:
        blocks = [one for block in message.content for one in self._block(block, message.role)]
        return replace(message, content=(*self._before(message.role), *blocks, *self._after(message.role)))

    def _before(self, role: Role) -> list[ContentBlock]:
        if role is Role.USER or self._jitter.random() < 0.4:
            return []
        wire = _wires(self._jitter, self._home)
        thought = Thinking(text="Hm.", signature=self._jitter.choice(("", "c2lnbmVk")), wire=wire)
        return [self._jitter.choice((thought, thought, RedactedThinking(data="ZGF0YQ==", wire=wire)))]

    def _after(self, role: Role) -> list[ContentBlock]:
        if role is Role.ASSISTANT:
            return [Text(text=self._jitter.choice(_TEXTS))] if self._jitter.random() < 0.2 else []
        return [self._jitter.choice((PICTURE, PAPER))] if self._jitter.random() < 0.2 else []

    def _block(self, block: ContentBlock, role: Role) -> Iterator[ContentBlock]:
        match block:
            case Text() if role is Role.ASSISTANT and self._jitter.random() < 0.5:
                if self._jitter.random() < 0.1:
                    yield Thinking(text="Or not.", signature="c2lnbmVk", wire=_wires(self._jitter, self._home))
                yield Text(text=self._jitter.choice(_TEXTS))
            case ToolUse():
                wire_id = _ids(self._jitter, len(self._ids))
                self._ids[block.id] = (wire_id, self._jitter.choice(_NAMES))
                if self._jitter.random() < 0.2:
                    yield Text(text="And then:")
                wire = _wires(self._jitter, self._home)
                yield replace(block, wire_id=wire_id, name=self._ids[block.id][1], wire=wire)
            case ToolResult():
                wire_id, name = self._ids.get(block.call_id, ("", block.name))
                yield replace(
                    block,
                    wire_id=wire_id,
                    name=name,
                    content=_attached(self._jitter),
                    is_error=self._jitter.random() < 0.4,
                )
            case _:
                yield block


@dataclass
class Listening(World):
    """A world that keeps the conversation of every request to its model."""

    asked: list[tuple[Message, ...]] = field(default_factory=list)

    def take(self, data: EventData, source: Source = TUI) -> tuple[Effect, ...]:
        effects = super().take(data, source)
        if any(isinstance(effect, CallModel) for effect in effects):
            self.asked.append(tuple(self.transcript.messages(ToolProtocol.NATIVE)))
        return effects

    def outcomes(self, effect: Effect, choice: Choose) -> EventData | None:
        """Let most replies come: histories grow long only so."""
        if isinstance(effect, CallModel) and choice([True] * 5 + [False]):
            return self.reply(effect.step, effect.attempt)
        return super().outcomes(effect, choice)


@cache
def sessions(seed: int) -> tuple[tuple[Message, ...], ...]:
    """The conversations of one random session as its model gets them: denied, cut, compacted, interrupted."""
    world = Listening(limits=Limits(max_steps=30, max_retries=2))
    walk(random.Random(seed), world.limits, longest=250, world=world)
    return tuple(world.asked[-6:])


def histories(seed: int, home: Place) -> list[tuple[Message, ...]]:
    """The same with what models, tools and persons really say, at `home` and elsewhere."""
    decorator = Decorator(random.Random(seed), home)
    known: dict[int, Message] = {}

    def decorated(message: Message) -> Message:
        if id(message) not in known:
            known[id(message)] = decorator.message(message)
        return known[id(message)]

    return [tuple(map(decorated, messages)) for messages in sessions(seed)]


def tool(name: str, description: str, schema: dict[str, Any]) -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters=schema, traits=ToolTraits(), risk=Risk.READ)


TOOLS = (
    tool("read_file", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    tool("odd", "", {"oneOf": [{"type": "object", "properties": {"a b": {"type": "array"}}}], "$comment": "x"}),
    tool("choice", " ", {"type": "object", "properties": {"kind": {"type": "string", "enum": ["a", ""]}}}),
)


def asked(messages: Sequence[Message], place: Place, jitter: random.Random) -> ModelRequest:
    """A request with a history, as the engine makes it of any settings: within what the catalogue knows of a model."""
    spec = built_in_models().spec(ROW[place.provider], place.model.removesuffix(":1m"))
    wanted = jitter.choice((None, 0, 100, 2_000, 60_000))
    thinking, _ = clip_thinking(spec, wanted, known=True)
    limits = [spec.max_output] if spec.max_output else [None, 9_000]
    room = jitter.choice((*limits, *limits, 1_500, 8))
    if thinking and room is not None and (thinking := min(thinking, room - 1_024)) < 1_024:
        thinking = None
    return ModelRequest(
        id="r",
        model=place.model,
        system=jitter.choice(("Be brief.", "", " ")),
        messages=tuple(messages),
        tools=TOOLS,
        max_tokens=room,
        thinking_budget=thinking,
    )
