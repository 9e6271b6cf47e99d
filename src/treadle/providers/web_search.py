"""Searches of the web that the provider itself makes: what is asked for, how they are told, how they go back untouched.

A search is kept as a piece of reasoning with wire data: shown to the user, meaningless to any other provider.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from treadle.protocol.messages import ContentBlock, RedactedThinking, Thinking, WireData
from treadle.protocol.models import StreamEvent, StreamThinking, StreamThinkingDone
from treadle.providers.wire import own_data

ANTHROPIC_TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
RESPONSES_TOOL = {"type": "web_search"}
BLOCKS = frozenset({"server_tool_use", "web_search_tool_result"})
"""The blocks of a search in the Messages API."""

CALL = "web_search_call"
"""The item of a search in the Responses API."""

_KEPT = "blocks"
_SHOWN = 5


def kept_blocks(block: ContentBlock, origin: str) -> list[dict[str, Any]]:
    """Give the blocks of a search as they came, if this block stands for one that came from `origin`."""
    match block:
        case Thinking(wire=wire) | RedactedThinking(wire=wire):
            return list((own_data(wire, origin) or {}).get(_KEPT, ()))
        case _:
            return []


class _Use(Struct):
    block: dict[str, Any]
    arguments: list[str] = field(default_factory=list)


class SearchReader:
    """Reads the searches of one reply of the Messages API; one without its result is dropped, as it cannot go back."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._open: dict[int, _Use] = {}
        self._asked: dict[str, dict[str, Any]] = {}

    def start(self, index: int, block: dict[str, Any]) -> Iterator[StreamEvent]:
        """Take a block of a search; a result comes whole, and with it the search is."""
        if block.get("type") == "server_tool_use":
            self._open[index] = _Use(block)
            return
        use = self._asked.pop(str(block.get("tool_use_id")), None)
        if use is None:
            return
        query = use["input"].get("query") if isinstance(use["input"], dict) else None
        yield StreamThinking(text=_told(query, block.get("content")))
        yield StreamThinkingDone(wire=WireData(api=self._origin, data={_KEPT: [use, block]}), searched=True)

    def arguments(self, index: int, text: str) -> None:
        """Take a piece of what is searched for."""
        if index in self._open:
            self._open[index].arguments.append(text)

    def finish(self, index: int) -> None:
        """Take the end of a block."""
        use = self._open.pop(index, None)
        if use is None:
            return
        written = "".join(use.arguments)
        asked = _decoded(written) if written else use.block.get("input")
        self._asked[str(use.block.get("id"))] = {**use.block, "input": asked if isinstance(asked, dict) else {}}


def read_call(item: dict[str, Any], wire: WireData) -> Iterator[StreamEvent]:
    """Read a finished search of the Responses API; `wire` keeps it."""
    action = item.get("action")
    facts = action if isinstance(action, dict) else {}
    yield StreamThinking(text=_told(facts.get("query") or facts.get("url") or facts.get("pattern"), None))
    yield StreamThinkingDone(wire=wire, searched=True)


def _told(query: object, content: object) -> str:
    """Say what was searched for, and what came of it."""
    what = f"Searched the web: {query}" if isinstance(query, str) and query else "Searched the web"
    match content:
        case list():
            found = [one for one in content if isinstance(one, dict) and isinstance(one.get("url"), str)]
            lines = [f"- {one.get('title') or one['url']}: {one['url']}" for one in found[:_SHOWN]]
            more = [f"- and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
            return "\n".join((what, *(lines or ["- nothing was found"]), *more))
        case {"error_code": str(code)}:
            return f"{what}\n- it failed: {code}"
        case _:
            return what


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
