"""Reasoning in tags, told apart from text, for replies without XML calls."""

import re

from treadle.parsing.layout import Layout
from treadle.parsing.reply_blocks import ContentDelta, ReasoningDelta
from treadle.parsing.xml import XmlReader
from treadle.protocol.patterns import regex

_CLOSED = regex(r"</(think|thinking|reasoning)>")
_CHANNEL = regex(
    r"\s*(?:<\|start\|>assistant)?<\|channel\|>(analysis|commentary|final)(?:\s?<\|constrain\|>\w+)?<\|message\|>"
    r"(.*?)(?:<\|(?:end|return|call)\|>|(?=<\|(?:start|channel)\|>)|\Z)",
    re.DOTALL,
)
"""A message of gpt-oss, of which a server gave the tokens as text."""


def unopened_reasoning(text: str) -> tuple[str, str] | None:
    """Split the text of a reply into its reasoning and the answer where no tag opened the reasoning.

    That is the text before a closing tag, where the server counted the opening one to the prompt; and what gpt-oss
    wrote to the channel `analysis`. None for any other text, as one that speaks of such a tag.
    """
    if text.lstrip().startswith("<|"):
        return _channels(text)
    closed = _CLOSED.search(text)
    if closed is None or f"<{closed[1]}>" in text[: closed.start()]:
        return None
    layout = Layout()
    layout.write(text[: closed.start()])
    place, behind = layout.place(), text[closed.end() : closed.end() + 1]
    spoken_of = text[: closed.start()][-1:] in ("", " ", "\t") and behind not in ("", "\r", "\n")
    if place.fenced or place.inline_code or (spoken_of and not place.line_start):
        return None
    return text[: closed.start()].strip("\r\n"), text[closed.end() :].lstrip("\r\n")


def _channels(text: str) -> tuple[str, str] | None:
    at, thought, said = 0, "", ""
    while message := _CHANNEL.match(text, at):
        at = message.end()
        if message[1] == "analysis":
            thought += message[2]
        else:
            said += message[2]
    return None if text[at:].strip() else (thought, said)


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
