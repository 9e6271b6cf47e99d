import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.app.local_servers import Asked, http_server
from tests.providers.support import collect, request
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import ModelSettings, ProfileSettings, ProviderSettings, Settings
from treadle.app.models import known
from treadle.app.models.known import ASSUMED_WINDOW, data_notice, day, fetched_file, known_models
from treadle.app.models.model_choice import Models
from treadle.app.models.model_rows import catalogue_models, offered_models
from treadle.app.models.updating import update_models
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelRequest, Prices, StreamFailure
from treadle.protocol.notifications import Notice
from treadle.providers.model_data import LISTED, TOOLS, DataSource, ModelFigures, built_in_models
from treadle.providers.model_sources import encode_data
from treadle.providers.provider_rows import ROWS, Proof

KEYED = [
    row for row in ROWS if row.keys and not row.key_optional and row.proof is Proof.KEY and "{" not in row.base_url
]
FREE = Prices(input=0.0, output=0.0)
PAST, SOON, FAR = "2020-01-01", day(5), "2099-01-01"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


def fetch(*models: ModelFigures, section: str = "xai", date: str = "2098-01-01") -> None:
    """Put a list in place as if it had been fetched."""
    source = DataSource("test", "1", "MIT", date)
    fetched_file().write_bytes(encode_data({section: {one.name: one for one in models}}, (source,)))


def figures(name: str, **more: Any) -> ModelFigures:
    return ModelFigures(name, TOOLS | LISTED, 500_000, 50_000, 2.0, 6.0, **more)


@pytest.mark.parametrize("row", KEYED, ids=lambda row: row.name)
def test_one_key_is_enough_for_a_model_that_is_not_retired(row: Any) -> None:
    chosen = Models(Settings(), {row.keys[0]: "key-for-a-test-1"}).choose()
    assert row.keys[0] in Models(Settings(), {}).row(chosen.spec.provider).keys
    assert not chosen.spec.retires or chosen.spec.retires > day()
    assert chosen.spec.context_window


def test_where_no_model_of_a_provider_lives_its_own_list_is_asked() -> None:
    fetch(figures("grok-1", retires=PAST))

    def answer(asked: Asked) -> tuple[int, object]:
        assert (asked.path, asked.headers["authorization"]) == ("/v1/models", "Bearer xai-test-12345678")
        return 200, {"data": [{"id": "grok-9-mini"}, {"id": "grok-9", "context_length": 77_000}, {"id": "grok-8"}]}

    async def choose() -> Models:
        async with http_server(answer) as url:
            settings = Settings(providers={"xai": ProviderSettings(base_url=f"{url}/v1")})
            models = Models(settings, {"XAI_API_KEY": "xai-test-12345678"})
            await models.ask_server()
        return models

    spec = asyncio.run(choose()).choose().spec
    assert (spec.ref, spec.context_window) == ("xai/grok-9", 77_000)


def test_where_nobody_knows_a_model_the_error_says_what_to_do() -> None:
    fetch(figures("grok-1", retires=PAST))
    with pytest.raises(ConfigError, match="no model of it is known") as caught:
        Models(Settings(), {"XAI_API_KEY": "xai-test-12345678"}).choose()
    assert caught.value.code == "no-model"
    assert "--model xai/NAME" in caught.value.fix
    assert "treadle models --update" in caught.value.fix


def asking(model: str) -> ModelRequest:
    return msgspec.structs.replace(request(), model=model)


def notices(ref: str, **settings: Any) -> tuple[str, ...]:
    return Models(Settings(model=ref, **settings), {"XAI_API_KEY": "xai-test-12345678"}).choose().notices


def test_a_retired_model_says_so_and_names_what_takes_its_place() -> None:
    fetch(figures("grok-1", retires=PAST, successor="grok-2"), figures("grok-2"))
    (told,) = notices("xai/grok-1")
    assert told == (
        f"xai/grok-1 was retired on {PAST}. The provider may refuse it. "
        "Use xai/grok-2 in its place: --model xai/grok-2, or /model xai/grok-2 in a session."
    )
    assert notices("xai/grok-2") == ()


@pytest.mark.parametrize(("retires", "count"), [(SOON, 1), (FAR, 0), ("", 0)])
def test_a_model_that_ends_within_a_month_is_told(retires: str, count: int) -> None:
    fetch(figures("grok-1", retires=retires), figures("grok-2"))
    told = notices("xai/grok-1")
    assert len(told) == count
    assert all(f"will be retired on {retires}. Use xai/grok-2" in text for text in told)


