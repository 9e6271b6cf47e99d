"""One reply as it streams: deltas for the surfaces, whole calls for the loop, the message for the log."""

import difflib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from treadle.context.focus import PROGRESS, has_progress
from treadle.parsing import (
    Block,
    CallComplete,
    CallStarted,
    Malformation,
    NativeReader,
    ParameterDelta,
    ReasoningDelta,
    ReasoningSplitter,
    XmlReader,
    grammar_of,
    typed_arguments,
    validate_arguments,
)
from treadle.parsing import (
    TextDelta as ParsedText,
)
from treadle.protocol.events import CallProposed
from treadle.protocol.messages import ContentBlock, Message, RedactedThinking, Role, Text, Thinking, ToolUse, WireData
from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
    ToolProtocol,
)
from treadle.protocol.notifications import CallDelta, TextDelta, ThinkingDelta
from treadle.protocol.tools import ToolCall, ToolSpec, ToolTraits

Delta: TypeAlias = TextDelta | ThinkingDelta | CallDelta
Piece: TypeAlias = (
    StreamText | StreamThinking | StreamThinkingDone | StreamCallStart | StreamCallArguments | StreamCallDone
)


_NAMELESS = "nameless_tool"
"""Stands for the name of a call that came without one: every wire API wants some name in the history."""


class ReplyReader:
    """Reads the stream of one reply in either tool protocol. `refused` names tools that cannot be used now, and why."""

    def __init__(
        self,
        tools: Mapping[str, ToolSpec],
        protocol: ToolProtocol,
        *,
        step: int,
        attempt: int,
        refused: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._tools = tools
        self._refused = refused
        self._step = step
        self._attempt = attempt
        grammars = [grammar_of(spec.name, spec.parameters) for spec in tools.values()]
        self._xml = XmlReader(grammars, reasoning_tags=True) if protocol is ToolProtocol.XML else None
        self._splitter = ReasoningSplitter()
        self._native = NativeReader()
        self._content: list[ContentBlock] = []
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._names: dict[int, str] = {}
        self._positions: dict[int, int] = {}
        self._calls = 0
        self._searched = False

    def feed(self, piece: Piece) -> list[Delta | CallProposed]:
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
                return self._start_native(index, name, wire_id)
            case StreamCallArguments(index=index, text=text):
                return self._take(self._native.feed(index, text))
            case StreamCallDone(index=index, wire=wire):
                return self._end_native(index, wire)

    def finish(self) -> list[Delta | CallProposed]:
        """Take the end of the stream."""
        found = self._take(self._xml.finish() if self._xml else self._splitter.finish())
        found += self._take(self._native.finish())
        self._end_thinking("", "", None)
        self._end_text()
        return found

    def message(self) -> Message:
        """Give the whole message; only after `finish`."""
        return Message(role=Role.ASSISTANT, content=tuple(self._content))

    def partial(self) -> Message | None:
        """Give the text that was read so far, for a reply that is cut by the user."""
        self._end_text()
        texts = tuple(block for block in self._content if isinstance(block, Text))
        return Message(role=Role.ASSISTANT, content=texts) if texts else None

    def _take(self, blocks: Sequence[Block]) -> list[Delta | CallProposed]:
        found: list[Delta | CallProposed] = []
        for block in blocks:
            match block:
                case ParsedText(text=text):
                    self._end_thinking("", "", None)
                    self._text.append(text)
                    found.append(TextDelta(text=text))
                case ReasoningDelta(text=text):
                    self._end_text()
                    self._thinking.append(text)
                    found.append(ThinkingDelta(text=text))
                case CallStarted(index=index, name=name):
                    self._names[index] = name
                    found.append(CallDelta(index=index, name=name))
                case ParameterDelta(index=index, name=name, text=text):
                    found.append(CallDelta(index=index, name=self._names.get(index, ""), parameter=name, text=text))
                case CallComplete():
                    found.append(self._complete(block))
                case Malformation():
                    found.append(self._malformed(block))
        return found

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

    def _start_native(self, index: int, name: str, wire_id: str) -> list[Delta | CallProposed]:
        self._end_thinking("", "", None)
        self._end_text()
        self._positions[index] = len(self._content)
        self._content.append(ToolUse(id="", name=name, arguments={}, wire_id=wire_id))
        return self._take(self._native.start(index, wire_id, name))

    def _end_native(self, index: int, wire: WireData | None) -> list[Delta | CallProposed]:
        found = self._take(self._native.end(index))
        position = self._positions.get(index)
        use = self._content[position] if position is not None else None
        if wire is not None and position is not None and isinstance(use, ToolUse):
            self._content[position] = ToolUse(
                id=use.id, name=use.name, arguments=use.arguments, wire_id=use.wire_id, wire=wire
            )
        return found

    def _complete(self, block: CallComplete) -> CallProposed:
        spec = self._tools.get(block.name)
        arguments, problems = dict(block.arguments), []
        progress = arguments.pop(PROGRESS, "") if spec is not None and has_progress(spec) else ""
        if spec is None:
            problems = [self._unknown(block.name)]
        elif block.name in self._refused:
            problems = [f"{block.name} cannot be used now: {self._refused[block.name]}."]
        else:
            if self._xml is not None:
                arguments, problems = typed_arguments(spec.parameters, arguments)
            problems = problems or validate_arguments(spec.parameters, arguments)
        return self._propose(block, arguments, " ".join(problems), progress)

    def _malformed(self, block: Malformation) -> CallProposed:
        return self._propose(block, {}, block.message)

    def _propose(
        self, block: CallComplete | Malformation, arguments: dict[str, object], problem: str, progress: object = ""
    ) -> CallProposed:
        self._calls += 1
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
        )

    def _place(self, block: CallComplete | Malformation, call_id: str, arguments: dict[str, object]) -> None:
        position = self._positions.get(block.index) if block.index is not None else None
        if position is None or self._xml is not None:
            self._end_text()
            self._content.append(ToolUse(id=call_id, name=block.name, arguments=arguments, source=block.source))
            return
        use = self._content[position]
        wire_id = use.wire_id if isinstance(use, ToolUse) else ""
        self._content[position] = ToolUse(
            id=call_id, name=block.name or _NAMELESS, arguments=arguments, wire_id=wire_id
        )

    def _unknown(self, name: str) -> str:
        names = [known for known in self._tools if known not in self._refused]
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Use one of: {', '.join(names)}."
        return f"There is no tool named {name!r}. {hint}"
