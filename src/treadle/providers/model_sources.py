"""Public lists of models, read as figures: that of models.dev by provider, and that of LiteLLM by model."""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import msgspec

from treadle.providers.model_data import (
    DOCUMENTS,
    IMAGES,
    LISTED,
    MOST_TOKENS,
    THINKING,
    TOOLS,
    DataSource,
    ModelData,
    ModelFigures,
    StepFigures,
)
from treadle.providers.usual_models import inherited_ends, plain_name

Sections = Mapping[str, Mapping[str, ModelFigures]]
"""The models of each section, by name."""

_KINDS = ("chat", "responses")
_PER_TOKEN = 1_000_000
_NAMED_DAY = re.compile(r"(20[23]\d)-?([01]\d)-?([0-3]\d)(?!\d)")
_ABOVE = re.compile(r"input_cost_per_token_above_(\d{1,6})k_tokens")
_MOST_PRICE = 10_000.0
"""Dollars for a million tokens; a higher price is a mistake of a list and counts as unknown."""

_LITELLM = {
    "anthropic": "anthropic",
    "openai": "openai",
    "gemini": "google",
    "vertex_ai": "google-vertex",
    "vertex_ai-language-models": "google-vertex",
    "vertex_ai-zai_models": "google-vertex",
    "vertex_ai-openai_models": "google-vertex",
    "vertex_ai-qwen_models": "google-vertex",
    "vertex_ai-deepseek_models": "google-vertex",
    "vertex_ai-anthropic_models": "google-vertex-anthropic",
    "bedrock_converse": "amazon-bedrock",
    "bedrock": "amazon-bedrock",
    "bedrock_mantle": "amazon-bedrock",
    "azure": "azure",
    "azure_ai": "azure-cognitive-services",
    "openrouter": "openrouter",
    "deepseek": "deepseek",
    "mistral": "mistral",
    "xai": "xai",
    "groq": "groq",
    "together_ai": "togetherai",
    "fireworks_ai": "fireworks-ai",
    "cerebras": "cerebras",
    "sambanova": "sambanova",
    "nebius": "nebius",
    "moonshot": "moonshotai",
    "zai": "zai",
    "bigmodel": "zhipuai",
    "minimax": "minimax",
    "dashscope": "alibaba",
    "qwen_ai_platform": "alibaba-cn",
    "volcengine": "doubao",
    "vercel_ai_gateway": "vercel",
    "perplexity": "perplexity",
    "cohere_chat": "cohere",
    "baseten": "baseten",
    "deepinfra": "deepinfra",
    "novita": "novita-ai",
    "ovhcloud": "ovhcloud",
    "scaleway": "scaleway",
    "wandb": "wandb",
    "friendliai": "friendli",
    "inception": "inception",
    "cloudflare": "cloudflare-workers-ai",
    "databricks": "databricks",
    "snowflake": "snowflake",
    "aihubmix": "aihubmix",
    "xiaomi_mimo": "xiaomi",
}
"""The names of providers in that list, and the sections of ours that they speak of."""

_CLOUDS = frozenset({"amazon-bedrock", "azure", "google-vertex", "google-vertex-anthropic"})
"""Sections in which that list puts regions and offers before a slash of the name."""

_OWN_ENDS = _CLOUDS | {"azure-cognitive-services"}
"""Sections of those who run the models of closed makers by themselves, and end them on days of their own."""

_MAKERS = ("anthropic", "openai", "google", "xai")
"""Sections of makers who alone run their models: what they end is gone wherever it is sold."""


def read_list(value: object) -> Sections:
    """Read a public list, whichever of the two it is; raises `ValueError` for what is neither."""
    if not isinstance(value, dict) or not value:
        raise ValueError("it is not a list of models")
    entries = [one for one in value.values() if isinstance(one, dict)]
    if any("litellm_provider" in one for one in entries):
        found = _from_litellm(value)
    elif any(isinstance(one.get("models"), dict) for one in entries):
        found = _from_models_dev(value)
    else:
        found = {}
    shown = {
        section: {name: one for name, one in models.items() if (name + one.successor).isprintable()}
        for section, models in found.items()
    }
    sections = {name: models for name, models in shown.items() if models}
    if not sections:
        raise ValueError("it holds no models")
    return sections