def test_retired_models_are_not_offered_and_marked_where_all_are_listed() -> None:
    fetch(figures("grok-1", retires=PAST), figures("grok-2"))
    models = Models(Settings(), {"XAI_API_KEY": "xai-test-12345678"})
    assert [one.ref for one in offered_models(models) if one.ref.startswith("xai/")] == ["xai/grok-2"]
    assert [spec.retires for spec in catalogue_models(models, "xai/grok")] == ["", PAST]


async def test_a_provider_that_refuses_a_retired_model_is_answered_with_its_successor() -> None:
    fetch(figures("grok-1", retires=PAST, successor="grok-2"), figures("grok-2"))
    async with http_server(lambda _: (404, {"error": {"message": "model not found"}})) as url:
        settings = Settings(providers={"xai": ProviderSettings(base_url=f"{url}/v1")})
        models = Models(settings, {"XAI_API_KEY": "xai-test-12345678"})
        fixes = []
        for ref in ("xai/grok-1", "xai/grok-2"):
            end = (await collect(models.provider(ref), asking(ref.partition("/")[2])))[-1]
            assert isinstance(end, StreamFailure)
            fixes.append(end.error.fix)
        await models.close()
    assert "Use xai/grok-2 in its place" in fixes[0]
    assert f"check the address, {url}/v1" in fixes[1]


@pytest.mark.parametrize("name", ["grok-10", "grok-9.5-2026-12-01", "grok-11-0309"])
def test_a_newer_model_of_a_known_family_has_the_figures_of_its_nearest_relative(name: str) -> None:
    fetch(figures("grok-8"), figures("grok-9", retires=FAR, successor="grok-8"))
    models = Models(Settings(model=f"xai/{name}"), {"XAI_API_KEY": "xai-test-12345678"})
    spec = models.choose().spec
    assert (spec.context_window, spec.max_output, spec.like) == (500_000, 50_000, "xai/grok-9")
    assert spec.prices is not None
    assert (spec.prices.output, spec.retires, spec.successor) == (6.0, "", "")
    (told,) = models.choose().notices
    assert f"xai/{name} is not in the list of models." in told
    assert "about what it costs are taken from xai/grok-9" in told
    assert "treadle models --update" in told


@pytest.mark.parametrize("name", ["grok-7", "grock-9", "grok-9-2025-01-01", "other"])
def test_a_name_that_is_probably_mistyped_is_refused_with_near_ones(name: str) -> None:
    fetch(figures("grok-8"), figures("grok-9"), figures("grok-7x", retires=PAST))
    with pytest.raises(ConfigError) as caught:
        Models(Settings(model=f"xai/{name}"), {"XAI_API_KEY": "xai-test-12345678"}).choose()
    assert caught.value.code == "model-unknown"
    assert ("xai/grok-9" in caught.value.why) == (name in ("grok-7", "grock-9"))
    assert "grok-7x" not in caught.value.why, "it is retired"


@pytest.mark.parametrize("said", [{}, {"context_window": 9_000}])
def test_no_model_of_any_provider_is_without_a_window(said: dict[str, int]) -> None:
    for row in ROWS:
        for name in ("never-heard-of-it", "claude-sonnet-9", "gpt-9", "x"):
            ref = f"{row.name}/{name}"
            providers = {row.name: ProviderSettings(base_url="http://models.example/v1")}
            models = Models(
                Settings(
                    providers=providers,
                    models={ref: ModelSettings(context_window=said["context_window"])} if said else {},
                ),
                {},
            )
            assert models.spec(ref).context_window == said.get("context_window", models.spec(ref).context_window)
            assert models.spec(ref).context_window
            assert bool(models.notices(ref)) == (not said)


def test_a_model_of_this_machine_takes_neither_window_nor_price_of_a_relative() -> None:
    here, away = (
        Models(Settings(model="openai-compatible/claude-sonnet-9", base_url=url), {}).choose().spec
        for url in ("http://127.0.0.1:1/v1", "https://gateway.example/v1")
    )
    assert (here.context_window, here.prices, here.like) == (ASSUMED_WINDOW, FREE, "")
    assert away.prices is not None
    assert away.like.endswith(("claude-sonnet-5-5", "claude-sonnet-5.5"))


