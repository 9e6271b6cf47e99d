"""The blocks of a reply of the Messages API as they came: what goes back when the provider pauses it."""

from typing import Any

import msgspec
from msgspec import Struct, field

from treadle.providers.wire import decode_json


class _Raw(Struct):
    block: dict[str, Any]
    added: dict[str, list[str]] = field(default_factory=dict)

    def whole(self) -> dict[str, Any]:
        block = dict(self.block)
        for name, pieces in self.added.items():
            text = "".join(pieces)
            block[name] = _decoded(text) if name == "input" else str(block.get(name) or "") + text
        return block


class RawBlocks:
    """Gathers the blocks of a reply, over all of its parts."""

    def __init__(self) -> None:
        self._blocks: list[_Raw] = []
        self._open: dict[int, _Raw] = {}

    def start(self, index: int, block: dict[str, Any]) -> None:
        """A block begins."""
        self._open[index] = _Raw(block)
        self._blocks.append(self._open[index])

    def add(self, index: int, name: str, text: str) -> None:
        """Take a piece of a field of a block: `text`, `thinking`, `signature`, or the JSON of `input`."""
        if index in self._open:
            self._open[index].added.setdefault(name, []).append(text)

    def blocks(self) -> list[dict[str, Any]]:
        """Give what can go back; nothing where a call of ours waits for its result, which would have to follow."""
        found = [raw.whole() for raw in self._blocks]
        if any(block.get("type") == "tool_use" for block in found):
            return []
        if found and found[-1].get("type") == "text":
            found[-1] = {**found[-1], "text": str(found[-1].get("text") or "").rstrip()}
        return [block for block in found if block.get("type") != "text" or block.get("text")]


def _decoded(text: str) -> Any:
    try:
        return decode_json(text)
    except msgspec.DecodeError:
        return {}
