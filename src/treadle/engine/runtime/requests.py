"""From the transcript to a model request, and from usage to money."""

from collections.abc import Mapping

from treadle.context.focus import with_progress
from treadle.context.reader import TranscriptReader
from treadle.context.transcript import LEAST_BYTES_PER_TOKEN, Transcript
from treadle.engine.core.budgets import Send, bounded, check_budgets
from treadle.engine.core.state import State, replace
from treadle.engine.ports import Ports
from treadle.engine.runtime.window import in_force, reply_limit
from treadle.protocol.events import OfferChanged
from treadle.protocol.limits import Budget, Terms
from treadle.protocol.models import ModelRequest, ModelSpec, ToolProtocol
from treadle.protocol.permissions import Situation
from treadle.protocol.sealed import system_text
from treadle.protocol.tools import ToolSpec
from treadle.protocol.usage import Usage

_LEAST_THINKING = 1_024
_LEAST_ANSWER = 1_024
_TOKENS_IN_PRICE = 1_000_000
_SEARCHES_IN_PRICE = 1_000


OfferedTools = Mapping[str, ToolSpec]
"""What a model is told of, by name and in its order."""


def build_request(ports: Ports, state: State, reader: TranscriptReader) -> ModelRequest:
    """Build the request of the present step. The id is the same for every attempt of a step."""
    spec = ports.model(state.choice.model)
    limit = reply_limit(state, in_force(spec, state), reader.transcript)
    return ModelRequest(
        id=f"{state.session_id}-{state.step}",
        model=spec.name,
        system=system_text(reader.offer.system),
        messages=reader.transcript.messages(
            state.choice.tool_protocol,
            images=spec.images is not False and reader.takes_images,
            documents=spec.documents is not False,
        ),
        tools=reader.offer.tools,
        max_tokens=limit,
        thinking_budget=_thinking(state, limit),
        web_search=spec.searches is not None,
    )


def _thinking(state: State, limit: int | None) -> int | None:
    """Give the thinking budget, with room left for the reply itself; None where too little is left to think."""
    wanted = state.choice.thinking_budget
    if not wanted or limit is None:
        return wanted or None
    left = min(wanted, limit - _LEAST_ANSWER)
    return left if left >= _LEAST_THINKING else None


def terms_of(ports: Ports, state: State, transcript: Transcript, new_bytes: int) -> Terms:
    """Say what the next model call can cost at worst; `new_bytes` are those that no provider has counted yet."""
    spec = ports.model(state.choice.model)
    tokens = transcript.most_tokens + int(new_bytes / LEAST_BYTES_PER_TOKEN)
    prices = None if spec.prices is None else spec.prices.of(tokens)
    return Terms(
        input_tokens=tokens,
        max_output=spec.max_output,
        input_price=None if prices is None else max(prices.input, prices.cache_write or 0.0),
        output_price=None if prices is None else prices.output,
        search_cost=_most_for_searches(spec),
    )


async def reserved_terms(ports: Ports, state: State, transcript: Transcript, new_bytes: int) -> Terms | None:
    """Say what the next model call can cost where a budget is set, and reserve it where one holds for the day."""
    if not bounded(state.limits):
        return None
    terms = terms_of(ports, state, transcript, new_bytes)
    room = check_budgets(state, terms)
    if state.limits.day == Budget() or not isinstance(room, Send):
        return terms
    return replace(terms, day=await ports.day_budget.reserve(room.worst))


def _most_for_searches(spec: ModelSpec) -> float | None:
    """Say what the searches of one request can cost in US dollars; None where nothing bounds it."""
    searches = spec.searches
    if searches is None:
        return 0.0
    return (
        None if searches.most is None or searches.price is None else searches.most * searches.price / _SEARCHES_IN_PRICE
    )


def offer_now(ports: Ports, state: State, tools: OfferedTools) -> OfferChanged:
    """Give what the model would be sent besides the conversation now."""
    native = state.choice.tool_protocol is ToolProtocol.NATIVE
    return OfferChanged(
        step=state.step,
        system=ports.system(state.choice.model, state.choice.tool_protocol, situation_of(state)),
        tools=tuple(tools.values()) if native else (),
    )


def same_offer(one: OfferChanged, other: OfferChanged) -> bool:
    """Whether two offers are the same to the model."""
    return (one.system, one.tools) == (other.system, other.tools)


def known_tools(ports: Ports) -> OfferedTools:
    """Give every tool of the session; with a checklist, any call may carry it."""
    specs = {name: tool.spec for name, tool in ports.tools.items()}
    return {name: with_progress(spec) for name, spec in specs.items()} if ports.checklist else specs


def situation_of(state: State) -> Situation:
    """Say what the model works under now."""
    return Situation(mode=state.mode, user_present=state.user_present, max_steps=state.limits.max_steps)


def cost(spec: ModelSpec, usage: Usage) -> float | None:
    """Price a model call in US dollars; None where a price of it is unknown."""
    prices = None if spec.prices is None else spec.prices.of(usage.request_tokens)
    search = 0.0 if not usage.searches else None if spec.searches is None else spec.searches.price
    if prices is None or search is None:
        return None
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.input if prices.cache_write is None else prices.cache_write
    total = (
        usage.input_tokens * prices.input
        + usage.output_tokens * prices.output
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
    )
    return total / _TOKENS_IN_PRICE + usage.searches * search / _SEARCHES_IN_PRICE
