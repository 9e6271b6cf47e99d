"""What a request to the model consists of, block by block, with what each costs: `treadle context` and `/context`."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from treadle.app.config.layers import load_settings
from treadle.app.models.model_choice import Models
from treadle.context.log_reader import TranscriptReader
from treadle.context.provenance import Entry
from treadle.context.request_blocks import ContextBlock, blocks_of, text_of_block
from treadle.engine.core.past_history import last_state
from treadle.engine.core.state import State
from treadle.engine.runtime.assembling import CACHE_SECONDS
from treadle.engine.runtime.window import next_message
from treadle.present.context_use import CONTEXT_GROUPS, ContextUse
from treadle.present.words import clip_text, counted
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import (
    ENGINE,
    Compacted,
    ContextReady,
    Event,
    OfferChanged,
    Pin,
    ReplyFailed,
    ReplyFinished,
    SetModel,
)
from treadle.protocol.models import ModelRequest, ModelSpec, Prices, PriceStep, money
from treadle.protocol.sealed import system_text
from treadle.protocol.usage import Usage

_PER_PRICE = 1_000_000
_SHOWN = 24
_KINDS = {
    why: kind
    for kind, said in {
        "tools": ("tool offered to the model",),
        "system prompt": ("system prompt",),
        "rules": ("skill in use",),
        "your messages": ("said by the user", "answer of the user", "rejected by the user", "command of the user"),
        "mentions": ("mentioned by the user", "changed files, or what came with an answer"),
        "the model": ("said by the model", "thought by the model", "call of the model"),
        "files read": ("read by the model",),
        "results": ("result of a call",),
        "summary": ("summary of removed messages",),
        "notes": ("frame of the task", "note of Treadle", "surroundings of the step"),
    }.items()
    for why in said
}
"""What blocks are summed up as, by why they are there."""

_GROUPS = {
    "system prompt": "system prompt",
    "tools": "tools",
    "rules": "rules",
    "files read": "results",
    "results": "results",
}
"""What each kind is in a bar; all else are messages."""

_LONGEST_SOURCE = 60


class PricedBlock(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One block: `tokens` are estimated, `price` is in US dollars, None where the model's is unknown.

    `cached`: the provider had it in its cache, or will probably have it; None where neither is known.
    """

    source: str
    why: str
    tokens: int
    cached: bool | None
    price: float | None


class ContextReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A request in blocks. `estimated` is the sum of their tokens, `reported` what the provider counted, if it did."""

    blocks: tuple[PricedBlock, ...]
    estimated: int
    reported: int | None
    difference: int | None


class ContextShare(Record, frozen=True, kw_only=True, omit_defaults=False):
    """All blocks of a request of one kind; `tokens` are estimated."""

    kind: str
    blocks: int
    tokens: int


class SentRequest(Record, frozen=True, kw_only=True):
    """The request of a step as the log tells it, the model it went to, and what the provider counted.

    `counted` are the bytes of the request before and its reply with the provider's count of tokens; what came since is
    estimated by `bytes_per_token`. `warm` are the tokens from the beginning that the provider's cache probably holds,
    None where that cannot be said. With `sizes_images` an image is as large as its pixels.
    """

    model: str
    request: ModelRequest
    offer: OfferChanged
    entries: tuple[Entry, ...]
    bytes_per_token: float
    counted: tuple[int, int]
    sizes_images: bool
    usage: Usage | None
    warm: int | None = None

    @property
    def blocks(self) -> tuple[ContextBlock, ...]:
        """What it consists of."""
        return tuple(blocks_of(self.offer, self.entries, images=self.sizes_images))


def sent_request(events: Sequence[Event], step: int | None = None) -> SentRequest:
    """Read the request of a step, by default the last one, off a log. Raises `SessionError` where there is none."""
    steps = request_steps(events)
    if not steps or (step is not None and step not in steps):
        raise SessionError(
            "step-missing",
            f"The session has no step {step}." if steps else "The session has sent nothing to a model yet.",
            why=f"Its steps are {steps[0]} to {steps[-1]}." if steps else "No prompt was given.",
            fix="Name one of its steps with --step." if steps else "Give it a task first.",
        )
    wanted = steps[-1] if step is None else step
    end = max((at for at, event in enumerate(events) if _answers(event, wanted)), default=None)
    reply = None if end is None else events[end].data
    sent = events[:end]
    reader = TranscriptReader()
    for event in sent:
        reader.take(event)
    usage = reply.usage if isinstance(reply, ReplyFinished) and reply.usage.context_tokens else None
    return _request(reader, last_state(sent), f"step-{wanted}", usage=usage)


def request_steps(events: Sequence[Event]) -> Sequence[int]:
    """Number the steps whose requests were sent."""
    return [event.data.step for event in events if isinstance(event.data, ContextReady)]


def block_text(block: ContextBlock) -> str:
    """Write what a block holds for a person."""
    return text_of_block(block)


def next_request(events: Sequence[Event], now: int) -> SentRequest:
    """Put together what the next request would hold by now (ms since 1970), but for what surrounds each step.

    Raises `SessionError` where nothing was sent yet.
    """
    if not request_steps(events):
        sent_request(events)  # raises it
    reader, state = TranscriptReader(), last_state(events)
    last: ReplyFinished | None = None
    for event in events:
        reader.take(event)
        match event.data:
            case ReplyFinished() as last:
                pass
            case Compacted() | OfferChanged() | SetModel():
                last = None  # what the provider has begins otherwise
            case _:
                pass
    message = next_message(state, reader, "")
    if message.results or message.content:
        reader.take(Event(seq=state.seq + 1, at=now, source=ENGINE, data=message))
    warm: int | None = None
    if last is not None and (last.usage.cache_read_tokens or last.usage.cache_write_tokens):
        warm = last.usage.context_tokens if now - reader.replied_at < CACHE_SECONDS * 1_000 else 0
    return _request(reader, state, "next", warm=warm)


def _request(
    reader: TranscriptReader, state: State, name: str, *, usage: Usage | None = None, warm: int | None = None
) -> SentRequest:
    choice, transcript = state.choice, reader.transcript
    request = ModelRequest(
        id=name,
        model=choice.model,
        system=system_text(reader.offer.system),
        messages=transcript.messages(choice.tool_protocol),
        tools=reader.offer.tools,
    )
    return SentRequest(
        model=choice.model,
        request=request,
        offer=reader.offer,
        entries=tuple(transcript.entries()),
        bytes_per_token=transcript.bytes_per_token,
        counted=transcript.counted,
        sizes_images=transcript.sizes_images,
        usage=usage,
        warm=warm,
    )


def pinned_texts(events: Sequence[Event]) -> tuple[Pin, ...]:
    """Give what is pinned now."""
    return last_state(events).space.pins


def _answers(event: Event, step: int) -> bool:
    return isinstance(event.data, ReplyFinished | ReplyFailed) and event.data.step == step


def context_report(sent: SentRequest, prices: Prices | None) -> ContextReport:
    """Say what a request consists of; what its blocks cost is known where the prices are."""
    usage = sent.usage
    cached = sent.warm if usage is None else usage.cache_read_tokens
    priced: list[PricedBlock] = []
    ends = size = 0
    blocks = sent.blocks
    whole = round(_tokens_of(sum(block.size for block in blocks), sent)) if usage is None else usage.request_tokens
    billed = None if prices is None else prices.of(whole)
    for block in blocks:
        size += block.size
        tokens = max(0, round(_tokens_of(size, sent)) - ends)
        ends += tokens
        is_cached = None if cached is None else ends <= cached
        priced.append(_priced(block, tokens, billed, cached=is_cached))
    reported = None if usage is None else whole
    return ContextReport(
        blocks=tuple(priced),
        estimated=ends,
        reported=reported,
        difference=None if reported is None else reported - ends,
    )


def _tokens_of(size: int, sent: SentRequest) -> float:
    """Estimate the tokens of so many bytes from the request's beginning."""
    counted, tokens = sent.counted
    if not counted:
        return size / sent.bytes_per_token
    return min(size, counted) * tokens / counted + max(0, size - counted) / sent.bytes_per_token


