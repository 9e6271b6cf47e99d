"""What is known of models offline: figures only, from the packages that `models.json` names."""

from functools import cache
from pathlib import Path

import msgspec

from treadle.protocol.models import ModelSpec, Prices, PriceStep
from treadle.providers.provider_rows import ProviderRow

DATA = Path(__file__).with_name("models.json")
TOOLS, IMAGES, THINKING, DOCUMENTS = 1, 2, 4, 8
"""The bits of `ModelFigures.can`."""


class StepFigures(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The prices of a request with more than `above` tokens of input."""

    above: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class ModelFigures(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One model, as short as JSON allows. Prices are dollars for a million tokens; None is unknown."""

    name: str
    can: int
    context_window: int | None = None
    max_output: int | None = None
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    steps: tuple[StepFigures, ...] = ()


class _Source(msgspec.Struct, frozen=True):
    """Where figures come from."""

    name: str
    version: str
    licence: str


class ModelData(msgspec.Struct, frozen=True):
    """The whole file: day of its making (ISO), sources, and the models of each provider sorted by name, as JSON."""

    date: str
    sources: tuple[_Source, ...]
    providers: dict[str, msgspec.Raw]


@cache
def model_data() -> ModelData:
    """Read the file, once; what it holds of a provider is read when that is asked for, which is most often one."""
    return msgspec.json.decode(DATA.read_bytes(), type=ModelData)


@cache
def models_of(section: str) -> dict[str, ModelFigures]:
    """Give the models of a section of the file, by name."""
    raw = model_data().providers.get(section)
    found = () if raw is None else msgspec.json.decode(raw, type=tuple[ModelFigures, ...])
    return {figures.name: figures for figures in found}


def model_spec(row: ProviderRow, name: str) -> ModelSpec:
    """What is known of a model at a provider; of an unknown one, nothing: windows, limits and prices are None."""
    figures = models_of(row.section).get(name)
    if figures is None:
        return ModelSpec(provider=row.name, name=name)
    prices = None
    if figures.input is not None and figures.output is not None:
        prices = Prices(
            input=figures.input,
            output=figures.output,
            cache_read=figures.cache_read,
            cache_write=figures.cache_write,
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
    )


def model_names(row: ProviderRow) -> tuple[str, ...]:
    """The known models of a provider."""
    return tuple(models_of(row.section))


def nearest_models(row: ProviderRow, name: str) -> tuple[str, ...]:
    """Known names at a provider that are like this one, the nearest first."""
    from difflib import get_close_matches

    return tuple(get_close_matches(name, model_names(row), n=3))
