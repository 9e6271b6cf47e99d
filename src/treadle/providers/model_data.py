"""What is known of models offline: figures only, from the sources that the data name."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from treadle.protocol.models import ModelSpec, Prices, PriceStep
from treadle.providers.provider_rows import ProviderRow

DATA = Path(__file__).with_name("models.json")
TOOLS, IMAGES, THINKING, DOCUMENTS, LISTED = 1, 2, 4, 8, 16
"""The bits of `ModelFigures.can`; LISTED says that the newest source which knows the section has the model."""


MOST_TOKENS = 100_000_000
"""More tokens than any model holds: a larger figure of a list or a server is a mistake and counts as unknown."""


class StepFigures(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The prices of a request with more than `above` tokens of input."""

    above: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_hour: float | None = None


class ModelFigures(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One model, as short as JSON allows. Prices are dollars for a million tokens; None is unknown.

    `released` and `retires` are days (ISO), empty if unknown; `successor` is the name of the model that the provider
    names in its place.
    """

    name: str
    can: int
    context_window: int | None = None
    max_output: int | None = None
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    steps: tuple[StepFigures, ...] = ()
    released: str = ""
    retires: str = ""
    successor: str = ""
    cache_write_hour: float | None = None


class DataSource(msgspec.Struct, frozen=True):
    """Where figures come from; `date` is the day (ISO) on which that version was published."""

    name: str
    version: str
    licence: str
    date: str


class ModelData(msgspec.Struct, frozen=True):
    """The whole file: its sources, and the models of each provider sorted by name, as JSON.

    `date` is the day (ISO) of its newest source; `newest` is the model, `section/name`, with the latest day of release
    that is known, and `newest_date` that day.
    """

    date: str
    newest: str
    newest_date: str
    sources: tuple[DataSource, ...]
    providers: dict[str, msgspec.Raw]


class ModelCatalogue:
    """The models of one file of data; what it holds of a provider is read when that is asked for."""

    def __init__(self, data: ModelData) -> None:
        self.data = data
        self._sections: dict[str, Mapping[str, ModelFigures]] = {}

    def section(self, name: str) -> Mapping[str, ModelFigures]:
        """Give the models of a section, by name."""
        if name not in self._sections:
            raw = self.data.providers.get(name)
            found = () if raw is None else msgspec.json.decode(raw, type=tuple[ModelFigures, ...])
            self._sections[name] = {figures.name: figures for figures in found}
        return self._sections[name]

    def names(self, row: ProviderRow) -> tuple[str, ...]:
        """Give the known models of a provider."""
        return tuple(self.section(row.section))

    def spec(self, row: ProviderRow, name: str) -> ModelSpec:
        """Tell what is known of a model at a provider; of an unknown one, nothing: windows and prices are None."""
        return _spec_of(row, name, self.section(row.section).get(name))


def decode_models(raw: bytes) -> ModelCatalogue:
    """Read a file of data, its sections when they are asked for; raises `msgspec.MsgspecError`."""
    return ModelCatalogue(msgspec.json.decode(raw, type=ModelData))


@cache
def built_in_models() -> ModelCatalogue:
    """Read the data of this version, once."""
    return decode_models(DATA.read_bytes())


def _spec_of(row: ProviderRow, name: str, figures: ModelFigures | None) -> ModelSpec:
    if figures is None:
        return ModelSpec(provider=row.name, name=name)
    prices = None
    if figures.input is not None and figures.output is not None:
        prices = Prices(
            input=figures.input,
            output=figures.output,
            cache_read=figures.cache_read,
            cache_write=figures.cache_write,
            cache_write_hour=figures.cache_write_hour,
            steps=tuple(PriceStep(**msgspec.structs.asdict(step)) for step in figures.steps),
        )
    return ModelSpec(
        provider=row.name,
        name=name,
        context_window=figures.context_window,
        max_output=figures.max_output,
        prices=prices,
        native_tools=bool(figures.can & TOOLS),
        images=bool(figures.can & IMAGES),
        thinking=bool(figures.can & THINKING),
        documents=bool(figures.can & DOCUMENTS),
        released=figures.released,
        retires=figures.retires,
        successor=figures.successor,
    )
