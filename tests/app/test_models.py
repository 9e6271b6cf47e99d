import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from tests.app.local_servers import http_server, ollama
from treadle.app.config.sections import ModelSettings, ModeSettings, ProviderSettings, Settings
from treadle.app.models.known import ASSUMED_WINDOW, LearningProvider, windows_file
from treadle.app.models.model_choice import Models
from treadle.app.models.model_notes import limits_for
from treadle.app.models.model_rows import catalogue_models
from treadle.app.models.provider_keys import ApiKey, key_file, store_key
from treadle.protocol.errors import ConfigError
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ModelRequest, ToolProtocol
from treadle.protocol.permissions import Mode
from treadle.providers.breaker import GuardedProvider
from treadle.providers.catalogue import find_provider
from treadle.providers.endpoint import StreamLimits
from treadle.providers.http_provider import HttpProvider
from treadle.providers.provider_rows import Wire
from treadle.providers.scripted.script import Refuse, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-test-1", "OPENAI_API_KEY": "sk-test-2"}


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


def test_each_mode_has_its_model_and_budget() -> None:
    plan = ModeSettings(model="openai/gpt-6-sol", thinking_budget=4000)
    models = Models(Settings(model="anthropic/claude-sonnet-5-5", modes={Mode.PLAN: plan}), KEYS)
    choices = [models.choose(mode=mode) for mode in (Mode.PLAN, Mode.ASK)]
    assert [(one.spec.ref, one.thinking_budget, one.notices) for one in choices] == [
        ("openai/gpt-6-sol", 4000, ()),
        ("anthropic/claude-sonnet-5-5", None, ()),
    ]


@pytest.mark.parametrize(
    ("facts", "wanted", "budget", "notice"),
    [
        (ModelSettings(), 10_000, 10_000, ""),
        (ModelSettings(max_output=8000), 10_000, 6000, "can think 6,000 tokens at most. Its budget of 10,000"),
        (ModelSettings(max_output=8000), 6000, 6000, ""),
        (ModelSettings(), 0, None, ""),
    ],
)
def test_a_budget_is_clipped_to_the_model_with_a_notice(
    facts: ModelSettings, wanted: int, budget: int | None, notice: str
) -> None:
    ref = "anthropic/claude-sonnet-5-5"
    choice = Models(Settings(model=ref, thinking_budget=wanted, models={ref: facts}), KEYS).choose()
    assert choice.thinking_budget == budget
    assert notice in "".join(choice.notices)
    assert bool(choice.notices) == bool(notice)


def test_a_model_that_cannot_think_gets_no_budget() -> None:
    choice = Models(Settings(model="openai/gpt-4o", thinking_budget=2000), KEYS).choose()
    assert choice.thinking_budget is None
    assert choice.notices == ("openai/gpt-4o cannot think. Its thinking budget of 2,000 tokens is not used.",)


def test_a_model_that_nothing_is_known_of_gets_the_budget_as_it_is() -> None:
    facts = ModelSettings(context_window=100_000)
    settings = Settings(model="openai-compatible/m", base_url="http://h/v1", thinking_budget=2000)
    choice = Models(msgspec.structs.replace(settings, models={"openai-compatible/m": facts}), {}).choose()
    assert (choice.thinking_budget, choice.notices) == (2000, ())


def test_a_stored_key_makes_its_provider_the_one_that_is_taken() -> None:
    store_key("groq", "gsk-test-3")
    models = Models(Settings(), {})
    assert models.choose().spec.provider == "groq"
    assert models.key(models.row("groq")) == ApiKey(value="gsk-test-3", origin=str(key_file()))


