"""One reply as it streams: deltas for the surfaces, whole calls for the loop, the message for the log."""

import difflib
from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from treadle.context.focus import PROGRESS, has_progress
from treadle.parsing import (
    CallComplete,
    CallOpened,
    ContentDelta,
    InventedResults,
    Malformation,
    NativeReader,
    ParameterDelta,
    ParserEvent,
    ReasoningDelta,
    ReasoningSplitter,
    ToolGrammar,
    XmlReader,
    coerced,
    foreign_call,
    grammar_of,
    meant_calls,
    near_tool,
    own_parameters,
    unopened_reasoning,
    validate_arguments,
    written_calls,
)
from treadle.parsing.aliases import USE_OF_SERVER, tool_of_server
from treadle.parsing.native import one_object
from treadle.parsing.readings import Reading
from treadle.protocol.events import CallProposed
from treadle.protocol.messages import (
    ContentBlock,
    Message,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolUse,
    WireData,
    text_of,
)
from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
    StreamUsage,
    ToolProtocol,
)
from treadle.protocol.notifications import CallDelta, TextDelta, ThinkingDelta
from treadle.protocol.tools import ToolCall, ToolSpec, ToolTraits

LiveDelta: TypeAlias = TextDelta | ThinkingDelta | CallDelta
ReplyPiece: TypeAlias = (
    StreamText
    | StreamThinking
    | StreamThinkingDone
    | StreamCallStart
    | StreamCallArguments
    | StreamCallDone
    | StreamUsage
)


_NAMELESS = "nameless_tool"
"""Stands for the name of a call that came without one: every wire API wants some name in the history."""

_FIRST_NATIVE = 2**32

_LONGEST_SCHEMA = 16_000
"""Characters of a schema that a model is answered with."""