def merged_lists(base: Sections, newer: Sections) -> Sections:
    """Put a newer list over what is known: its figures count, where it has any.

    What a maker ends is ended wherever it is sold. Models that the newer list does not have, though it knows others of
    their section, are no longer LISTED.
    """
    together = {
        name: _merged_section(base.get(name, {}), newer[name]) if name in newer else base[name]
        for name in sorted({*base, *newer})
    }
    ends = inherited_ends(together[name] for name in _MAKERS if name in together)
    return {
        name: models if name in _MAKERS else {one.name: _ended(one, ends, name, models) for one in models.values()}
        for name, models in together.items()
    }


def encode_data(sections: Sections, sources: tuple[DataSource, ...]) -> bytes:
    """Write a file of data, a section a line."""
    dated = [
        (one.released, f"{section}/{name}") for section, models in sections.items() for name, one in models.items()
    ]
    newest_date, newest = max(dated, default=("", ""))
    data = ModelData(
        date=max((source.date for source in sources), default=""),
        newest=newest,
        newest_date=newest_date,
        sources=sources,
        providers={
            name: msgspec.Raw(b"\n" + msgspec.json.encode(sorted(models.values(), key=lambda one: one.name)))
            for name, models in sections.items()
        },
    )
    return msgspec.json.encode(data) + b"\n"


def _from_models_dev(value: Mapping[str, Any]) -> dict[str, dict[str, ModelFigures]]:
    found: dict[str, dict[str, ModelFigures]] = {}
    for section, provider in value.items():
        models = _dict(_dict(provider).get("models"))
        rows = (_row_of_models_dev(name, one) for name, one in models.items() if isinstance(one, dict))
        found[section] = {row.name: row for row in rows if row is not None}
    return found


def _row_of_models_dev(name: str, model: Mapping[str, Any]) -> ModelFigures | None:
    """One model; None for what does not write text."""
    modalities, limit, cost = (_dict(model.get(key)) for key in ("modalities", "limit", "cost"))
    inputs = _list(modalities.get("input"))
    if "text" not in (_list(modalities.get("output")) or ["text"]) or "embed" in name:
        return None
    can = LISTED | TOOLS * bool(model.get("tool_call")) | THINKING * bool(model.get("reasoning"))
    can |= IMAGES * ("image" in inputs) | DOCUMENTS * ("pdf" in inputs)
    steps = (_step_of_models_dev(step) for step in _list(cost.get("tiers")))
    return ModelFigures(
        name=name,
        can=can,
        context_window=_tokens(limit.get("context")),
        max_output=_tokens(limit.get("output")),
        input=_price(cost.get("input")),
        output=_price(cost.get("output")),
        cache_read=_price(cost.get("cache_read")),
        cache_write=_price(cost.get("cache_write")),
        steps=tuple(sorted((step for step in steps if step is not None), key=lambda step: step.above)),
        released=_day(model.get("release_date")),
        retires=_day(model.get("last_updated")) if model.get("status") == "deprecated" else "",
    )


def _step_of_models_dev(step: object) -> StepFigures | None:
    match step:
        case {"tier": {"type": "context", "size": int(above)}, "input": int() | float(), "output": int() | float()}:
            prices = [_price(_dict(step).get(key)) for key in ("input", "output", "cache_read", "cache_write")]
            return _step(above, prices)
        case _:
            return None


def _from_litellm(value: Mapping[str, Any]) -> dict[str, dict[str, ModelFigures]]:
    found: dict[str, dict[str, ModelFigures]] = {}
    for key, model in value.items():
        if not isinstance(model, dict) or model.get("mode") not in _KINDS:
            continue
        provider = model.get("litellm_provider")
        section = _LITELLM.get(provider, "") if isinstance(provider, str) else ""
        name = _own_name(key, section)
        if name and not (model.get("max_input_tokens") is None and model.get("input_cost_per_token") is None):
            row = _row_of_litellm(name, section, model)
            rows = found.setdefault(section, {})
            rows[name] = row if name not in rows else _combined(rows[name], row)
    return found


def _own_name(key: object, section: str) -> str:
    """Give the name that the provider itself has for a model; empty for none, and for one of a certain region."""
    if not isinstance(key, str) or not section:
        return ""
    prefix, slash, rest = key.partition("/")
    known = prefix in _LITELLM and (_LITELLM[prefix] == section or section.startswith(_LITELLM[prefix]))
    name = rest if slash and known else key
    regional = section in _CLOUDS and "/" in name and not name.endswith("-maas")
    return "" if regional or name.startswith("ft:") or section.startswith(name) else name


