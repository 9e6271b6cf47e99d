"""The models that a person can choose from in a session: what can be used now first, with prices and windows."""

from collections.abc import Sequence

from treadle.app.models.choosing import Models
from treadle.app.models.listing import catalogue_models, provider_lines
from treadle.protocol.base import Record

EFFORTS = {"off": 0, "low": 4_096, "medium": 16_384, "high": 32_768}
"""How much a model may think, in tokens: the steps that providers know who take no number."""


class OfferedModel(Record, frozen=True, kw_only=True):
    """A model, `provider/name`. `title` is its provider's name, `window` in tokens, prices in $ for a million tokens.

    `usable` says that it can be called with what is set, `key` where its key comes from. None is unknown.
    """

    ref: str
    title: str = ""
    window: int | None = None
    price_in: float | None = None
    price_out: float | None = None
    usable: bool = False
    key: str = ""
    thinks: bool = False


def offered_models(models: Models) -> Sequence[OfferedModel]:
    """List the known models, those of usable providers first.

    Reads the stored keys and the catalogue: to be called in a thread.
    """
    providers = {line.name: line for line in provider_lines(models)}
    return tuple(
        OfferedModel(
            ref=spec.ref,
            title=providers[spec.provider].title,
            window=spec.context_window,
            price_in=None if spec.prices is None else spec.prices.input,
            price_out=None if spec.prices is None else spec.prices.output,
            usable=providers[spec.provider].configured,
            key=providers[spec.provider].key_origin,
            thinks=spec.thinking,
        )
        for spec in catalogue_models(models, "")
        if spec.provider in providers
    )