async def test_the_settings_of_a_provider_reach_its_endpoint(tmp_path: Path) -> None:
    said = ProviderSettings(
        headers={"X-Team": "blue"},
        proxy="http://127.0.0.1:3128",
        ca_file=str(tmp_path / "ca.pem"),
        connect_timeout=1.0,
        first_byte_timeout=2.0,
        idle_timeout=3.0,
        progress_timeout=4.0,
        reply_timeout=5.0,
    )
    models = Models(Settings(model="anthropic/claude-sonnet-5-5", providers={"claude": said}), KEYS)
    provider = models.provider("anthropic/claude-sonnet-5-5")
    await models.close()
    assert isinstance(provider, LearningProvider)
    guarded = provider._inner
    assert isinstance(guarded, GuardedProvider)
    inner = guarded._inner
    assert isinstance(inner, HttpProvider)
    endpoint = inner._endpoint
    assert (endpoint.headers, endpoint.proxy, endpoint.ca_file) == (said.headers, said.proxy, said.ca_file)
    assert endpoint.limits == StreamLimits(connect=1.0, first_byte=2.0, idle=3.0, progress=4.0, reply=5.0)


def test_patience_in_one_time_limit_is_patience_in_the_wider_ones() -> None:
    limits = limits_for(find_provider("anthropic"), ProviderSettings(idle_timeout=8_000.0), here=False)
    assert (limits.idle, limits.progress, limits.reply) == (8_000.0, 8_000.0, 8_000.0)


def test_a_known_provider_with_another_wire_api_keeps_its_keys() -> None:
    row = Models(Settings(providers={"openai": ProviderSettings(wire_api="openai_chat")}), KEYS).row("openai")
    assert (row.wire, row.keys) == (Wire.OPENAI_CHAT, ("OPENAI_API_KEY",))


def test_an_own_provider_needs_no_wire_api() -> None:
    models = Models(Settings(model="mine/m", providers={"mine": ProviderSettings(base_url="http://h/v1")}), {})
    assert (models.choose().spec.ref, models.row("mine").wire) == ("mine/m", Wire.OPENAI_CHAT)
    assert "mine" in [row.name for row in models.rows()]
    with pytest.raises(ConfigError):
        models.row("other")


async def test_a_local_model_is_known_after_its_server_was_asked() -> None:
    async with http_server(ollama) as url:
        settings = Settings(
            model="ollama/gemma3:4b",
            providers={"ollama": ProviderSettings(base_url=f"{url}/v1")},
            modes={Mode.PLAN: ModeSettings(model="ollama/qwen3:8b")},
        )
        models = Models(settings, {})
        assert models.choose().spec.like == ""
        for ref in ("", "ollama/qwen3:8b"):
            await models.ask_server(ref)
    small, large = models.choose(mode=Mode.ASK), models.choose(mode=Mode.PLAN)
    assert (small.spec.context_window, small.spec.images, small.tool_protocol) == (4096, True, ToolProtocol.XML)
    (notice,) = small.notices
    assert notice.startswith("gemma3:4b holds 4,096 tokens; 16,384 are needed to work.")
    assert notice.endswith("OLLAMA_CONTEXT_LENGTH=32768 ollama serve")
    assert (large.spec.context_window, large.tool_protocol, large.notices) == (32768, ToolProtocol.NATIVE, ())


async def test_no_server_is_asked_for_a_model_elsewhere_or_when_it_is_silent() -> None:
    for settings in (
        Settings(model="anthropic/claude-sonnet-5-5"),
        Settings(),
        Settings(model="vllm/m", providers={"vllm": ProviderSettings(base_url="http://127.0.0.1:1/v1")}),
    ):
        models = Models(settings, KEYS)
        await models.ask_server()
        notices = models.choose().notices
        assert all("128,000 tokens are assumed" in notice for notice in notices)
        assert all("treadle config" not in notice for notice in notices), "the page shows them, too"
        assert bool(notices) == settings.model.startswith("vllm")