def _row_of_litellm(name: str, section: str, model: Mapping[str, Any]) -> ModelFigures:
    flags = {
        TOOLS: "supports_function_calling",
        IMAGES: "supports_vision",
        THINKING: "supports_reasoning",
        DOCUMENTS: "supports_pdf_input",
    }
    prices = [_per_million(model.get(key)) for key in _litellm_prices("")]
    if prices[0] == prices[1] == 0:  # that list writes what it does not know as nothing
        prices = [None] * 5
    successor = model.get("successor_model")
    named = _NAMED_DAY.search(name)
    return ModelFigures(
        name=name,
        can=LISTED | sum(bit for bit, key in flags.items() if model.get(key) is True),
        context_window=_tokens(model.get("max_input_tokens")),
        max_output=_tokens(model.get("max_output_tokens")),
        input=prices[0],
        output=prices[1],
        cache_read=prices[2],
        cache_write=prices[3] or None,
        steps=tuple(_litellm_steps(model)),
        released=_day("-".join(named.groups())) if named else "",
        retires=_day(model.get("deprecation_date")),
        successor=_own_name(successor, section),
        cache_write_hour=prices[4] or None,
    )


def _litellm_prices(end: str) -> tuple[str, ...]:
    names = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    writes = ("cache_creation_input_token_cost", "cache_creation_input_token_cost_above_1hr")
    return tuple(f"{name}{end}" for name in (*names, *writes))


def _litellm_steps(model: Mapping[str, Any]) -> Iterator[StepFigures]:
    """Give the prices of long requests, the shortest first."""
    above = sorted(int(found[1]) for key in model if (found := _ABOVE.fullmatch(key)))
    steps = [(size * 1000, [model.get(key) for key in _litellm_prices(f"_above_{size}k_tokens")]) for size in above]
    for tier in _list(model.get("tiered_pricing")):
        match tier:
            case {"range": [int() | float() as start, *_]} if start > 0:
                steps.append((int(start), [tier.get(key) for key in _litellm_prices("")]))
            case _:
                pass
    for size, prices in steps:
        step = _step(size, [_per_million(price) for price in prices])
        if step is not None:
            yield step


def _step(above: int, prices: list[float | None]) -> StepFigures | None:
    if prices[0] is None or prices[1] is None or not 0 < above <= MOST_TOKENS:
        return None
    return StepFigures(above, prices[0], prices[1], *prices[2:])


def _merged_section(old: Mapping[str, ModelFigures], new: Mapping[str, ModelFigures]) -> Mapping[str, ModelFigures]:
    kept = {name: msgspec.structs.replace(one, can=one.can & ~LISTED) for name, one in old.items()}
    if not any(one.retires for one in new.values()):  # a list that says of no model when it ends knows nothing of that
        new = {name: _with_end(one, kept.get(name)) for name, one in new.items()}
    return {**kept, **{name: _combined(kept[name], one) if name in kept else one for name, one in new.items()}}


def _with_end(model: ModelFigures, old: ModelFigures | None) -> ModelFigures:
    if old is None or not old.retires:
        return model
    return msgspec.structs.replace(model, retires=old.retires, successor=old.successor)


def _combined(old: ModelFigures, new: ModelFigures) -> ModelFigures:
    """Take what the newer figures say, and the older ones where they say nothing; prices belong together."""
    priced = new if new.input is not None and new.output is not None else old
    return ModelFigures(
        name=new.name,
        can=old.can | new.can,
        context_window=new.context_window or old.context_window,
        max_output=new.max_output or old.max_output,
        input=priced.input,
        output=priced.output,
        cache_read=priced.cache_read,
        cache_write=priced.cache_write,
        cache_write_hour=priced.cache_write_hour,
        steps=priced.steps,
        released=old.released or new.released,
        retires=new.retires,
        successor=new.successor,
    )


def _ended(
    model: ModelFigures, ends: Mapping[str, ModelFigures], section: str, models: Mapping[str, ModelFigures]
) -> ModelFigures:
    """Let a model that is sold elsewhere end with its maker's."""
    end = ends.get(plain_name(model.name))
    if end is None or model.retires or (model.can & LISTED and section in _OWN_ENDS):
        return model
    wanted = plain_name(end.successor)
    successor = next((name for name in models if wanted and plain_name(name) == wanted), "")
    return msgspec.structs.replace(model, retires=end.retires, successor=successor)


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _tokens(value: object) -> int | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS
    return int(value) if known and isinstance(value, int | float) else None


def _price(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _MOST_PRICE:
        return None
    return int(value) if float(value).is_integer() else round(float(value), 6)


def _per_million(value: object) -> float | None:
    return _price(value * _PER_TOKEN) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _day(value: object) -> str:
    try:
        return value if isinstance(value, str) and date.fromisoformat(value).isoformat() == value else ""
    except ValueError:
        return ""
