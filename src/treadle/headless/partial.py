"""A reply while it is written, as the events that Anthropic's API streams."""

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_Event = dict[str, Any]

_NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


class PartialMessage:
    """The reply that is being written; calls follow whole at its end, when their names and inputs are known."""

    def __init__(self, model: Callable[[], str]) -> None:
        self._model = model
        self._begin()

    def _begin(self) -> None:
        self.id = f"msg_{uuid.uuid4().hex}"
        self._started = False
        self._open = ""
        self._index = -1
        self._shown: set[str] = set()

    def add(self, kind: str, text: str) -> Iterator[_Event]:
        """Write more `text` or `thinking`."""
        if self._open != kind:
            yield from self._block(kind, {"type": kind, kind: ""})
        self._shown.add(kind)
        yield self._delta({"type": f"{kind}_delta", kind: text})

    def rest(self, content: Sequence[tuple[_Event, bool]]) -> Iterator[_Event]:
        """Write what was not streamed: `content` are all blocks, and whether each is streamed where its kind is."""
        yield from self._close()
        shown = frozenset(self._shown)
        for block, streams in content:
            match block:
                case {"type": "tool_use", "input": given}:
                    yield from self._block("tool_use", {**block, "input": {}})
                    yield self._delta({"type": "input_json_delta", "partial_json": json.dumps(given)})
                case {"type": kind} if not (streams and kind in shown):
                    yield from self.add(kind, block[kind])
                case _:
                    pass
        yield from self._start()
        yield from self._close()

    def end(self, stop_reason: str, usage: _Event) -> Iterator[_Event]:
        """End the reply."""
        delta = {"stop_reason": stop_reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}
        self._begin()

    def drop(self) -> Iterator[_Event]:
        """End a reply that does not count."""
        if self._started:
            yield from self._close()
            yield {"type": "message_stop"}
        self._begin()

    def _start(self) -> Iterator[_Event]:
        if not self._started:
            self._started = True
            message: _Event = {
                "id": self.id,
                "type": "message",
                "role": "assistant",
                "model": self._model(),
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": _NO_USAGE,
            }
            yield {"type": "message_start", "message": message}

    def _block(self, kind: str, block: _Event) -> Iterator[_Event]:
        yield from self._start()
        yield from self._close()
        self._open = kind
        self._index += 1
        yield {"type": "content_block_start", "index": self._index, "content_block": block}

    def _delta(self, delta: _Event) -> _Event:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _close(self) -> Iterator[_Event]:
        if self._open:
            self._open = ""
            yield {"type": "content_block_stop", "index": self._index}
