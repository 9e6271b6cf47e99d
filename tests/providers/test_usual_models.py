import re

import pytest

from treadle.providers.model_data import LISTED, TOOLS, ModelCatalogue, ModelFigures, built_in_models, decode_models
from treadle.providers.model_sources import encode_data
from treadle.providers.provider_rows import ROWS, ProviderRow
from treadle.providers.usual_models import (
    GENERAL_NAMES,
    family_of_model,
    is_retired,
    model_version,
    nearest_relative,
    plain_name,
    successor_of,
    usual_model,
    usual_of,
)

MODELS = built_in_models()
DAYS = ("2025-01-01", "2026-06-30", "2026-11-27", "2026-12-12", "2027-11-27", "2031-01-01")
SPECIAL = re.compile(r"embed|image|audio|tts|realtime|whisper|guard|moderation|rerank|\bmini\b|\bnano\b|\blite\b|^ft:")
HOSTED = [row for row in ROWS if MODELS.names(row) and not row.key_optional]


@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize("row", HOSTED, ids=lambda row: row.name)
def test_every_provider_has_a_usual_model_that_is_not_retired_on_any_day(row: ProviderRow, day: str) -> None:
    name = usual_model(MODELS, row, day)
    model = MODELS.section(row.section)[name]
    assert not is_retired(model, day)
    assert SPECIAL.search(name) is None


def test_what_ends_within_a_month_is_no_usual_model_where_there_is_another() -> None:
    for row in HOSTED:
        model = MODELS.section(row.section)[usual_model(MODELS, row, "2026-11-27")]
        assert not is_retired(model, "2026-12-27"), f"{row.name}/{model.name}"


def test_no_rule_names_a_model_or_a_provider_that_there_is_not() -> None:
    assert set(GENERAL_NAMES) <= {row.name for row in ROWS}
    for row in ROWS:
        matching = [name for name in MODELS.names(row) if re.search(GENERAL_NAMES.get(row.name, ""), name)]
        assert not MODELS.names(row) or matching, row.name
        assert re.search(r"\d[.-]\d", GENERAL_NAMES.get(row.name, "")) is None, "a version is the name of a model"


def model(name: str, *, price: float = 10.0, retires: str = "", can: int = TOOLS | LISTED) -> ModelFigures:
    return ModelFigures(name=name, can=can, input=1.0, output=price, retires=retires)


@pytest.mark.parametrize(
    ("models", "wanted"),
    [
        ([model("a-4"), model("a-5")], "a-5"),
        ([model("a-4"), model("a-5", retires="2026-01-01")], "a-4"),
        ([model("a-4"), model("a-5", retires="2026-12-10")], "a-4"),
        ([model("a-5", retires="2026-12-10"), model("a-4", retires="2026-01-01")], "a-5"),
        ([model("a-4"), model("a-5-preview")], "a-4"),
        ([model("a-5-preview")], "a-5-preview"),
        ([model("a-4"), model("a-5-image")], "a-4"),
        ([model("a-4"), model("a-5-mini")], "a-4"),
        ([model("a-4"), model("a-5", price=180.0)], "a-4"),
        ([model("a-4"), model("a-5", price=0.01)], "a-4"),
        ([model("a-4"), model("a-5", can=TOOLS)], "a-4"),
        ([model("a-4"), model("a-5", can=LISTED)], "a-4"),
        (
            [model("a-5-large", price=25.0), model("a-5-middle", price=12.0), model("a-5-small", price=5.0)],
            "a-5-middle",
        ),
        ([model("a-4.20"), model("a-4.7")], "a-4.7"),
        ([model("a-5"), model("a-5-2026-01-01")], "a-5"),
        ([model("a-4", retires="2026-01-01")], ""),
        ([], ""),
    ],
)
def test_the_usual_model_is_the_newest_general_one_that_lasts(models: list[ModelFigures], wanted: str) -> None:
    assert usual_of(models, "a", "2026-11-27") == wanted
    assert usual_of(reversed(models), "a", "2026-11-27") == wanted


@pytest.mark.parametrize(
    ("name", "family", "version"),
    [
        ("claude-opus-5-5", "claude opus", 5.5),
        ("anthropic/claude-sonnet-4.5", "claude sonnet", 4.5),
        ("claude-sonnet-4-5-20250929", "claude sonnet", 4.5),
        ("claude-sonnet-4-5@20250929", "claude sonnet", 4.5),
        ("gpt-6.1-sol-2026-09-29", "gpt sol", 6.1),
        ("gpt-4o", "gpt", 4.0),
        ("accounts/fireworks/models/glm-5p3", "glm", 5.3),
        ("qwen3-coder-30b-a3b", "qwen coder", 3.0),
        ("openai/gpt-oss-120b", "gpt oss", 0.0),
        ("llama-3.3-70b-instruct", "llama instruct", 3.3),
        ("gpt-35-turbo", "gpt turbo", 0.0),
        ("command-a-03-2025", "command", 0.0),
        ("grok-4.20-0309", "grok", 4.2),
        ("m", "", 0.0),
    ],
)
def test_families_and_versions_are_read_from_names(name: str, family: str, version: float) -> None:
    assert (family_of_model(name), model_version(name)) == (family, version)


def test_the_relative_of_a_model_is_the_next_of_its_family() -> None:
    names = ["claude-sonnet-4-5", "claude-sonnet-5-5", "claude-opus-5-5", "gpt-6.1-sol"]
    assert nearest_relative(names, "claude-sonnet-6") == "claude-sonnet-5-5"
    assert nearest_relative(names, "claude-sonnet-4") == "claude-sonnet-4-5"
    assert nearest_relative(names, "gpt-7-sol") == "gpt-6.1-sol"
    assert nearest_relative(names, "my-model") == ""
    assert nearest_relative(names, "7") == ""


def catalogue(*models: ModelFigures) -> ModelCatalogue:
    return decode_models(encode_data({"xai": {one.name: one for one in models}}, ()))


def test_a_successor_is_followed_to_one_that_lives_and_else_is_the_usual_model() -> None:
    row = next(row for row in ROWS if row.name == "xai")
    first = ModelFigures(name="grok-1", can=TOOLS, retires="2026-01-01", successor="grok-2")
    second = ModelFigures(name="grok-2", can=TOOLS, retires="2026-02-01", successor="grok-3")
    third = ModelFigures(name="grok-3", can=TOOLS)
    fourth = ModelFigures(name="grok-4", can=TOOLS)
    circle = ModelFigures(name="grok-5", can=TOOLS, retires="2026-01-01", successor="grok-5")
    known = catalogue(first, second, third, fourth, circle)
    assert [successor_of(known, row, name, "2026-11-27") for name in ("grok-1", "grok-2", "grok-5")] == [
        "grok-3",
        "grok-3",
        "grok-4",
    ]
    assert successor_of(known, row, "grok-1", "2026-01-15") == "grok-2"


def test_one_model_has_one_plain_name_wherever_it_is_sold() -> None:
    names = ("openai/gpt-5.1", "gpt-5.1", "openai-gpt-5.1", "databricks-gpt-5-1", "gpt-5.1-2025-11-13", "gpt-5.1:free")
    assert {plain_name(name) for name in names} == {"gpt-5-1"}


def test_what_its_maker_ends_is_ended_wherever_it_is_sold() -> None:
    ended = [one for one in MODELS.section("openrouter").values() if plain_name(one.name) == "gpt-5"]
    assert ended
    assert {one.retires for one in ended} == {MODELS.section("openai")["gpt-5"].retires} == {"2026-12-11"}