class ReplyReader:
    """Reads the stream of one reply in either tool protocol. `refused` names tools that cannot be used now, and why.

    `offered` are those that the model was told of, all where None is given: a call of another one by its right name is
    read, and where its arguments do not fit it is answered with its schema.
    Of a reply that was `recorded`, its reasoning is told apart already, and that says whether it had calls: one without
    them has none in the notation of another model either.
    """

    def __init__(
        self,
        tools: Mapping[str, ToolSpec],
        protocol: ToolProtocol,
        *,
        step: int,
        attempt: int,
        refused: Mapping[str, str] = MappingProxyType({}),
        offered: Container[str] | None = None,
        recorded: bool | None = None,
    ) -> None:
        self._tools = tools
        self._refused = refused
        self._offered = tools if offered is None else offered
        self._usable = tuple(name for name in tools if name not in refused)
        self._recorded = recorded
        self._step = step
        self._attempt = attempt
        self._xml = XmlReader(self._grammars, reasoning_tags=True) if protocol is ToolProtocol.XML else None
        # Some gateways turn XML calls into native ones by themselves: these are numbered apart from those in the text.
        self._first_native = _FIRST_NATIVE if self._xml else 0
        self._splitter = ReasoningSplitter()
        self._native = NativeReader()
        self._content: list[ContentBlock] = []
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._names: dict[int, str] = {}
        self._positions: dict[int, int] = {}
        self._calls = 0
        self._searched = False
        self._invented = InventedResults(tuple(tools))
        self._ended = False
        """Whether the model went on with a result that it invented: nothing from there on is part of the reply."""

    @cached_property
    def _grammars(self) -> list[ToolGrammar]:
        """What calls look like in a text; a reply with native calls hardly ever needs it."""
        return [grammar_of(spec.name, spec.parameters, aliases=True) for spec in self._tools.values()]

    def feed(self, piece: ReplyPiece) -> list[LiveDelta | CallProposed]:
        """Take the next piece of the stream."""
        match piece:
            case StreamText(text=text):
                return self._take(self._xml.feed(text) if self._xml else self._splitter.feed(text))
            case StreamThinking(text=text):
                return self._take([ReasoningDelta(text)])
            case StreamThinkingDone():
                self._searched = self._searched or piece.searched
                self._end_thinking(piece.signature, piece.redacted, piece.wire, searched=piece.searched)
                return []
            case StreamCallStart(index=index, name=name, wire_id=wire_id):
                if self._ended:
                    return []
                return self._start_native(self._first_native + index, name, wire_id)
            case StreamCallArguments(index=index, text=text):
                index += self._first_native
                return [] if self._is_dropped(index) else self._take(self._native.feed(index, text))
            case StreamCallDone(index=index, wire=wire):
                return self._end_native(self._first_native + index, wire)
            case StreamUsage():
                return []

    def finish(self) -> list[LiveDelta | CallProposed]:
        """Take the end of the stream."""
        found = self._take(self._xml.finish() if self._xml else self._splitter.finish())
        found += self._take(self._native.finish())
        self._end_thinking("", "", None)
        self._end_text()
        found += self._from_text()
        self._tell_reasoning_apart()
        return found

    def _tell_reasoning_apart(self) -> None:
        """Take for reasoning what nothing opened as such, if there is more than that in the reply."""
        first = self._content[0] if self._content else None
        if (
            self._recorded is not None
            or not isinstance(first, Text)
            or any(isinstance(one, Thinking) for one in self._content)
        ):
            return
        parts = unopened_reasoning(first.text)
        if parts is None or not (parts[1].strip() or len(self._content) > 1):
            return
        told = [Thinking(text=parts[0])] if parts[0].strip() else []
        self._content[:1] = [*told, *([Text(text=parts[1])] if parts[1].strip() else [])]

    def _from_text(self) -> list[CallProposed]:
        """Take the calls of a reply that has them only in its text, if they are right as calls of tools in use."""
        last = self._content[-1] if self._content else None
        if self._recorded is False or self._calls or self._ended or not isinstance(last, Text):
            return []
        if "<" not in last.text and "{" not in last.text:
            return []
        several = sum(isinstance(block, Text) for block in self._content) > 1
        written = written_calls(last.text, self._grammars)
        if written is None or (several and not written.before) or not all(map(self._is_right, written.calls)):
            return []
        self._content.pop()
        if written.before.strip():
            self._content.append(Text(text=written.before))
        native = self._xml is None
        return [self._complete(msgspec.structs.replace(one, source="") if native else one) for one in written.calls]

    def _is_right(self, block: CallComplete) -> bool:
        name, given, _ = self._meant(block.name, block.arguments)
        spec = self._tools.get(name)
        return (
            name in self._usable
            and name in self._offered
            and spec is not None
            and not validate_arguments(spec.parameters, self._own(spec, given))
        )

    def message(self) -> Message:
        """Give the whole message; only after `finish`."""
        return Message(role=Role.ASSISTANT, content=tuple(self._content))

    def hint(self) -> str:
        """Say how to write the call that a reply without calls holds in another notation; only after `finish`."""
        text = "" if self._calls else text_of(tuple(self._content))
        return foreign_call(text, self._grammars, native=self._xml is None) if text else ""

    def partial(self) -> Message | None:
        """Give the text that was read so far, for a reply that is cut by the user."""
        self._end_text()
        texts = tuple(block for block in self._content if isinstance(block, Text))
        return Message(role=Role.ASSISTANT, content=texts) if texts else None

    def _take(self, blocks: Sequence[ParserEvent]) -> list[LiveDelta | CallProposed]:
        found: list[LiveDelta | CallProposed] = []
        for block in blocks:
            if self._ended and (isinstance(block, ContentDelta | ReasoningDelta) or block.index not in self._positions):
                continue
            match block:
                case ContentDelta(text=text):
                    self._end_thinking("", "", None)
                    self._text.append(text)
                    if self._calls or self._positions:
                        self._cut(self._invented.feed(text))
                    found.append(TextDelta(text=text))
                case ReasoningDelta(text=text):
                    self._end_text()
                    self._thinking.append(text)
                    found.append(ThinkingDelta(text=text))
                case CallOpened(index=index, name=name):
                    self._names[index] = name
                    found.append(CallDelta(index=index, name=name))
                case ParameterDelta(index=index, name=name, text=text):
                    found.append(CallDelta(index=index, name=self._names.get(index, ""), parameter=name, text=text))
                case CallComplete():
                    found.append(self._complete(block))
                case Malformation():
                    found.append(self._malformed(block))
        return found

    def _cut(self, characters: int) -> None:
        """Take the last characters of the text back, if any, and what comes behind them."""
        if characters:
            self._ended = True
            self._text = ["".join(self._text)[:-characters]]

    def _is_dropped(self, index: int) -> bool:
        """Whether the call came behind the end of the reply."""
        return self._ended and index not in self._positions

    def _end_text(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text.strip():
            self._content.append(Text(text=text))

    def _end_thinking(self, signature: str, redacted: str, wire: WireData | None, *, searched: bool = False) -> None:
        text = "".join(self._thinking)
        self._thinking.clear()
        if redacted:
            self._content.append(RedactedThinking(data=redacted, wire=wire))
        elif text or signature or wire:
            self._content.append(Thinking(text=text, signature=signature, wire=wire, searched=searched))

    def _start_native(self, index: int, name: str, wire_id: str) -> list[LiveDelta | CallProposed]:
        self._end_thinking("", "", None)
        self._end_text()
        self._positions[index] = len(self._content)
        self._content.append(ToolUse(id="", name=name, arguments={}, wire_id=wire_id))
        return self._take(self._native.start(index, wire_id, name))

    def _end_native(self, index: int, wire: WireData | None) -> list[LiveDelta | CallProposed]:
        found = self._take(self._native.end(index))
        position = self._positions.get(index)
        use = self._content[position] if position is not None else None
        if wire is not None and position is not None and isinstance(use, ToolUse):
            self._content[position] = ToolUse(
                id=use.id, name=use.name, arguments=use.arguments, wire_id=use.wire_id, wire=wire
            )
        return found

    def _complete(self, block: CallComplete) -> CallProposed:
        name, given, read = self._meant(block.name, block.arguments)
        spec = self._tools.get(name)
        if spec is None:
            return self._propose(block, dict(given), self._unknown(name))
        readings = [*block.readings, *read]
        arguments = self._own(spec, given, readings, texts=self._is_of_texts(block))
        if name == USE_OF_SERVER:
            self._read_handed_on(arguments, readings)
        progress = arguments.pop(PROGRESS, "") if has_progress(spec) else ""
        problem = " ".join(validate_arguments(spec.parameters, arguments))
        if name in self._refused:
            problem = f"{name} cannot be used now: {self._refused[name]}."
        elif problem and name not in self._offered:
            schema = msgspec.json.encode(spec.parameters).decode()[:_LONGEST_SCHEMA]
            problem = f"{problem} The schema of the arguments of {name}: {schema}"
        block = msgspec.structs.replace(block, name=name, readings=tuple(readings))
        return self._propose(block, arguments, problem, progress)

    def _read_handed_on(self, arguments: Mapping[str, Any], readings: list[Reading]) -> None:
        """Note what has to be read of the JSON for the tool of a server; its call reads it again when it is judged."""
        given = one_object(str(arguments.get("arguments", "")), readings)
        spec = self._tools.get(tool_of_server(arguments, self._tools))
        if given is not None and spec is not None:
            self._own(spec, given, readings)

    def _is_of_texts(self, block: CallComplete) -> bool:
        """Whether the notation of a call has texts only: tags, and no JSON."""
        if block.readings:
            return Reading.TAGGED_CALL in block.readings
        return self._xml is not None and block.index not in self._positions

    def _own(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        readings: list[Reading] | None = None,
        *,
        texts: bool = False,
    ) -> dict[str, Any]:
        """Give the arguments as the tool declares them, wherever it is certain what was meant."""
        return coerced(spec.parameters, own_parameters(spec.parameters, arguments, readings), readings, texts=texts)

    def _meant(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], Sequence[Reading]]:
        """Find the tool that is called. By another name the call has to be right as a call of the tool it means."""
        if name in self._usable:
            return name, arguments, ()
        for tool, given, readings in meant_calls(name, arguments, self._usable):
            spec = self._tools[tool]
            if not validate_arguments(spec.parameters, self._own(spec, given)):
                return tool, given, readings
        return name, arguments, ()

    def _malformed(self, block: Malformation) -> CallProposed:
        return self._propose(block, {}, block.message)

    def _propose(
        self, block: CallComplete | Malformation, arguments: dict[str, object], problem: str, progress: object = ""
    ) -> CallProposed:
        self._calls += 1
        self._invented.begin()
        call_id = f"call_{self._step}_{self._attempt}_{self._calls}"
        self._place(block, call_id, {**arguments, PROGRESS: progress} if progress else arguments)
        spec = self._tools.get(block.name)
        return CallProposed(
            step=self._step,
            attempt=self._attempt,
            call=ToolCall(id=call_id, name=block.name or _NAMELESS, arguments=arguments, problem=problem),
            traits=spec.traits if spec is not None else ToolTraits(),
            progress=progress if isinstance(progress, str) else "",
            outside=self._searched,
            readings=tuple(dict.fromkeys(one.value for one in block.readings))
            if isinstance(block, CallComplete)
            else (),
        )

    def _place(self, block: CallComplete | Malformation, call_id: str, arguments: dict[str, object]) -> None:
        position = self._positions.get(block.index) if block.index is not None else None
        if position is None:
            self._end_text()
            self._content.append(ToolUse(id=call_id, name=block.name, arguments=arguments, source=block.source))
            return
        use = self._content[position]
        wire_id = use.wire_id if isinstance(use, ToolUse) else ""
        self._content[position] = ToolUse(
            id=call_id, name=block.name or _NAMELESS, arguments=arguments, wire_id=wire_id
        )

    def _unknown(self, name: str) -> str:
        near = near_tool(name, self._usable)
        if near:
            return f"There is no tool named {name!r}. Use {near}, whose parameters are: {self._usage(near)}."
        close = difflib.get_close_matches(name, self._usable, n=3)
        told = ", ".join(tool for tool in self._usable if tool in self._offered)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"Use one of: {told}."
        return f"There is no tool named {name!r}. {hint}"

    def _usage(self, tool: str) -> str:
        grammar = next(grammar for grammar in self._grammars if grammar.name == tool)
        optional = (f'"{name}" (optional)' for name in grammar.parameters if name not in (*grammar.required, PROGRESS))
        return ", ".join((*(f'"{name}"' for name in grammar.required), *optional)) or "none"
