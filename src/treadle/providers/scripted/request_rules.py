"""Rules: what a real API refuses of a request, each with where that is known from, and what the rules need of one."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, TypeAlias

from msgspec import Struct

from treadle.providers.scripted.refused_schemas import ToolRules
from treadle.providers.wire import decode_json, dump

Body: TypeAlias = Mapping[str, Any]
SentBlock: TypeAlias = dict[str, Any]
CheckedTool: TypeAlias = tuple[object, object, object]
"""Name, description and schema, as they were sent."""

_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
DOCUMENT_FORMATS = frozenset({"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"})
"""What Converse calls the kinds of documents."""

_OWN = frozenset({"input", "args", "arguments"})
"""Below these keys stands what the model says."""

_KEPT_TOOL_LISTS = 64


class Medium(Struct, frozen=True, kw_only=True):
    """An image or document of a request: its type as sent, and its base64."""

    kind: str
    data: str

    @property
    def is_image(self) -> bool:
        """Whether it is an image."""
        return self.kind.startswith("image/")


class CheckedMessage(Struct, frozen=True, kw_only=True):
    """One message of a request: the words for its place, whose it is, and its blocks."""

    where: str
    role: str
    blocks: Sequence[SentBlock]

    def of(self, *kinds: str) -> list[SentBlock]:
        """Those of its blocks that are of these kinds."""
        return [block for block in self.blocks if kind_of(block) in kinds]


class CheckedRequest:
    """A request as the rules look at it. What several of them need is found once."""

    def __init__(self, body: Body, turns: Sequence[CheckedMessage], tools: Sequence[CheckedTool] = ()) -> None:
        self.body = body
        self.turns = turns
        self.tools = tools
        self.model = str(body.get("model"))

    @cached_property
    def media(self) -> list[Medium]:
        """Every image and document of the conversation."""
        return [medium for turn in self.turns for block in turn.blocks for medium in media_of(block)]

    @cached_property
    def blocks(self) -> dict[str, list[tuple[CheckedMessage, SentBlock]]]:
        """The blocks of the conversation by their kind."""
        found: dict[str, list[tuple[CheckedMessage, SentBlock]]] = {}
        for turn in self.turns:
            for block in turn.blocks:
                found.setdefault(kind_of(block), []).append((turn, block))
        return found

    def of(self, *kinds: str) -> list[tuple[CheckedMessage, SentBlock]]:
        """The blocks of these kinds, each with its message."""
        return [found for kind in kinds for found in self.blocks.get(kind, ())]

    @cached_property
    def tools_as_json(self) -> bytes:
        """The declared tools; what was found wrong with a list of them is kept under this."""
        return dump(self.tools)


RequestCheck: TypeAlias = Callable[[CheckedRequest], Iterator[str]]


class RequestRule(Struct, frozen=True, kw_only=True):
    """One thing that an API refuses, with the status and the code of its answer.

    `source` says where that is known from, and of which month. `models` is found in the names of the models concerned;
    empty, they are all. `vendors` are those who refuse it where others who speak the same API do not; empty, all do.
    A rule that is not `usual` applies only where one of its vendors is asked for by name.
    """

    what: str
    source: str
    check: RequestCheck
    status: int = 400
    code: str = ""
    models: str = ""
    vendors: tuple[str, ...] = ()
    usual: bool = True

    def applies(self, model: str, vendor: str) -> bool:
        """Whether a vendor refuses this with this model; without a vendor, whether the scripted servers do."""
        of_vendor = not self.vendors or vendor in self.vendors if vendor else self.usual
        return of_vendor and (not self.models or re.search(self.models, model) is not None)


class Broken(Struct, frozen=True, kw_only=True):
    """A rule that a request breaks, and how."""

    rule: RequestRule
    said: str


def broken_rules(rules: Sequence[RequestRule], request: CheckedRequest, vendor: str = "") -> list[Broken]:
    """Say which rules a request breaks, in their order."""
    applying = [rule for rule in rules if rule.applies(request.model, vendor)]
    return [Broken(rule=rule, said=said) for rule in applying for said in rule.check(request)]


def kind_of(block: SentBlock) -> str:
    """The kind of a block: what it says of itself, or its one key."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else next(iter(block), "")