@pytest.mark.parametrize(
    ("model", "base_url", "prices"),
    [
        ("ollama/qwen3:8b", "", FREE),
        ("ollama/qwen3:8b", "http://[::1]:9/v1", FREE),
        ("lmstudio/any", "", FREE),
        ("lmstudio/openai/gpt-oss-20b", "", FREE),
        ("llama.cpp/any", "", FREE),
        ("vllm/any", "http://localhost:9/v1", FREE),
        ("local/smollm2", "", FREE),
        ("scripted/x", "", FREE),
        ("openai-compatible/any", "http://localhost:9/v1", FREE),
        ("ollama/gpt-oss:120b-cloud", "", None),
        ("ollama/qwen3:8b", "http://192.168.1.9:11434/v1", None),
        ("openai-compatible/any", "https://gateway.example/v1", None),
        ("litellm/any", "", None),
        ("openai/unheard-of", "http://localhost:9/v1", None),
    ],
)
def test_what_runs_on_this_machine_is_free_and_what_is_passed_on_is_not_said_to_be(
    model: str, base_url: str, prices: Prices | None
) -> None:
    assert Models(Settings(model=model, base_url=base_url), {}).spec(model).prices == prices


@pytest.mark.parametrize("name", ["mine", "my-vllm", "gpu.box"])
@pytest.mark.parametrize(
    ("section", "prices"),
    [
        (ProviderSettings(base_url="http://localhost:9/v1"), FREE),
        (ProviderSettings(base_url="http://127.0.0.1:9/v1", api_key_env="OPENAI_API_KEY"), FREE),
        (ProviderSettings(base_url="http://[::1]:9", wire_api="anthropic_messages"), FREE),
        (ProviderSettings(base_url="https://gateway.example/v1"), None),
        (ProviderSettings(base_url="http://192.168.1.9:9/v1"), None),
    ],
)
def test_a_server_of_ones_own_on_this_machine_is_free_whatever_its_section_is_called(
    name: str, section: ProviderSettings, prices: Prices | None
) -> None:
    providers, profiles = {name: section}, {"work": ProfileSettings(model=f"{name}/weak")}
    models = Models(Settings(providers=providers, profiles=profiles), {})
    assert [models.spec(f"{one}/weak").prices for one in (name, f"{name}@work")] == [prices] * 2
    said = {f"{name}/weak": ModelSettings(input_price=1.0, output_price=2.0)}
    own = Models(Settings(providers=providers, models=said), {})
    assert own.spec(f"{name}/weak").prices == Prices(input=1.0, output=2.0)


def test_the_price_that_the_user_says_of_a_model_of_this_machine_is_taken() -> None:
    said = ModelSettings(input_price=1.0, output_price=2.0)
    assert Models(Settings(models={"ollama/x": said}), {}).spec("ollama/x").prices == Prices(input=1.0, output=2.0)


def test_a_known_model_of_this_machine_keeps_what_is_known_of_it() -> None:
    for name, figures in built_in_models().section("lmstudio").items():
        spec = Models(Settings(), {}).spec(f"lmstudio/{name}")
        assert (spec.context_window, spec.prices) == (figures.context_window or ASSUMED_WINDOW, FREE)


async def test_a_provider_is_asked_for_its_list_before_the_second_call_of_a_model_that_nobody_knows() -> None:
    asked: list[str] = []

    def answer(said: Asked) -> tuple[int, object]:
        asked.append(said.path)
        return 200, {"data": [{"id": "m", "max_model_len": 12_345, "max_output_tokens": 999}]}

    async with http_server(answer) as url:
        models = Models(Settings(model="openai-compatible/m", base_url=f"{url}/v1"), {})
        seen = []
        for _ in range(3):
            seen.append((models.spec("openai-compatible/m").context_window, len(asked)))
            await collect(models.provider("openai-compatible/m"), asking("m"))
        await models.close()
    assert asked == ["/v1/chat/completions", "/v1/models", "/v1/chat/completions", "/v1/chat/completions"]
    assert seen == [(ASSUMED_WINDOW, 0), (ASSUMED_WINDOW, 1), (12_345, 3)]
    assert models.spec("openai-compatible/m").max_output == 999
    assert models.notices("openai-compatible/m") == ()


