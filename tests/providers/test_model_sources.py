from typing import Any

import msgspec
import pytest

from treadle.providers.model_data import (
    DOCUMENTS,
    IMAGES,
    LISTED,
    THINKING,
    TOOLS,
    DataSource,
    ModelFigures,
    StepFigures,
    decode_models,
)
from treadle.providers.model_sources import encode_data, merged_lists, read_list

PER_MILLION = 1e-6


def entry(provider: str, **more: Any) -> dict[str, Any]:
    """One model as LiteLLM's list has it."""
    return {
        "litellm_provider": provider,
        "mode": "chat",
        "max_input_tokens": 1000,
        "max_output_tokens": 100,
        "input_cost_per_token": 2 * PER_MILLION,
        "output_cost_per_token": 8 * PER_MILLION,
        **more,
    }


def test_a_model_of_the_list_by_model_is_read_whole() -> None:
    listed = {
        "sample_spec": {"litellm_provider": "one of them", "mode": "one of: chat"},
        "xai/grok-4.7": entry(
            "xai",
            supports_function_calling=True,
            supports_vision=True,
            supports_reasoning=True,
            supports_pdf_input=True,
            cache_read_input_token_cost=0.5 * PER_MILLION,
            deprecation_date="2030-01-31",
            successor_model="xai/grok-5",
            input_cost_per_token_above_200k_tokens=4 * PER_MILLION,
            output_cost_per_token_above_200k_tokens=16 * PER_MILLION,
            input_cost_per_token_above_200k_tokens_batches=1 * PER_MILLION,
        ),
    }
    assert read_list(listed) == {
        "xai": {
            "grok-4.7": ModelFigures(
                name="grok-4.7",
                can=TOOLS | IMAGES | THINKING | DOCUMENTS | LISTED,
                context_window=1000,
                max_output=100,
                input=2,
                output=8,
                cache_read=0.5,
                steps=(StepFigures(200_000, 4, 16),),
                retires="2030-01-31",
                successor="grok-5",
            )
        }
    }


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("xai/g", {"mode": "embedding"}),
        ("xai/g", {"mode": "image_generation"}),
        ("xai/g", {"litellm_provider": "nobody"}),
        ("xai/g", {"litellm_provider": ["xai"]}),
        ("ft:g", {}),
        ("azure/eu/g", {"litellm_provider": "azure"}),
        ("bedrock/us-east-1/g", {"litellm_provider": "bedrock"}),
        ("xai/g", {"max_input_tokens": None, "input_cost_per_token": None}),
    ],
)
def test_what_is_no_model_to_work_with_is_left_out(key: str, more: dict[str, Any]) -> None:
    listed = {"xai/kept": entry("xai"), key: {**entry("xai"), **more}}
    assert {name: list(models) for name, models in read_list(listed).items()} == {"xai": ["kept"]}


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}, (None, None)),
        ({"input_cost_per_token": "2"}, (None, 8)),
        ({"input_cost_per_token": -1.0}, (None, 8)),
        ({"input_cost_per_token": 1e9}, (None, 8)),
        ({"input_cost_per_token": True}, (None, 8)),
    ],
)
def test_a_price_that_is_none_is_unknown_and_not_nothing(more: dict[str, Any], wanted: tuple[Any, Any]) -> None:
    found = read_list({"xai/g": entry("xai", **more)})["xai"]["g"]
    assert (found.input, found.output) == wanted


@pytest.mark.parametrize("tokens", [0, -1, "1000", None, True, 10**12, 1.5e300])
def test_a_window_that_is_none_is_unknown(tokens: object) -> None:
    assert read_list({"xai/g": entry("xai", max_input_tokens=tokens)})["xai"]["g"].context_window is None


@pytest.mark.parametrize("day", ["2026-13-01", "soon", "2026-1-1", None, 20260101])
def test_a_day_that_is_none_is_unknown(day: object) -> None:
    assert read_list({"xai/g": entry("xai", deprecation_date=day)})["xai"]["g"].retires == ""


