"""Searches of the web that the provider itself makes: what is asked for, how they are told, how they go back untouched.

A search is kept as a piece of reasoning: shown to the user, meaningless to any other provider. Its wire data is what
goes back where the API wants it back; without it nothing does.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from treadle.protocol.messages import ContentBlock, RedactedThinking, Thinking, WireData
from treadle.protocol.models import Searches, StreamEvent, StreamThinking, StreamThinkingDone
from treadle.protocol.patterns import regex
from treadle.providers.provider_rows import ProviderRow, Wire
from treadle.providers.wire import decode_json, own_data

MOST_SEARCHES = 5
"""How many searches a request may make where the API lets us say so."""

ANTHROPIC_TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": MOST_SEARCHES}
RESPONSES_TOOL = {"type": "web_search"}
GEMINI_TOOL: dict[str, Any] = {"googleSearch": {}}
BLOCKS = frozenset({"server_tool_use", "web_search_tool_result"})
"""The blocks of a search in the Messages API."""

CALL = "web_search_call"
"""The item of a search in the Responses API."""

_BOUNDED = (Wire.ANTHROPIC_MESSAGES, Wire.OPENAI_RESPONSES)
_GEMINI = regex(r"gemini-(\d+)")
_KEPT = "blocks"
_SHOWN = 5


def searches_of(row: ProviderRow, model: str) -> Searches | None:
    """What is known of the searches of a model's provider; None where there are none."""
    if not row.quirks.web_search or (row.wire is Wire.GEMINI and not gemini_searches(model)):
        return None
    if row.wire is Wire.OPENAI_CHAT and not row.quirks.search_tool:
        return None
    return Searches(
        price=row.search_price, most=MOST_SEARCHES if row.wire in _BOUNDED and row.quirks.search_bound else None
    )


def gemini_searches(model: str) -> bool:
    """Whether a Gemini model searches beside calls of functions; those before version 3 do either."""
    found = _GEMINI.search(model)
    return found is not None and int(found[1]) >= 3


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
        yield StreamThinking(text=_search_note(query, block.get("content")))
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


def is_billed(item: dict[str, Any]) -> bool:
    """Whether a finished item of the Responses API is a search, not a look at a page that one found."""
    action = item.get("action")
    return not isinstance(action, dict) or action.get("type") not in ("open_page", "find_in_page", "find")


def read_call(item: dict[str, Any], wire: WireData) -> Iterator[StreamEvent]:
    """Read a finished search of the Responses API; `wire` keeps it."""
    action = item.get("action")
    facts = action if isinstance(action, dict) else {}
    yield StreamThinking(text=_search_note(facts.get("query") or facts.get("url") or facts.get("pattern"), None))
    yield StreamThinkingDone(wire=wire, searched=True)


class ReportedSearches(Struct):
    """What a reply that is told of its searches by the way says of them, gathered until they can be told."""

    queries: list[str] = field(default_factory=list)
    pages: list[dict[str, Any]] = field(default_factory=list)
    reported: list[dict[str, Any]] | None = None

    def add(self, queries: object, pages: Iterable[object]) -> None:
        """Take queries, and pages with a `url` and a `title`, each once."""
        words = [one for one in queries if isinstance(one, str) and one] if isinstance(queries, list) else []
        self.queries += [one for one in dict.fromkeys(words) if one not in self.queries]
        for one in pages:
            if isinstance(one, dict) and one.get("url") and one not in (*self.pages, *(self.reported or ())):
                self.pages.append(one)

    def report(self, *, searched: bool = False) -> Iterator[StreamEvent]:
        """Say what was found since the last time, with `searched` also that it is not known. Nothing goes back."""
        if self.queries or self.pages or (searched and self.reported is None):
            yield StreamThinking(text=_search_note("; ".join(self.queries), self.pages or None))
            yield StreamThinkingDone(searched=True)
            self.reported = [*(self.reported or ()), *self.pages]
            self.queries, self.pages = [], []


def gemini_queries(call: dict[str, Any]) -> list[str]:
    """What a search of the Gemini API asks; nothing where it does not say."""
    arguments = call["toolCall"].get("args")
    queries = arguments.get("queries") if isinstance(arguments, dict) else None
    return [one for one in queries if isinstance(one, str) and one] if isinstance(queries, list) else []


def read_gemini(call: dict[str, Any], answer: dict[str, Any], origin: str) -> Iterator[StreamEvent]:
    """Read a search of the Gemini API: two parts that go back as they came."""
    yield StreamThinking(text=_search_note("; ".join(gemini_queries(call)), None))
    yield StreamThinkingDone(wire=WireData(api=origin, data={_KEPT: [call, answer]}), searched=True)


def _search_note(query: object, content: object) -> str:
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
        return decode_json(text)
    except msgspec.DecodeError:
        return None
