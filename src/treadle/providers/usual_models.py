"""Which model of a provider is meant where nobody names one, and which known model is most like an unknown one."""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta

from treadle.providers.model_data import LISTED, TOOLS, ModelCatalogue, ModelFigures
from treadle.providers.provider_rows import ProviderRow

GENERAL_NAMES = {
    "anthropic": r"^claude-",
    "openai": r"^gpt-\d",
    "openai-chat": r"^gpt-\d",
    "gemini": r"^gemini-\d",
    "vertex": r"^gemini-\d",
    "vertex-anthropic": r"^claude-",
    "vertex-openai": r"-maas$",
    "vertex-express": r"^gemini-\d",
    "bedrock": r"^global\.anthropic\.claude-",
    "bedrock-mantle": r"^anthropic\.claude-",
    "bedrock-openai": r"^openai\.gpt-\d",
    "azure": r"^gpt-\d",
    "openrouter": r"^anthropic/claude-",
    "deepseek": r"^deepseek-v\d",
    "mistral": r"^mistral-(large|medium)-\d",
    "xai": r"^grok-\d",
    "xai-responses": r"^grok-\d",
    "qwen": r"^qwen",
    "qwen-cn": r"^qwen",
    "doubao": r"^doubao-",
    "vercel-ai-gateway": r"^anthropic/claude-",
    "perplexity": r"^sonar",
    "cohere": r"^command-a-plus",
    "databricks": r"^databricks-claude-",
}
"""Regular expressions for the names of a provider's own general models, where it has others, too."""

USUAL_PRICE = 10.0
"""Dollars for a million tokens of output, about what general models cost that write code (November 2026)."""
_CLASS = (0.25, 30.0)
"""Below are models for small tasks, above those for special ones (dollars for a million tokens of output)."""

_LASTING_DAYS = 30
"""A model that ends earlier is taken only where there is nothing else."""

_SPECIAL = (
    "audio beta cyber default discovery embed embedding eu exp experimental fast free guard highspeed image instant "
    "latest law lightning lite live math mini moderation multi nano non ocr omni preview realtime rerank research "
    "robotics router safeguard search small speech spot tiny transcribe translate tts turbo us video vision vl voice"
)
"""Words in the names of models that are not for general work, not finished, or another name of a model."""

_DATES = re.compile(r"20\d\d-?\d\d-?\d\d|\d\d-20\d\d|(?<=[-_@])\d{4,8}(?!\d)")
_SIZES = re.compile(r"(?<![a-z])[ae]?\d+(?:\.\d+)?x?\d*(?:b|e|k|t)(?![a-z])|fp\d+|int\d|-v\d+(?::\d+)?$")
_VERSION = re.compile(r"(?<!\d)(1?\d)(?:[.\-_](\d{1,2}))?(?!\d)")
_MAKER = re.compile(r"^(?:(?:databricks|openai|anthropic|google|xai|global)-)+")


def usual_model(catalogue: ModelCatalogue, row: ProviderRow, today: str) -> str:
    """Name the newest general model of a provider that is not retired on a day (ISO); empty where none is known.

    `GENERAL_NAMES` says which names are the provider's general ones. What is not finished, small, costly or for a
    special use is taken only where there is nothing else.
    """
    return usual_of(catalogue.section(row.section).values(), row.name.partition("@")[0], today)


def usual_of(models: Iterable[ModelFigures], provider: str, today: str) -> str:
    """Name the one of some models that `usual_model` would name."""
    live = [one for one in models if not is_retired(one, today)]
    family = [one for one in live if re.search(GENERAL_NAMES.get(provider, ""), one.name)]
    with_tools = [one for one in family or live if one.can & TOOLS]
    soon = (date.fromisoformat(today) + timedelta(days=_LASTING_DAYS)).isoformat()
    return max(with_tools or family or live, key=lambda one: _rank(one, soon)).name if live else ""


def is_retired(model: ModelFigures, today: str) -> bool:
    """Whether the provider has ended a model by a day (ISO)."""
    return bool(model.retires) and model.retires <= today


def successor_of(catalogue: ModelCatalogue, row: ProviderRow, name: str, today: str) -> str:
    """Name the model to use in place of one that is retired: what the provider says, else its usual model."""
    models = catalogue.section(row.section)
    seen = {name}
    while (found := models.get(name)) is not None and found.successor and found.successor not in seen:
        name = found.successor
        seen.add(name)
        if name not in models or not is_retired(models[name], today):
            return name
    return usual_model(catalogue, row, today)


def nearest_relative(models: Iterable[str], name: str) -> str:
    """Name the known model of the same family as an unknown one, the one next to it in version; empty for none."""
    version, same = model_version(name), _of_family(models, name)
    versions = {one: model_version(one) for one in same}
    return min(same, key=lambda one: (abs(versions[one] - version), -versions[one], len(one), one), default="")


def is_newest(models: Iterable[str], name: str) -> bool:
    """Whether an unknown model is of a known family and not older than any of it, nor one of them in other letters."""
    same = _of_family(models, name)
    version, plain = model_version(name), plain_name(name)
    return bool(same) and all(model_version(one) <= version and plain_name(one) != plain for one in same)


def _of_family(models: Iterable[str], name: str) -> list[str]:
    family = family_of_model(name)
    words = family.split()
    like = (one for one in models if words and all(word in one.lower() for word in words))
    return [one for one in like if family_of_model(one) == family]


def family_of_model(name: str) -> str:
    """Give the words of a name, without its maker, date, size and version: those of the same family share them."""
    words = re.split(r"[^a-z]+", _undated(name))
    return " ".join(word for word in words if len(word) > 1 and word not in ("latest", "preview", "default", "it"))


def model_version(name: str) -> float:
    """Read the version in a model's name as the decimal that makers mean: 4.20 is older than 4.3; 0 where none is."""
    found = _VERSION.search(_undated(name))
    return float(f"{found[1]}.{found[2] or 0}") if found else 0.0


def _undated(name: str) -> str:
    base = name.rpartition("/")[2].partition("@")[0].lower()
    base = re.sub(r"(?<=\d)p(?=\d)", ".", base)
    return _SIZES.sub("", _DATES.sub("", base))


def _rank(model: ModelFigures, soon: str) -> tuple[bool, bool, bool, bool, float, float, int, str, str]:
    words = set(re.split(r"[^a-z]+", model.name.lower()))
    price = model.output or 0.0
    return (
        not is_retired(model, soon),
        bool(model.can & LISTED),
        not words & set(_SPECIAL.split()) and not model.name.startswith("ft:"),
        _CLASS[0] <= price <= _CLASS[1],
        model_version(model.name),
        -abs(math.log(price / USUAL_PRICE)) if price else -math.inf,
        -len(model.name),
        model.released,
        model.name,
    )


def inherited_ends(makers: Iterable[Mapping[str, ModelFigures]]) -> dict[str, ModelFigures]:
    """Give the models that their makers end, by the name that resellers write, too."""
    return {plain_name(one.name): one for models in makers for one in models.values() if one.retires}


def plain_name(name: str) -> str:
    """Give a model's name without maker, separators and date: one model has one at all who sell it."""
    base = name.rpartition("/")[2].partition("@")[0].partition(":")[0].lower()
    return _MAKER.sub("", re.sub(r"[^a-z0-9]+", "-", _DATES.sub("", base)).strip("-"))