def test_choosing_a_model_loads_nothing_that_can_wait(tmp_path: Path) -> None:
    code = (
        "import sys; from treadle.app.models.model_choice import Models;"
        "from treadle.app.config.layers import load_settings;"
        "Models(load_settings({'model': 'openai/gpt-6-sol'}), {}).spec('openai/gpt-6-sol');"
        "sys.exit(', '.join({'tomllib', 'tomlkit', 'httpx2', 'keyring', 'rapidfuzz'} & sys.modules.keys()) or 0)"
    )
    environment = {**os.environ, "TREADLE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], check=False, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


async def test_openai_at_another_address_is_spoken_to_by_chat_completions() -> None:
    script = Script(turns=(Turn(items=(SayText(text="Hello."),)),))
    async with ScriptedServer(script) as server:
        models = Models(Settings(model="openai/gpt-6-sol", base_url=f"{server.base_url}/v1"), KEYS)
        provider = models.provider("openai/gpt-6-sol")
        request = ModelRequest(
            id="r", model="gpt-6-sol", system="s", messages=(Message(role=Role.USER, content=(Text(text="Hi"),)),)
        )
        async with aclosing(provider.stream(request)) as stream:
            async for _ in stream:
                pass
        await models.close()
        assert [received.path for received in server.requests] == ["/v1/chat/completions"]


async def test_a_window_that_a_refusal_names_is_kept_said_and_listed() -> None:
    ref, text = "openai-compatible/new", "This model's maximum context length is 65536 tokens."
    refused = Script(turns=(Turn(items=(Refuse(status=400, message=text),)),))
    async with ScriptedServer(refused) as server:
        settings = Settings(model=ref, base_url=f"{server.base_url}/v1")
        models = Models(settings, {})
        choice = models.choose()
        assert choice.spec.context_window == ASSUMED_WINDOW
        assert [ref in notice and "is not known" in notice for notice in choice.notices] == [True]
        asked = ModelRequest(
            id="r", model="new", system="", messages=(Message(role=Role.USER, content=(Text(text="Hi"),)),)
        )
        async with aclosing(models.provider(ref).stream(asked)) as events:
            assert [event async for event in events]
        await models.close()
    again = Models(settings, {})
    assert [one.spec(ref).context_window for one in (models, again)] == [65_536] * 2
    assert again.choose().notices == ()
    assert [spec.ref for spec in catalogue_models(again, "compatible new")] == [ref]
    told = Settings(models={ref: ModelSettings(context_window=1000)})
    assert Models(told, {}).spec(ref).context_window == 1000
    windows_file().write_text("{")
    assert Models(settings, {}).spec(ref).context_window == ASSUMED_WINDOW


def test_a_model_at_an_address_of_your_own_searches_nothing_by_itself() -> None:
    own = Models(Settings(model="openai/gpt-6-sol", base_url="http://localhost:1/v1"), {})
    assert own.searches("openai/gpt-6-sol") is None
    assert Models(Settings(model="openai/gpt-6-sol"), {}).searches("openai/gpt-6-sol") is not None


@pytest.mark.parametrize(
    ("written", "ref", "window", "steps"),
    [
        ("anthropic/claude-sonnet-4-5[1m]", "anthropic/claude-sonnet-4-5:1m", 1_000_000, 1),
        ("anthropic/claude-sonnet-4-5:1m", "anthropic/claude-sonnet-4-5:1m", 1_000_000, 1),
        ("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", 200_000, 0),
        ("anthropic/claude-opus-4-6[1m]", "anthropic/claude-opus-4-6", 1_000_000, 0),  # it holds that by itself
        ("anthropic/claude-opus-4-6:1m", "anthropic/claude-opus-4-6", 1_000_000, 0),
        ("ollama/qwen[1m]", "ollama/qwen[1m]", None, 0),
    ],
)
def test_the_longer_window_is_named_in_either_way(written: str, ref: str, window: int | None, steps: int) -> None:
    spec = Models(Settings(), KEYS).spec(written)
    assert spec.ref == ref
    assert window is None or spec.context_window == window
    assert len(spec.prices.steps if spec.prices else ()) == steps


def test_the_price_of_an_hour_in_the_cache_is_that_of_the_list() -> None:
    prices = Models(Settings(), KEYS).spec("anthropic/claude-haiku-5-5").prices
    assert prices is not None
    assert (prices.cache_write, prices.cache_write_hour) == (0.125, 0.2)
    long = prices.of(200_000)
    assert (long.cache_write, long.cache_write_hour) == (0.625, 1)