def _priced(block: ContextBlock, tokens: int, prices: Prices | PriceStep | None, *, cached: bool | None) -> PricedBlock:
    price = None
    if prices is not None:
        read = prices.input if prices.cache_read is None else prices.cache_read
        price = round(tokens * (read if cached else prices.input) / _PER_PRICE, 8)
    return PricedBlock(source=block.source, why=block.why, tokens=tokens, cached=cached, price=price)


def context_shares(report: ContextReport) -> tuple[ContextShare, ...]:
    """Sum a request up by what its blocks are, in the order in which they first come."""
    groups: dict[str, list[PricedBlock]] = {}
    for block in report.blocks:
        groups.setdefault(_kind_of(block), []).append(block)
    return tuple(
        ContextShare(kind=kind, blocks=len(some), tokens=sum(one.tokens for one in some))
        for kind, some in groups.items()
    )


def context_use(report: ContextReport, window: int | None) -> ContextUse:
    """Sum a request up by what fills the window (tokens)."""
    sums = dict.fromkeys(CONTEXT_GROUPS, 0)
    for share in context_shares(report):
        sums[_GROUPS.get(share.kind, "messages")] += share.tokens
    return ContextUse(groups=tuple(sums.values()), window=window)


def _kind_of(block: PricedBlock) -> str:
    if block.why.startswith("rules of"):
        return "rules"
    return _KINDS.get(block.why, "other")


def context_lines(report: ContextReport, model: str) -> Iterator[str]:
    """Put a report into words: the largest blocks, the rest by what they are, and the sum beside the provider's."""
    yield f"The request to {model}: about {report.estimated:,} tokens in {counted(len(report.blocks), 'block')}."
    largest = sorted(report.blocks, key=lambda block: -block.tokens)[:_SHOWN]
    for block in report.blocks:
        if block in largest:
            yield _line(block)
    others = [block for block in report.blocks if block not in largest]
    if others:
        amount = sum(block.tokens for block in others)
        yield f"{amount:>9,}  {counted(len(others), 'smaller block')}"
    yield f"{report.estimated:>9,}  estimated"
    if report.reported is None:
        yield "           the provider has not counted it"
    else:
        yield f"{report.reported:>9,}  counted by the provider"
        yield f"{report.difference:>+9,}  difference"


def _line(block: PricedBlock) -> str:
    state = {True: "cached", False: "new", None: ""}[block.cached]
    price = "" if block.price is None else money(block.price)
    source = clip_text(" ".join(block.source.split()), _LONGEST_SOURCE)
    return f"{block.tokens:>9,}  {state:<6}  {price:>8}  {source}  ({block.why})"


def model_prices(model: str) -> Prices | None:
    """Look up what a model costs; None where its provider is not known any more. Raises `ConfigError` for settings."""
    known = known_model(model)
    return None if known is None else known.prices


def known_model(model: str) -> ModelSpec | None:
    """Look a model up; None where its provider is not known any more. Raises `ConfigError` for settings."""
    models = Models(load_settings({}))
    with suppress(ConfigError):
        return models.spec(model)
    return None
