"""Thinking that a scripted server signed: as the real APIs do, it wants each block back as it was."""

from collections.abc import Iterator, Sequence

from treadle.protocol.models import StreamThinking, StreamThinkingDone
from treadle.providers.scripted.player import PlayStep
from treadle.providers.scripted.request_rules import Body, Broken, RequestRule


def _nothing(_: object) -> Iterator[str]:
    yield from ()


UNCHANGED = RequestRule(
    what="thinking as it came",
    source="the 400: 'Invalid `signature` in `thinking` block', '`thinking` blocks ... cannot be modified', 2026-05",
    check=_nothing,
)
"""Its check needs what the server said before."""


class IssuedThinking:
    """Remembers which thinking a server gave which signature."""

    def __init__(self) -> None:
        self._texts: dict[str, set[str]] = {}

    def note(self, steps: Sequence[PlayStep]) -> None:
        """Take the thinking of a reply."""
        said = ""
        for step in steps:
            if isinstance(step, StreamThinking):
                said += step.text
            elif isinstance(step, StreamThinkingDone):
                if step.signature:
                    self._texts.setdefault(step.signature, set()).add(said)
                said = ""

    def broken(self, body: Body) -> list[Broken]:
        """Say which blocks with a signature of this server have another text than it signed."""
        if not self._texts:
            return []
        found = []
        for number, message in enumerate(body.get("messages") or ()):
            content = message.get("content") if isinstance(message, dict) else None
            for text, signature in _signed(content if isinstance(content, list) else []):
                if signature in self._texts and text not in self._texts[signature]:
                    said = f"messages.{number}: Invalid `signature` in `thinking` block"
                    found.append(Broken(rule=UNCHANGED, said=said))
        return found


def _signed(content: Sequence[object]) -> Iterator[tuple[str, str]]:
    """Text and signature of the blocks of thinking, as Messages and Converse have them."""
    for block in content:
        match block:
            case {"type": "thinking", "thinking": str(text), "signature": str(signature)}:
                yield text, signature
            case {"reasoningContent": {"reasoningText": {"text": str(text), "signature": str(signature)}}}:
                yield text, signature
            case _:
                pass
