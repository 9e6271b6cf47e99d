"""Reading a recorded reply again: the parsers of its tool protocol give the same calls, or the log was changed."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.context.focus import PROGRESS, with_progress
from treadle.engine.runtime.reply_reader import ReplyPiece, ReplyReader
from treadle.protocol.codec import encode
from treadle.protocol.events import CallProposed, OfferChanged, ReplyFinished
from treadle.protocol.messages import Message, RedactedThinking, Text, Thinking, ToolUse
from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
    ToolProtocol,
)
from treadle.protocol.sealed import system_text
from treadle.protocol.tools import Flow, ToolSpec

_MALFORMED = "The call was not run: "
"""How the problem of a native call begins whose JSON could not be read; the log does not hold that JSON."""
_REFUSED = "{name} cannot be used now: "
_HANDS_ON = "use_mcp_tool"
_OF_SERVERS = ("mcp__", _HANDS_ON, "search_mcp_tools", "access_mcp_resource")
"""How the names of tools begin that are there with their servers: of one that was not offered no log has more."""


class ReadAgain(Struct, frozen=True, kw_only=True):
    """What the parsers make of a recorded reply; of one that was cut there is no message."""

    calls: tuple[CallProposed, ...]
    message: Message
    hint: str = ""


class RecordedReply(Struct, frozen=True, kw_only=True):
    """What the log has of one reply; without `finished` it was cut, and the calls are all there is."""

    step: int
    attempt: int
    calls: tuple[CallProposed, ...] = ()
    finished: ReplyFinished | None = None


def recorded_replies(data: Sequence[object]) -> Mapping[tuple[int, int], RecordedReply]:
    """Put together what the events of a log say of each reply, by its step and attempt."""
    calls: dict[tuple[int, int], list[CallProposed]] = {}
    finished: dict[tuple[int, int], ReplyFinished] = {}
    for one in data:
        match one:
            case CallProposed(step=step, attempt=attempt):
                calls.setdefault((step, attempt), []).append(one)
            case ReplyFinished(step=step, attempt=attempt):
                finished[step, attempt] = one
            case _:
                pass
    return {
        key: RecordedReply(step=key[0], attempt=key[1], calls=tuple(calls.get(key, ())), finished=finished.get(key))
        for key in {**calls, **finished}
    }


def read_again(
    reply: RecordedReply, offer: OfferChanged, protocol: ToolProtocol, declared: Mapping[str, ToolSpec]
) -> ReadAgain:
    """Parse a recorded reply by the tools of its offer; `declared` are those that an offer does not hold itself."""
    known, refused, offered = _tools(reply, offer, declared)
    # A reply without calls was read as text, by a Treadle that may have known fewer notations than this one.
    reader = ReplyReader(
        known,
        protocol,
        step=reply.step,
        attempt=reply.attempt,
        refused=refused,
        offered=offered,
        recorded=bool(reply.calls),
    )
    found: list[CallProposed] = []
    for piece in _pieces(reply):
        found += (one for one in reader.feed(piece) if isinstance(one, CallProposed))
    found += (one for one in reader.finish() if isinstance(one, CallProposed))
    calls = tuple(_with_readings(_as_undeclared(_as_malformed(found, reply), reply, known), reply))
    return ReadAgain(calls=calls, message=reader.message(), hint=reader.hint())


def _tools(
    reply: RecordedReply, offer: OfferChanged, declared: Mapping[str, ToolSpec]
) -> tuple[Mapping[str, ToolSpec], Mapping[str, str], Container[str]]:
    """Give all tools of the session, those that could not be used, each with the reason, and those that were offered.

    In native calls the offer holds their declarations; in text calls its words name them. A question to nobody is
    never refused: it has a result of its own.
    """
    native = {spec.name: _in_order(spec, declared.get(spec.name)) for spec in offer.tools}
    known = {**declared, **native}
    words = system_text(offer.system)
    # A log that does not say what was offered, as one of schema 1, leaves nothing out.
    offered = set(native) or {name for name in known if f"<{name}>" in words} or set(known)
    refused = {name: "" for name, spec in known.items() if name not in offered and spec.traits.flow is not Flow.ASK}
    for proposed in reply.calls:
        name, problem = proposed.call.name, proposed.call.problem
        begins = _REFUSED.format(name=name)
        if name in refused and problem.startswith(begins):
            refused[name] = problem[len(begins) : -1]
    return known, refused, offered


def _in_order(logged: ToolSpec, own: ToolSpec | None) -> ToolSpec:
    """Give a declaration of the log; where ours is the same it has its parameters in order, which the log has not."""
    if own is not None and encode(own) == encode(logged):
        return own
    properties = logged.parameters.get("properties", {})
    if properties.get(PROGRESS) is None:
        return logged
    kept = {name: value for name, value in properties.items() if name != PROGRESS}
    return with_progress(replace(logged, parameters={**logged.parameters, "properties": kept}))


def _pieces(reply: RecordedReply) -> Iterator[ReplyPiece]:
    """Give a reply as it would have streamed; native calls end in the order of their numbers."""
    ends = {one.call.id: number for number, one in enumerate(reply.calls)}
    malformed = {one.call.id: one for one in reply.calls if one.call.problem.startswith(_MALFORMED)}
    waiting: dict[int, StreamCallDone] = {}
    ended = 0
    for index, block in enumerate(_blocks(reply)):
        match block:
            case Text(text=text):
                yield StreamText(text=text)
            case Thinking():
                yield StreamThinking(text=block.text)
                yield StreamThinkingDone(signature=block.signature, wire=block.wire, searched=block.searched)
            case RedactedThinking():
                yield StreamThinkingDone(redacted=block.data, wire=block.wire)
            case ToolUse(source=source) if source:
                yield StreamText(text=source)
                ended += 1
            case ToolUse():
                broken = malformed.get(block.id)
                name = "" if broken is not None and "no tool name" in broken.call.problem else block.name
                yield StreamCallStart(index=index, name=name, wire_id=block.wire_id)
                raw = "{" if broken is not None else msgspec.json.encode(block.arguments).decode()
                yield StreamCallArguments(index=index, text=raw)
                waiting[ends.get(block.id, index)] = StreamCallDone(index=index, wire=block.wire)
            case _:
                pass
        while ended in waiting:
            yield waiting.pop(ended)
            ended += 1


def _blocks(reply: RecordedReply) -> Sequence[object]:
    """Give the blocks of a reply; of one that was cut, its calls as native ones, which any protocol takes."""
    if reply.finished is not None:
        return reply.finished.message.content
    return tuple(
        ToolUse(
            id=one.call.id,
            name=one.call.name,
            arguments={**one.call.arguments, PROGRESS: one.progress} if one.progress else one.call.arguments,
        )
        for one in reply.calls
    )


def _as_malformed(found: Sequence[CallProposed], reply: RecordedReply) -> Iterator[CallProposed]:
    """Take what was wrong with a native call's JSON as it was recorded; the rest of the call is made anew."""
    cut = reply.finished is None
    problems = {one.call.id: one for one in reply.calls}
    for one in found:
        recorded = problems.get(one.call.id)
        broken = recorded is not None and recorded.call.problem.startswith(_MALFORMED) and one.call.problem
        if recorded is not None and broken and not one.call.arguments:
            one = replace(one, call=replace(one.call, problem=recorded.call.problem))  # noqa: PLW2901
        if recorded is not None and cut:
            one = replace(one, outside=recorded.outside)  # noqa: PLW2901
        yield one


