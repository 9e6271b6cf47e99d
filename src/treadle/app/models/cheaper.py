"""Before a costly request: a configured model that would do it for less is named. Nothing is switched."""

from collections.abc import Iterator

from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models
from treadle.app.models.offered import NextRequest
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import Prices, money
from treadle.workspace.files.text import visible

_PER_PRICE = 1_000_000


def cheaper_model(models: Models, settings: Settings, sent: NextRequest) -> str:
    """Say what a request costs with its model and with the cheapest configured one; empty where it costs little.

    Empty also where no configured model is known to take it for less: what is cached is so only for its own model.
    """
    ref, tokens = sent.model, sent.cached + sent.new
    most = settings.context.costly_request
    prices = models.spec(ref).prices
    if not most or prices is None:
        return ""
    price = _price(prices, sent.cached, sent.new)
    if price <= most:
        return ""
    known = min(_others(models, settings, ref, tokens), default=None)
    if known is None or known[0] >= price:
        return ""
    other = visible(known[1])
    return (
        f"The next request has about {tokens:,} tokens and costs {money(price, estimated=True)} with {visible(ref)}, "
        f"before its reply. With {other}, which you have configured, it would cost {money(known[0], estimated=True)}: "
        f"/model {other}."
    )


def cheapest_configured(models: Models, settings: Settings, ref: str) -> str:
    """Give the cheapest model that the settings name and that reads for less than `ref`; `ref` where there is none."""
    prices = models.spec(ref).prices
    if prices is None:
        return ref
    found = min(_others(models, settings, ref, _PER_PRICE // 100), default=None)
    return found[1] if found is not None and found[0] < _price(prices, 0, _PER_PRICE // 100) else ref


def _price(prices: Prices, cached: int, new: int) -> float:
    """Estimate what the input of a request costs in US dollars."""
    billed = prices.of(cached + new)
    read = billed.input if billed.cache_read is None else billed.cache_read
    return (cached * read + new * billed.input) / _PER_PRICE


def _others(models: Models, settings: Settings, ref: str, tokens: int) -> Iterator[tuple[float, str]]:
    """Give the other models that the settings name, can be called, and hold so many tokens, with their prices."""
    named = (settings.model, settings.fallback, *(one.model for one in settings.modes.values()), *settings.models)
    for other in dict.fromkeys(named):
        if not other or other == ref:
            continue
        try:
            spec = models.choose(other).spec
        except ConfigError:
            continue
        if spec.prices is not None and (spec.context_window is None or tokens < spec.context_window):
            yield _price(spec.prices, 0, tokens), spec.ref
