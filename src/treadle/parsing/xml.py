"""XML text calls: the incremental reader of replies that carry calls as tags."""

from collections.abc import Sequence

from treadle.parsing.framing import FramedText
from treadle.parsing.layout import Layout
from treadle.parsing.reply_blocks import ContentDelta, ParserEvent, ReasoningDelta, ToolGrammar
from treadle.parsing.xml_call import CallScan
from treadle.parsing.xml_tags import BegunTags, TagSet

REASONING_TAGS = ("<think>", "<thinking>", "<reasoning>")
_REASONING_CLOSE = BegunTags.of([f"</{tag[1:]}" for tag in REASONING_TAGS])


class XmlReader:
    """Tells text, calls and (with `reasoning_tags`) reasoning apart while a reply streams.

    - `<tool>` opens a call when the tool is known and, blanks apart, a tag of one of its parameters or
      `</tool>` follows. Tags have no attributes. Entities are not decoded. In inline code a tag is text.
    - At the start of a line (or laid out over lines) the call is shown while it streams, and a broken one
      is a `Malformation`. Elsewhere in prose, and in a code fence, it is held back until it is complete:
      then it is a call, because some models fence their calls; if it never is, it is text.
    - A parameter keeps its bytes, less one line break after its opening and one before its closing tag. It
      ends at the closing tag that the tool's closing tag or a new parameter follows; a balanced call of the
      same tool inside it is part of it.
    - A call that never closes does not swallow the next one: what was taken for its value is read again by
      `finish`.
    - Reasoning (`<think>`, `<thinking>`, `<reasoning>`) is told apart at the start of the reply, and later
      only where the tag has a line of its own outside a fence. It ends at its closing tag, or with the reply.

    Texts and sources (of `CallComplete` and `Malformation`) joined in order are the reply, byte for byte;
    only reasoning tags and their framing line breaks are left out. No input raises. Time and memory are
    linear in the reply, however it is split.
    """

    __slots__ = (
        "_awaited",
        "_call",
        "_closing",
        "_layout",
        "_next",
        "_only_at",
        "_reasoning",
        "_starved",
        "_tags",
        "_tail",
    )

    def __init__(self, tools: Sequence[ToolGrammar], *, reasoning_tags: bool = False) -> None:
        self._tags = TagSet(tools, REASONING_TAGS if reasoning_tags else ())
        self._layout = Layout()
        self._tail = ""
        self._awaited: frozenset[str] = frozenset()  # the begun tags that the tail may go on being
        self._next = 0
        self._call: CallScan | None = None
        self._reasoning: FramedText | None = None
        self._closing = ""
        self._starved = False
        self._only_at: frozenset[int] | None = None

    def feed(self, chunk: str) -> list[ParserEvent]:
        """Read the next piece of the reply, of any length."""
        if self._tail:
            chunk = self._tail + chunk
            if chunk in self._awaited:
                self._tail = chunk
                return []
            self._tail = ""
        if ">" not in chunk and (self._call is None or self._call.in_plain_value):
            return self._plain(chunk)
        out: list[ParserEvent] = []
        self._run(chunk, out)
        return out

    def finish(self) -> list[ParserEvent]:
        """End the reply: what was held back is released, an open call becomes a malformation or text."""
        out: list[ParserEvent] = []
        tail, self._tail = self._tail, ""
        if self._call is not None:
            self._end_call(self._call, tail, out)
        elif self._reasoning is not None:
            if text := self._reasoning.push(tail) + self._reasoning.close():
                out.append(ReasoningDelta(text))
        else:
            self._text(tail, out)
        return out

    def _plain(self, chunk: str) -> list[ParserEvent]:
        """The fast path: no tag ends in `chunk`, so all of it but a begun tag is of one kind."""
        if "<" in chunk:
            begun = self._begun()
            end = begun.start(chunk, 0)
            self._tail = chunk[end:]
            self._awaited = begun.prefixes
            chunk = chunk[:end]
        if not chunk:
            return []
        if self._call is not None:
            return self._call.plain(chunk)
        if self._reasoning is not None:
            text = self._reasoning.push(chunk)
            return [ReasoningDelta(text)] if text else []
        self._layout.write(chunk)
        return [ContentDelta(chunk)]

    def _begun(self) -> BegunTags:
        if self._call is not None:
            return self._call.begun
        return self._tags.begun if self._reasoning is None else _REASONING_CLOSE

    def _run(self, data: str, out: list[ParserEvent]) -> None:
        pos = 0
        self._starved = False
        while pos < len(data) and not self._starved:
            if self._call is not None:
                pos = self._in_call(self._call, data, pos, out)
            elif self._reasoning is not None:
                pos = self._in_reasoning(self._reasoning, data, pos, out)
            else:
                pos = self._in_text(data, pos, out)
        self._tail = data[pos:]
        if self._tail:
            self._awaited = self._begun().prefixes

    def _text(self, text: str, out: list[ParserEvent]) -> None:
        if text:
            self._layout.write(text)
            out.append(ContentDelta(text))

    def _in_text(self, data: str, pos: int, out: list[ParserEvent]) -> int:
        match = self._tags.pattern.search(data, pos)
        if match is None:
            end = self._tags.begun.start(data, pos)
            self._text(data[pos:end], out)
            self._starved = True
            return end
        self._text(data[pos : match.start()], out)
        tags = self._tags.by_open.get(match[0])
        if tags is None:
            return self._at_reasoning(match[0], data, match.start(), out)
        place = self._layout.place()
        if place.inline_code or (self._only_at is not None and match.start() not in self._only_at):
            self._text(match[0], out)
        else:
            self._call = CallScan(tags, self._next, line_start=place.line_start, fenced=place.fenced)
        return match.end()

    def _at_reasoning(self, tag: str, data: str, at: int, out: list[ParserEvent]) -> int:
        place = self._layout.place()
        end = at + len(tag)
        if place.line_start and not place.fenced and not place.reply_start and end == len(data):
            self._starved = True
            return at
        if place.reply_start or (place.line_start and not place.fenced and data[end] in "\r\n"):
            self._reasoning = FramedText()
            self._closing = f"</{tag[1:]}"
        else:
            self._text(tag, out)
        return end

    def _in_reasoning(self, framed: FramedText, data: str, pos: int, out: list[ParserEvent]) -> int:
        at = data.find(self._closing, pos)
        if at < 0:
            end = _REASONING_CLOSE.start(data, pos)
            text = framed.push(data[pos:end])
            self._starved = True
        else:
            end = at + len(self._closing)
            text = framed.push(data[pos:at]) + framed.close()
            self._reasoning = None
            self._layout.end_block()
        if text:
            out.append(ReasoningDelta(text))
        return end

    def _in_call(self, call: CallScan, data: str, pos: int, out: list[ParserEvent]) -> int:
        pos = call.scan(data, pos, out)
        self._starved = call.starved
        match call.ending:
            case "none":
                pass
            case "not a call":
                self._call = None
                self._text(call.source, out)
            case "closed":
                self._close(call, out)
        return pos

    def _close(self, call: CallScan, out: list[ParserEvent]) -> None:
        self._call = None
        if call.certain or call.is_sound():
            out += call.result()
            self._next += 1
            self._layout.end_block()
        else:
            self._text(call.source, out)

    def _end_call(self, call: CallScan, tail: str, out: list[ParserEvent]) -> None:
        call.end(tail)
        match call.ending:
            case "not a call":
                self._text(call.source, out)
            case "closed":
                self._close(call, out)
            case "none":
                self._recover(call, out)
        self._call = None

    def _recover(self, call: CallScan, out: list[ParserEvent]) -> None:
        """Give back what an unclosed call has taken: the calls inside it that do close, and the rest as text.

        The second reading is told which tags to open, so that no text is read a third time.
        """
        source = call.source
        opens = self._tags.balanced_opens(source) - {0} if self._only_at is None else frozenset()
        first = min(opens, default=len(source))
        if call.shown:
            out.append(call.unclosed(source[:first]))
            self._next += 1
            self._layout.end_block()
        else:
            self._text(source[:first], out)
        rest = source[first:]
        self._call = None
        self._only_at = frozenset(at - first for at in opens)
        self._run(rest, out)
        out += self.finish()
