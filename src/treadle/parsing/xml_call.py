"""One XML call while it streams, from its opening tag to its end."""

import io
from typing import Literal, TypeAlias

from treadle.parsing import xml_faults
from treadle.parsing.framing import FramedText, unframe
from treadle.parsing.reply_blocks import CallComplete, CallOpened, Malformation, ParameterDelta, ParserEvent
from treadle.parsing.xml_faults import Fault
from treadle.parsing.xml_tags import ANY_TAG, NOT_BLANK, BegunTags, ToolTags, any_tag_begun

# Strings, no enum: they are compared for every chunk, and an enum member costs ten times as much (3.11).
Ending: TypeAlias = Literal["none", "closed", "not a call"]
_Mode: TypeAlias = Literal["after open", "in value", "after value"]


class CallScan:
    """Reads one call. Each character is looked at once; the value is cut out of the source at the end.

    A value ends at the parameter's closing tag that is followed, blanks apart, by the tool's closing tag or
    by a parameter that the call has not yet had. Any other closing tag belongs to the value, and so does a
    whole call of the same tool inside it (`_depth`).

    `certain`: the tag stands where a call is meant (at the start of a line, or glued to a sentence but laid
    out over lines, and in no code fence), so a broken one is reported; otherwise it is text again.
    `shown`: the call was announced, and its parameters are emitted while they stream.
    """

    __slots__ = (
        "_after_open_tag",
        "_depth",
        "_fault",
        "_fenced",
        "_framed",
        "_line_start",
        "_mode",
        "_name",
        "_pending",
        "_size",
        "_source",
        "_spans",
        "_start",
        "_stray",
        "_tags",
        "_value_tags",
        "certain",
        "ending",
        "index",
        "shown",
        "starved",
    )

    def __init__(self, tags: ToolTags, index: int, *, line_start: bool, fenced: bool) -> None:
        self.index = index
        self._fenced = fenced
        self._line_start = line_start and not fenced
        self.certain = False
        self.shown = False
        self.ending: Ending = "none"
        self.starved = False
        self._tags = tags
        self._fault: Fault | None = None
        self._source = io.StringIO()
        self._size = 0
        self._mode: _Mode = "after open"
        self._name = ""
        self._value_tags = tags.inside("")
        self._framed = FramedText()
        self._spans: dict[str, tuple[int, int]] = {}
        self._start = 0
        self._stray: int | None = None  # just after a closing tag of the parameter that did not end it
        self._depth = 0
        self._after_open_tag = False
        self._pending: list[str] = []
        self._take(tags.open)

    @property
    def source(self) -> str:
        """What the call has consumed so far."""
        return self._source.getvalue()

    @property
    def name(self) -> str:
        """The tool's name."""
        return self._tags.grammar.name

    @property
    def in_plain_value(self) -> bool:
        """Whether what comes next is a piece of the value until a tag of `begun` ends."""
        return self._mode == "in value" and not self._after_open_tag

    @property
    def begun(self) -> BegunTags:
        """The tags whose beginnings the call only waits on."""
        return self._value_tags.begun if self._mode == "in value" else self._tags.begun

    def scan(self, data: str, pos: int, out: list[ParserEvent]) -> int:
        """Consume `data` from `pos`; returns where it stopped: at the call's end, or where it needs more."""
        self.starved = False
        while self.ending == "none" and not self.starved:
            match self._mode:
                case "in value":
                    pos = self._in_value(data, pos, out)
                case "after open":
                    pos = self._after_open(data, pos, out)
                case "after value":
                    pos = self._after_value(data, pos, out)
        return pos

    def plain(self, chunk: str) -> list[ParserEvent]:
        """The fast path: consume a piece of a plain value in which no tag stands."""
        self._source.write(chunk)
        self._size += len(chunk)
        if self.shown and (text := self._framed.push(chunk)):
            return [ParameterDelta(self.index, self._name, text)]
        return []

    def end(self, rest: str) -> None:
        """The reply ended with `rest` unconsumed: a closing tag at the very end still ends the call."""
        if self._mode == "after open":
            self.ending = "not a call"
        elif self._mode == "in value" and rest == self._tags.close and not self._depth:
            self._take(rest)
            self._close_broken()
            return
        self._take(rest)

    def result(self) -> list[ParserEvent]:
        """The closing block of a closed call, with what precedes it if the call was not shown yet."""
        source = self.source
        blocks: list[ParserEvent] = [] if self.shown else [CallOpened(self.index, self.name)]
        flaw = self._flaw()
        if flaw is not None:
            return [*blocks, Malformation(flaw.code, flaw.message, self.index, self.name, source)]
        arguments = {name: unframe(source[start:end]) for name, (start, end) in self._spans.items()}
        if not self.shown:
            blocks += [ParameterDelta(self.index, name, text) for name, text in arguments.items() if text]
        return [*blocks, CallComplete(self.index, self.name, arguments, source=source)]

    def is_sound(self) -> bool:
        """Whether a closed call is complete."""
        return self._flaw() is None

    def unclosed(self, source: str) -> Malformation:
        """The report on a call that the reply leaves open; `source` is the text that goes with it."""
        fault = xml_faults.unclosed_call(self.name, self._name)
        return Malformation(fault.code, fault.message, self.index, self.name, source)

    def _take(self, text: str) -> None:
        self._source.write(text)
        self._size += len(text)

    def _emit(self, text: str, out: list[ParserEvent]) -> None:
        if self.shown and (text := self._framed.push(text)):
            out.append(ParameterDelta(self.index, self._name, text))

    def _value_text(self, data: str, pos: int, end: int, out: list[ParserEvent]) -> int:
        if end > pos:
            text = data[pos:end]
            self._take(text)
            self._emit(text, out)
        return end

    def _after_open(self, data: str, pos: int, out: list[ParserEvent]) -> int:
        found = NOT_BLANK.search(data, pos)
        at = found.start() if found else len(data)
        self._take(data[pos:at])
        if at == len(data):
            self.starved = True
            return at
        tag = self._tags.follow(data, at) if data[at] == "<" else None
        if tag:
            self.certain = self._line_start or (not self._fenced and "\n" in self.source)
            return self._open_or_close(tag, at, out)
        if tag is None and self._line_start and (unknown := ANY_TAG.match(data, at)):
            self.certain = True
            self._fault = self._unknown(unknown[1])
            self._mode = "in value"
        elif tag == "" or (self._line_start and any_tag_begun(data, at)):
            self.starved = True
        else:
            self.ending = "not a call"
        return at

    def _open_or_close(self, tag: str, at: int, out: list[ParserEvent]) -> int:
        """Consume the tag that follows the tool's opening tag or a value."""
        if self.certain and not self.shown:
            self.shown = True
            out.append(CallOpened(self.index, self.name))
        self._take(tag)
        if tag == self._tags.close:
            self.ending = "closed"
        else:
            self._name = self._tags.parameters[tag]
            self._value_tags = self._tags.inside(self._name)
            self._framed = FramedText()
            self._start = self._size
            self._stray = None
            self._mode = "in value"
        return at + len(tag)

    def _in_value(self, data: str, pos: int, out: list[ParserEvent]) -> int:
        if self._after_open_tag and not self._read_depth(data, pos):
            self.starved = True
            at = data.rfind("<", pos)
            return self._value_text(data, pos, at if at >= 0 else len(data), out)
        tags = self._value_tags
        match = tags.pattern.search(data, pos)
        if match is None:
            self.starved = True
            return self._value_text(data, pos, tags.begun.start(data, pos), out)
        tag = match[0]
        if tag == self._tags.open:
            self._after_open_tag = True
        elif self._depth:
            self._depth -= tag == self._tags.close
        elif tag == tags.close:
            return self._leave_value(data, pos, match.start(), out)
        elif match.end() == len(data) and self._name:
            self.starved = True
            return self._value_text(data, pos, match.start(), out)
        elif not self._name or data[match.end()] in "\r\n<":
            self._value_text(data, pos, match.start(), out)
            self._take(tag)
            self._close_broken()
            return match.end()
        return self._value_text(data, pos, match.end(), out)

    def _read_depth(self, data: str, pos: int) -> bool:
        """Count the tool's own opening tag inside a value if a call follows it. False: more is needed."""
        found = NOT_BLANK.search(data, pos)
        if found is None:
            return False
        tag = self._tags.follow(data, found.start())
        if tag != "":
            self._after_open_tag = False
            self._depth += tag is not None
        return tag != ""

    def _leave_value(self, data: str, pos: int, at: int, out: list[ParserEvent]) -> int:
        end = self._value_text(data, pos, at, out) + len(self._value_tags.close)
        self._spans[self._name] = (self._start, self._size)
        self._take(self._value_tags.close)
        self._pending = [self._value_tags.close]
        self._mode = "after value"
        return end

    def _after_value(self, data: str, pos: int, out: list[ParserEvent]) -> int:
        found = NOT_BLANK.search(data, pos)
        at = found.start() if found else len(data)
        if at > pos:
            self._pending.append(data[pos:at])
            self._take(data[pos:at])
        if found is None:
            self.starved = True
            return at
        tag = self._tags.follow(data, at) if data[at] == "<" else None
        if tag == "":
            self.starved = True
            return at
        if tag is None or (tag != self._tags.close and self._has(self._tags.parameters[tag])):
            self._back_to_value(out)
            return at
        if text := self._framed.close() if self.shown else "":
            out.append(ParameterDelta(self.index, self._name, text))
        return self._open_or_close(tag, at, out)

    def _back_to_value(self, out: list[ParserEvent]) -> None:
        """The closing tag was part of the value."""
        self._stray = self._spans.pop(self._name)[1] + len(self._value_tags.close)
        self._emit("".join(self._pending), out)
        self._mode = "in value"

    def _close_broken(self) -> None:
        """The tool is closed while a parameter is open: say what stands in the way."""
        self.ending = "closed"
        if self._fault is not None:
            return
        if self._stray is None:
            self._fault = xml_faults.unclosed_parameter(self.name, self._name)
        elif stray := ANY_TAG.match(self.source[self._stray :].lstrip()):
            self._fault = self._unknown(stray[1])
        else:
            self._fault = xml_faults.stray_text(self.name, self._name)

    def _unknown(self, parameter: str) -> Fault:
        return xml_faults.unknown_parameter(self.name, parameter, self._tags.grammar.parameters)

    def _has(self, name: str) -> bool:
        """Whether the call had what a tag stands for."""
        return not self._tags.meant([name]).isdisjoint(self._tags.meant(self._spans))

    def _flaw(self) -> Fault | None:
        """What is wrong with the closed call."""
        if self._fault is not None:
            return self._fault
        given = self._tags.meant(self._spans)
        missing = [name for name in self._tags.grammar.required if name not in given]
        return xml_faults.missing_parameter(self.name, missing) if missing else None