def test_a_fetched_list_counts_where_it_is_newer_and_can_be_read() -> None:
    built = built_in_models()
    assert known_models() is built
    fetch(figures("grok-1"))
    assert list(known_models().section("xai")) == ["grok-1"]
    fetch(figures("grok-1"), date="2020-01-01")
    assert known_models() is built
    assert data_notice() == ""


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"date":"2098-01-01"}', b"cut", b"inner"],
    ids=lambda damage: damage.decode() or "empty",
)
def test_a_damaged_list_is_not_used_and_that_is_told(damage: bytes) -> None:
    fetch(figures("grok-1"))
    whole = fetched_file().read_bytes()
    wrong = {b"cut": whole[:-20], b"inner": whole.replace(b'"grok-1"', b"[1]")}.get(damage, damage)
    fetched_file().write_bytes(wrong)
    assert known_models() is built_in_models()
    assert "cannot be read" in data_notice()
    assert any("treadle models --update" in text for text in notices("xai/grok-4.7"))


def test_a_list_of_the_day_of_the_built_in_one_is_used() -> None:
    fetch(figures("grok-1"), date=built_in_models().data.date)
    assert list(known_models().section("xai")) == ["grok-1"]


def test_a_list_that_may_not_be_looked_at_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    assert known_models() is built_in_models()
    assert "cannot be read: Permission denied." in data_notice()


def test_a_list_of_no_usual_size_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fetch(figures("grok-1"))
    monkeypatch.setattr(known, "LARGEST_DATA", 10)
    assert known_models() is built_in_models()
    assert "cannot be read" in data_notice()


def listed(section: str = "xai") -> dict[str, Any]:
    """The built-in models of a section in the form of LiteLLM's list."""
    return {
        f"{section}/{one.name}": {
            "litellm_provider": section,
            "mode": "chat",
            "max_input_tokens": one.context_window,
            "max_output_tokens": one.max_output,
            "input_cost_per_token": None if one.input is None else one.input / 1e6,
            "output_cost_per_token": None if one.output is None else one.output / 1e6,
            "supports_function_calling": True,
            **({"deprecation_date": one.retires} if one.retires else {}),
        }
        for one in built_in_models().section(section).values()
    }


async def test_an_update_is_taken_kept_and_told() -> None:
    models = listed()
    models["xai/grok-19"] = {**models["xai/grok-4.7"], "deprecation_date": FAR}
    models["xai/grok-4.7"] |= {"input_cost_per_token": 1e-6, "deprecation_date": "2030-01-01"}
    async with http_server(lambda _: (200, models)) as url:
        changes = await update_models(f"{url}/list.json")
    told = {(one.ref, one.kind): one.text for one in changes}
    assert told[("xai/grok-19", "new")] == "is new"
    assert told[("xai/grok-4.7", "retirement")] == "retires on 2030-01-01"
    assert told[("xai/grok-4.7", "price")] == "costs $1 in, $6 out, was $2 in, $6 out"
    assert {one.kind for one in changes if not one.ref.startswith("xai/")} == {"retirement"}, "its maker ended it"
    catalogue = known_models()
    assert catalogue.data.date == day()
    assert catalogue.data.sources[-1].name == f"{url}/list.json"
    assert set(built_in_models().section("openai")) == set(catalogue.section("openai"))
    assert Models(Settings(), {"XAI_API_KEY": "xai-test-12345678"}).choose().spec.ref == "xai/grok-19"
    assert fetched_file().stat().st_mode & 0o777 == 0o600


async def test_the_address_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with http_server(lambda _: (200, listed())) as url:
        monkeypatch.setenv("TREADLE_MODELS_URL", f"{url}/own.json")
        assert await update_models() == ()
    assert known_models().data.sources[-1].name == f"{url}/own.json"


@pytest.mark.parametrize(
    ("status", "value", "why"),
    [
        (404, {}, "HTTP status 404"),
        (200, [], "not a list of models"),
        (200, {"a": {}}, "holds no models"),
        (200, b"<html>", "malformed"),
        (200, b"", "truncated"),
        (200, b'{"a":' * 100_000, "nested too deeply"),
        (200, {"xai/one": listed()["xai/grok-4.7"]}, "far fewer models"),
        (200, {"x/one": {**listed()["xai/grok-4.7"], "litellm_provider": "x"}}, "holds no models"),
    ],
)
async def test_what_is_no_such_list_changes_nothing(status: int, value: object, why: str) -> None:
    fetch(figures("grok-1"), figures("grok-2"), figures("grok-3"))
    before = fetched_file().read_bytes()
    async with http_server(lambda _: (status, value)) as url:
        with pytest.raises(ConfigError) as caught:
            await update_models(url)
    assert (caught.value.code, why in caught.value.why, url in caught.value.what) == ("models-update", True, True)
    assert fetched_file().read_bytes() == before


