"""From the transcript to a model request, and from usage to money."""

from asyncio import CancelledError
from collections.abc import AsyncGenerator, Mapping
from math import isfinite

from msgspec import UNSET, Struct

from treadle.context.focus import with_progress
from treadle.context.log_reader import TranscriptReader, offer_size
from treadle.context.sizes import bytes_of_text
from treadle.context.transcript import BYTES_PER_TOKEN, LEAST_BYTES_PER_TOKEN, Transcript
from treadle.engine.core.budgets import Send, Stop, bounded, check_budgets, worst_of
from treadle.engine.core.state import State, replace
from treadle.engine.ports import Ports, Provider, UnsentError
from treadle.engine.runtime.window import in_force, reply_limit
from treadle.protocol.events import OfferChanged
from treadle.protocol.limits import RUN_BUDGET, Budget, Terms
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelRequest,
    ModelSpec,
    Prices,
    PriceStep,
    Spent,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
    StreamUsage,
    ToolProtocol,
    money,
)
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import Situation
from treadle.protocol.sealed import system_text
from treadle.protocol.tools import ToolSpec
from treadle.protocol.usage import Usage

_LEAST_THINKING = 1_024
_LEAST_ANSWER = 1_024
_TOKENS_IN_PRICE = 1_000_000
_HOUR_FACTOR = 2.0
_SEARCHES_IN_PRICE = 1_000
_LETTERS_PER_TOKEN = 4.5
_MARKS_PER_TOKEN = 1.8
_TOKENS_OF_CALL = 14
"""What usual tokenizers make of English, of digits and marks, and of what is around a call, as recorded replies of
real providers were billed (decision 120); of other scripts a token has the least bytes."""

_MARKS = regex(r"[^A-Za-z ]")
_TEXT_OF_REDACTED = 0.75
"""Of the characters of a redacted block: it is written in base64."""


OfferedTools = Mapping[str, ToolSpec]
"""What a model is told of, by name and in its order."""


def build_request(ports: Ports, state: State, reader: TranscriptReader) -> ModelRequest:
    """Build the request of the present step. The id is the same for every attempt of a step."""
    spec = ports.model(state.choice.model)
    state = _repriced(ports, state, reader)
    limit = reply_limit(state, in_force(spec, state), request_size(reader).tokens)
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
    tokens = transcript.most_tokens + int(new_bytes / LEAST_BYTES_PER_TOKEN)
    return _priced(Terms(input_tokens=tokens), ports.model(state.choice.model))


def _priced(terms: Terms, spec: ModelSpec) -> Terms:
    prices = None if spec.prices is None else spec.prices.of(terms.input_tokens)
    return replace(
        terms,
        max_output=spec.max_output,
        input_price=None if prices is None else max(prices.input, prices.cache_write or 0.0),
        output_price=None if prices is None else prices.output,
        search_cost=_most_for_searches(spec),
        estimated=spec.prices is not None and spec.prices.estimated,
    )


def _repriced(ports: Ports, state: State, reader: TranscriptReader) -> State:
    """Give the state with what a call can cost now: another model, or a budget, may have come since that was said."""
    terms = state.money.terms
    if state.choice.model in ports.unbilled or (terms is None and not bounded(state.limits)):
        return state
    if terms is None:
        transcript = reader.transcript
        offered = 0 if transcript.is_measured else int(offer_size(reader.offer) / LEAST_BYTES_PER_TOKEN)
        now = Terms(input_tokens=transcript.most_tokens + offered)
    else:
        now = terms
    now = _priced(now, ports.model(state.choice.model))
    if now == terms:
        return state
    fits = check_budgets(state, now)
    tokens = fits.reply_tokens if isinstance(fits, Send) else state.money.reply_tokens
    return replace(state, money=replace(state.money, terms=now, reply_tokens=tokens))


async def reserved_terms(
    ports: Ports, state: State, transcript: Transcript, new_bytes: int, *, aside: bool = False
) -> Terms | None:
    """Say what the next model call can cost where a budget is set, and reserve it where other sessions share one."""
    if state.choice.model in ports.unbilled or not bounded(state.limits):
        return None
    terms = terms_of(ports, state, transcript, new_bytes)
    room = check_budgets(state, terms)
    if not (_shares(state) and isinstance(room, Send)):
        return terms
    terms = await _with_others(ports, terms, room.worst, aside=aside)
    fits = check_budgets(state, terms)
    worst = fits.worst if isinstance(fits, Send) else Spent()
    if worst != room.worst:  # what the call cannot cost is the others', and is not charged if this program ends
        await ports.shared_budgets.reserve(worst, aside=aside)
    return terms


