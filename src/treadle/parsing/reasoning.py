"""Reasoning in tags, told apart from text, for replies without XML calls."""

from treadle.parsing.reply_blocks import ContentDelta, ReasoningDelta
from treadle.parsing.xml import XmlReader


class ReasoningSplitter:
    """Tells `<think>`, `<thinking>` and `<reasoning>` apart from text while a reply streams.

    The rule is that of `XmlReader(reasoning_tags=True)`: the tag stands at the start of the reply, or later
    on a line of its own.
    """

    __slots__ = ("_reader",)

    def __init__(self) -> None:
        self._reader = XmlReader((), reasoning_tags=True)

    def feed(self, chunk: str) -> list[ContentDelta | ReasoningDelta]:
        """Read the next piece of the reply, of any length."""
        return [block for block in self._reader.feed(chunk) if isinstance(block, ContentDelta | ReasoningDelta)]

    def finish(self) -> list[ContentDelta | ReasoningDelta]:
        """Release what was held back."""
        return [block for block in self._reader.finish() if isinstance(block, ContentDelta | ReasoningDelta)]