@pytest.mark.parametrize(
    "url",
    [
        "http://models.example/list.json",
        "file:///etc/passwd",
        "ftp://x/y",
        "nothing",
        "https://",
        "https://[::1",
        "https://a b/",
        "https://127.0.0.1:99999/",
        "https://127.0.0.1:port/",
    ],
)
async def test_a_list_comes_encrypted_or_from_this_machine(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await update_models(url)
    assert "is not an https address" in caught.value.why


async def test_a_redirection_leads_to_no_address_that_could_not_be_given() -> None:
    async with http_server(lambda _: (302, {}), location="http://models.example/list.json") as url:
        with pytest.raises(ConfigError) as caught:
            await update_models(url)
    assert "'http://models.example/list.json' is not an https address" in caught.value.why


@pytest.mark.parametrize("location", ["https://[::1", "https://127.0.0.1:99999/", "/again", ""])
async def test_a_redirection_to_nowhere_is_told(location: str) -> None:
    async with http_server(lambda _: (302, {}), location=location) as url:
        with pytest.raises(ConfigError, match="cannot be fetched"):
            await update_models(url)


async def test_what_an_address_hides_is_neither_shown_nor_kept() -> None:
    async with http_server(lambda asked: (200 if "token" in asked.path else 404, listed())) as url:
        secret = url.replace("http://", "http://me:secret@")
        with pytest.raises(ConfigError) as caught:
            await update_models(f"{secret}/list.json?key=secret")
        await update_models(f"{secret}/list.json?token=secret")
    assert "secret" not in f"{caught.value.what} {caught.value.why} {caught.value.fix}"
    assert b"secret" not in fetched_file().read_bytes()


async def test_a_list_that_does_not_end_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.app.models.updating.LARGEST_LIST", 1_000)
    async with http_server(lambda _: (200, listed())) as url:
        with pytest.raises(ConfigError, match="cannot be fetched"):
            await update_models(url)
    assert not fetched_file().exists()


def test_days_are_those_of_the_clock() -> None:
    assert day() == time.strftime("%Y-%m-%d", time.gmtime())
    assert day(-1) < day() < day(1)
    assert json.loads(json.dumps(day(30))) > day(29)


async def test_a_model_that_is_switched_to_says_that_it_is_retired_once(tmp_path: Path) -> None:
    fetch(figures("grok-1", retires=PAST, successor="grok-2"), figures("grok-2"))
    (tmp_path / "ws").mkdir()
    settings = Settings(
        model="xai/grok-2", providers={"xai": ProviderSettings(base_url="http://127.0.0.1:1/v1", api_key_env="NONE")}
    )
    opening = Opening(workspace=tmp_path / "ws", settings=settings, user_present=True)
    async with await open_session(opening) as live:
        feed = live.follow()
        for ref, budget in (("xai/grok-1", None), ("xai/grok-1", 1_000), ("xai/grok-2", None)):
            await live.post(live.choose(ref, budget), Source(kind="test"))
    told = [one.text async for one in feed if isinstance(one, Notice)]
    assert [text for text in told if "xai/grok-1 was retired" in text] == told[:1]


async def test_a_session_whose_model_was_retired_meanwhile_says_what_takes_its_place(tmp_path: Path) -> None:
    fetch(figures("grok-1"), figures("grok-2"))
    (tmp_path / "ws").mkdir()
    settings = Settings(model="xai/grok-1", providers={"xai": ProviderSettings(base_url="http://127.0.0.1:1/v1")})
    async with await open_session(Opening(workspace=tmp_path / "ws", settings=settings, user_present=True)) as live:
        session, first = live.id, live.notices
        await live.post(Prompt(id="p", content=(Text(text="Hi."),)), Source(kind="test"))
    fetch(figures("grok-1", retires=PAST, successor="grok-2"), figures("grok-2"))
    opening = Opening(
        workspace=tmp_path / "ws", settings=Settings(providers=settings.providers), resume=session, user_present=True
    )
    async with await open_session(opening) as live:
        assert live.status.model == "xai/grok-1"
        (told,) = [text for text in live.notices if "retired" in text]
    assert "Use xai/grok-2 in its place" in told
    assert not any("retired" in text for text in first)