def _as_undeclared(
    found: Iterable[CallProposed], reply: RecordedReply, known: Mapping[str, ToolSpec]
) -> Iterator[CallProposed]:
    """Take a call of a server's tool as it was recorded where neither the log nor this Treadle has its declaration."""
    recorded = {one.call.id: one for one in reply.calls}
    for one in found:
        then = recorded.get(one.call.id)
        same = then is not None and then.call.name == one.call.name and not then.call.problem
        if then is None or not same or one.call.name in known or not one.call.name.startswith(_OF_SERVERS):
            yield one
        else:
            yield replace(one, call=replace(one.call, problem=""), traits=then.traits)


def _with_readings(found: Iterable[CallProposed], reply: RecordedReply) -> Iterator[CallProposed]:
    """Take what was read of a call for the model as it was recorded, where the log has the call only as it was read.

    That is a native call: the log holds its arguments in the form of the tool. Of a call in the text it has the text;
    what was read of arguments that it hands on depends on tools of servers, whose schemas the log may not have.
    """
    recorded = {one.call.id: one.readings for one in reply.calls}
    texts = {one.id for one in _blocks(reply) if isinstance(one, ToolUse) and one.source}
    for one in found:
        read_here = one.call.id in texts and one.call.name != _HANDS_ON
        yield one if read_here else replace(one, readings=recorded.get(one.call.id, one.readings))