async def _with_others(ports: Ports, terms: Terms, worst: Spent, *, aside: bool = False) -> Terms:
    others = await ports.shared_budgets.reserve(worst, aside=aside)
    return replace(terms, day=others.day, tree=others.tree, run=others.run)


def _shares(state: State) -> bool:
    """Whether what other sessions spend counts: today, in the tree of the session, or in its run."""
    limits = state.limits
    of_tree = limits.tree not in (Budget(), UNSET) or (limits.session != Budget() and state.subagents > 0)
    return of_tree or limits.day != Budget() or limits.run is not UNSET


async def provider_with_room(ports: Ports, state: State, attempt: int, reader: TranscriptReader) -> Provider:
    """Give the provider of the next call. A request that is sent again reserves its money in what is shared again.

    Meanwhile others may have spent it, or another model costs more: then what is given refuses in the words of the
    budget, and sends nothing.
    """
    state = _repriced(ports, state, reader)
    terms = state.money.terms
    if attempt == 1 or terms is None:
        return ports.provider(state.choice.model)
    shares, worst = _shares(state), worst_of(terms, state.money.reply_tokens)
    if shares:
        terms = await _with_others(ports, terms, worst)
    fits = check_budgets(state, terms)
    if isinstance(fits, Send) and (not shares or fits.worst.cost >= worst.cost):
        return ports.provider(state.choice.model)
    if isinstance(fits, Send):
        budget = f"{RUN_BUDGET} {money(state.limits.run.cost or 0.0)}" if state.limits.run else "the budget"
        why = f"{budget}: the rest is less than the next call can cost"
    else:
        why = fits.why if isinstance(fits, Stop) else fits.text
    if shares:
        await ports.shared_budgets.reserve(Spent())
    return _NoMoney(ModelError(kind=ErrorKind.BUDGET, message=why))