def media_of(value: object) -> Iterator[Medium]:
    """Give every image and document of a block, in whatever form an API has them."""
    match value:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            yield Medium(kind=kind, data=data)
        case {"mimeType": str(kind), "data": str(data)}:
            yield Medium(kind=kind, data=data)
        case {"format": str(kind), "source": {"bytes": str(data)}}:
            yield Medium(kind=f"{'application' if kind in DOCUMENT_FORMATS else 'image'}/{kind}", data=data)
        case {"url": str(url)} | {"image_url": str(url)} | {"file_data": str(url)} if found := _DATA_URL.match(url):
            yield Medium(kind=found[1], data=found[2])
        case _:
            for one in _inside(value):
                yield from media_of(one)


def _inside(value: object) -> list[object]:
    """The objects and lists in an object or a list, but for what the model says."""
    if isinstance(value, dict):
        return [one for key, one in value.items() if type(one) in (dict, list) and key not in _OWN]
    return [one for one in value if type(one) in (dict, list)] if isinstance(value, list) else []


def decoded(medium: Medium) -> bytes | None:
    """The bytes of an image or document; None where its base64 cannot be read."""
    try:
        return base64.b64decode(medium.data, validate=True)
    except (binascii.Error, ValueError):
        return None


def is_object(text: object) -> bool:
    """Whether a text is a JSON object, as the arguments of a call must be."""
    try:
        return isinstance(text, str) and isinstance(decode_json(text), dict)
    except ValueError:
        return False


def unknown_fields(known: frozenset[str], says: str) -> RequestCheck:
    """Make the check of a body's own fields; `says` has a place for the name."""

    def check(request: CheckedRequest) -> Iterator[str]:
        for name in request.body:
            if name not in known:
                yield says.format(name)

    return check


def rows_of_tools(rules: ToolRules, *, models: str = "") -> tuple[RequestRule, ...]:
    """Make a rule of each thing that an API refuses of declared tools."""
    return tuple(
        RequestRule(what=what, source=source, check=partial(_said_of_tools, rules, what), models=models)
        for what, source in rules.rows()
    )


def _said_of_tools(rules: ToolRules, what: str, request: CheckedRequest) -> Iterator[str]:
    if request.tools:
        yield from (said for found, said in _checked_tools(rules, request.tools_as_json) if found == what)


@lru_cache(maxsize=_KEPT_TOOL_LISTS)
def _checked_tools(rules: ToolRules, tools: bytes) -> tuple[tuple[str, str], ...]:
    """Look at a list of tools once, however many requests have it."""
    return tuple(found for tool in decode_json(tools) for found in rules.findings(*tool))


def shape_rules(messages: str) -> tuple[RequestRule, ...]:
    """Make the rules without which the others cannot look at a body: a model and messages."""

    def model(request: CheckedRequest) -> Iterator[str]:
        if not isinstance(request.body.get("model"), str) or not request.body["model"]:
            yield "model: a name is required"

    def objects(request: CheckedRequest) -> Iterator[str]:
        listed = request.body.get(messages)
        if not isinstance(listed, list) or not listed:
            yield f"{messages}: at least one is required"
        elif not all(isinstance(message, dict) for message in listed):
            yield f"{messages}: each must be an object"

    source = "the reference of each API, 2025-11"
    return (
        RequestRule(what="a model", source=source, check=model),
        RequestRule(what="messages", source=source, check=objects),
    )


def _streams(request: CheckedRequest) -> Iterator[str]:
    if request.body.get("stream") is not True:
        yield "stream: the scripted server only streams"


STREAM = RequestRule(what="a stream", source="the scripted server gives nothing else", check=_streams)


class WireRules(Struct, frozen=True, kw_only=True):
    """All rules of one wire format: those of its shape, and those that look at what `read` makes of a body."""

    shape: tuple[RequestRule, ...]
    rules: tuple[RequestRule, ...]
    read: Callable[[Body], CheckedRequest]

    def broken(self, body: Body, vendor: str = "") -> list[Broken]:
        """Say which rules a body breaks."""
        found = broken_rules(self.shape, CheckedRequest(body, ()), vendor)
        return found or broken_rules((STREAM, *self.rules), self.read(body), vendor)

    def rows(self) -> tuple[RequestRule, ...]:
        """All of its rules."""
        return (*self.shape, STREAM, *self.rules)