def test_a_model_of_the_list_by_provider_is_read_whole() -> None:
    listed = {
        "xai": {
            "id": "xai",
            "models": {
                "grok-4": {
                    "tool_call": True,
                    "reasoning": True,
                    "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
                    "limit": {"context": 256_000, "output": 64_000},
                    "cost": {
                        "input": 3,
                        "output": 15,
                        "cache_read": 0.75,
                        "tiers": [{"input": 6, "output": 30, "tier": {"size": 128_000, "type": "context"}}],
                    },
                    "release_date": "2025-07-09",
                },
                "grok-image": {"modalities": {"output": ["image"]}},
                "old": {"status": "deprecated", "last_updated": "2025-01-01"},
            },
        }
    }
    assert read_list(listed)["xai"] == {
        "grok-4": ModelFigures(
            name="grok-4",
            can=TOOLS | IMAGES | THINKING | DOCUMENTS | LISTED,
            context_window=256_000,
            max_output=64_000,
            input=3,
            output=15,
            cache_read=0.75,
            steps=(StepFigures(128_000, 6, 30),),
            released="2025-07-09",
        ),
        "old": ModelFigures(name="old", can=LISTED, retires="2025-01-01"),
    }


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        "x",
        3,
        {"a": 1},
        {"a": {}},
        {"a": {"models": {}}},
        {"a": {"models": 3}},
        {"a": {"models": {"m": 3}}},
    ],
)
def test_what_is_no_list_of_models_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="it "):
        read_list(value)


VALUES: list[Any] = [
    None,
    True,
    0,
    7,
    -1,
    10**30,
    1e308,
    "",
    "x",
    [],
    [7],
    ["x"],
    [{}],
    {},
    {"x": 7},
    {"range": [1e308]},
]
PER_MODEL = (*entry(""), "tiered_pricing", "deprecation_date", "successor_model", "supports_vision")
PER_PROVIDER = ("modalities", "limit", "cost", "tool_call", "release_date", "status", "last_updated")


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_field_of_any_kind_spoils_no_list(value: Any) -> None:
    for field in PER_MODEL:
        assert "kept" in read_list({"xai/kept": entry("xai"), "xai/g": entry("xai", **{field: value})})["xai"]
    inner = [{key: {name: value}} for key in ("modalities", "limit", "cost") for name in ("input", "output", "tiers")]
    for fields in [*({field: value} for field in PER_PROVIDER), *inner]:
        listed = {"xai": {"models": {"kept": {}, "g": fields}}, "openai": {"models": value}, "google": value}
        sections = read_list(listed)
        assert "kept" in sections["xai"]
        encode_data(sections, ())


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\nb", "a\u202eb"])
def test_names_that_would_write_to_the_screen_what_they_want_are_left_out(name: str) -> None:
    kept = entry("xai")
    assert list(read_list({"xai/kept": kept, f"xai/{name}": kept})["xai"]) == ["kept"]
    assert list(read_list({"xai/kept": kept, "xai/g": entry("xai", successor_model=name)})["xai"]) == ["kept"]
    assert list(read_list({"xai": {"models": {"kept": {}, name: {}}}})["xai"]) == ["kept"]


def test_a_newer_list_counts_where_it_says_something() -> None:
    base = {
        "xai": {
            "old": ModelFigures(name="old", can=TOOLS | LISTED),
            "both": ModelFigures("both", TOOLS | LISTED, 5, 6, 1, 2, released="2025-01-01", retires="2026-01-01"),
        },
        "groq": {"other": ModelFigures(name="other", can=LISTED)},
    }
    newer = {"xai": {"both": ModelFigures("both", IMAGES | LISTED, 7, None, 3, 4), "new": ModelFigures("new", LISTED)}}
    assert merged_lists(base, newer) == {
        "groq": base["groq"],
        "xai": {
            "old": ModelFigures(name="old", can=TOOLS),
            "both": ModelFigures(
                "both", TOOLS | IMAGES | LISTED, 7, 6, 3, 4, released="2025-01-01", retires="2026-01-01"
            ),
            "new": ModelFigures("new", LISTED),
        },
    }


def test_a_list_that_knows_ends_takes_back_one_that_it_no_longer_has() -> None:
    base = {"xai": {"a": ModelFigures(name="a", can=LISTED, retires="2026-01-01")}}
    newer = {
        "xai": {"a": ModelFigures(name="a", can=LISTED), "b": ModelFigures(name="b", can=LISTED, retires="2027-01-01")}
    }
    assert merged_lists(base, newer)["xai"]["a"].retires == ""


def test_written_data_is_read_back() -> None:
    models = {
        "m": ModelFigures("m", TOOLS, 5, 6, 1.5, 2, released="2025-01-01", successor="n"),
        "n": ModelFigures("n", 0),
    }
    sources = (DataSource("a", "1", "MIT", "2026-01-02"), DataSource("b", "2", "MIT", "2026-01-01"))
    read = decode_models(encode_data({"xai": models}, sources))
    assert (read.data.date, read.data.newest, read.data.newest_date) == ("2026-01-02", "xai/m", "2025-01-01")
    assert (read.data.sources, read.section("xai")) == (sources, models)
    with pytest.raises(msgspec.MsgspecError):
        decode_models(b'{"date":')