class _NoMoney:
    """The `Provider` port where nothing may be spent."""

    def __init__(self, error: ModelError) -> None:
        self._error = error

    async def stream(self, _: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Refuse."""
        yield StreamFailure(error=self._error)

    async def close(self) -> None:
        """Nothing was opened."""


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


def offered_tools(ports: Ports, state: State) -> tuple[str, ...]:
    """Name the tools that the model is offered now."""
    gone = ports.left_out(state.choice.model, situation_of(state))
    return tuple(name for name in ports.tools if name not in gone)


def cost(spec: ModelSpec, usage: Usage) -> float | None:
    """Price a model call in US dollars; None where a price of it is unknown, or is no amount."""
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
        + (usage.cache_write_tokens - usage.cache_write_hour_tokens) * write
        + usage.cache_write_hour_tokens * _hour_price(prices)
    )
    whole = total / _TOKENS_IN_PRICE + usage.searches * search / _SEARCHES_IN_PRICE
    return whole if isfinite(whole) else None  # a list may name any number as a price


def _hour_price(prices: Prices | PriceStep) -> float:
    """Give what a million tokens cost that are kept for an hour: twice the input, where no list says it."""
    return _HOUR_FACTOR * prices.input if prices.cache_write_hour is None else prices.cache_write_hour


class RequestSize(Struct, frozen=True, kw_only=True):
    """What a request takes by our own count: `tokens`, of which `cached` are likely to be read from the cache."""

    tokens: int
    cached: int
    bytes_per_token: float


def request_size(reader: TranscriptReader, new_bytes: int = 0) -> RequestSize:
    """Count the request that would be made of a conversation now, with so many bytes behind it."""
    transcript = reader.transcript
    if not transcript.is_measured:
        new_bytes += offer_size(reader.offer)
    tokens = transcript.tokens + transcript.tokens_of(new_bytes)
    return RequestSize(tokens=tokens, cached=min(reader.cached, tokens), bytes_per_token=transcript.bytes_per_token)


def own_size(reader: TranscriptReader, request: ModelRequest) -> RequestSize:
    """Count a request that is not about the conversation."""
    transcript = reader.transcript
    said = sum(map(transcript.size_of_message, request.messages))
    tokens = transcript.tokens_of(said + bytes_of_text(request.system))
    return RequestSize(tokens=tokens, cached=0, bytes_per_token=transcript.bytes_per_token)


class CallMeter:
    """Follows one call of a model; before `send` nothing was sent, and nothing is billed."""

    def __init__(self) -> None:
        self._size: RequestSize | None = None
        self._accepted = False
        self._refused = False
        self._told = Usage()
        self._written = 0.0

    def send(self, size: RequestSize | None) -> None:
        """The request is about to leave; None: nothing of it is billed."""
        self._size = size

    def cut(self, cancelled: CancelledError) -> None:
        """The call was cancelled, maybe before its request had left."""
        if isinstance(cancelled, UnsentError):
            self._refused = self._is_untold

    @property
    def _is_untold(self) -> bool:
        """Whether nothing says that the provider has taken the request."""
        return not (self._accepted or self._written or self._told.context_tokens)

    def take(self, item: StreamEvent) -> None:
        """Count what came of the reply; figures of a provider count what came before them."""
        match item:
            case StreamText(text=text) | StreamThinking(text=text) | StreamCallArguments(text=text):
                self._written += _tokens_of(text)
            case StreamCallStart(name=name):
                self._written += _tokens_of(name) + _TOKENS_OF_CALL
            case StreamThinkingDone(redacted=redacted):
                self._written += len(redacted) * _TEXT_OF_REDACTED / BYTES_PER_TOKEN
            case StreamUsage(usage=usage):
                self._accepted = True
                self._tell(usage)
            case StreamFailure(usage=usage):
                self._refused = self._is_untold and not usage.context_tokens
                self._tell(usage)
            case StreamStop(usage=usage):
                self._tell(usage)
            case StreamCallDone():
                pass

    def _tell(self, usage: Usage) -> None:
        if usage == Usage():
            return
        if usage.output_tokens != self._told.output_tokens:
            self._written = 0.0
        self._told = usage

    @property
    def used(self) -> Usage:
        """What is billed for a call that ended before its reply was whole; nothing for one that was refused."""
        if self._size is None or self._refused:
            return self._told
        told = self._told
        if not told.request_tokens:
            fresh = self._size.tokens - self._size.cached
            told = replace(told, input_tokens=fresh, cache_read_tokens=self._size.cached)
        written = round(self._written * BYTES_PER_TOKEN / self._size.bytes_per_token)
        return replace(told, output_tokens=told.output_tokens + written, estimated=True)

    def used_by_reply(self, *, believed: bool) -> Usage:
        """What a whole reply used: what the provider said, or our own estimate where it said nothing or too little.

        `believed`: its count can be right. What it left out was probably read from its cache.
        """
        told = self._told
        if self._size is None or (believed and told.context_tokens):
            return told
        if not told.request_tokens:
            return self.used
        missing = max(0, self._size.tokens - told.request_tokens)
        if not missing and told.output_tokens:
            return told
        return replace(self.used, cache_read_tokens=told.cache_read_tokens + missing)


def _tokens_of(text: str) -> float:
    """Estimate the tokens of a piece of a reply: those of prose are longer than those of code and data."""
    rest = "".join(_MARKS.findall(text))
    marks = sum(map(str.isascii, rest))
    other = bytes_of_text(rest) - marks
    return (len(text) - len(rest)) / _LETTERS_PER_TOKEN + marks / _MARKS_PER_TOKEN + other / LEAST_BYTES_PER_TOKEN


def priced(spec: ModelSpec | None, usage: Usage) -> tuple[Usage, float | None]:
    """Price what a call used, in US dollars: nothing costs nothing, and None is an unknown price, as without `spec`.

    What is priced as a relative of the model is marked as an estimate.
    """
    if not (usage.context_tokens or usage.searches):
        return usage, 0.0
    price = None if spec is None else cost(spec, usage)
    if price and spec is not None and spec.prices is not None:
        billed = spec.prices.of(usage.request_tokens)
        hour = bool(usage.cache_write_hour_tokens) and billed.cache_write_hour is None
        usage = replace(usage, estimated=usage.estimated or spec.prices.estimated or hour)
    return usage, price
