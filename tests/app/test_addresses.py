"""A key goes to the address of its own provider only, whatever else was given an address."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.app.local_servers import Asked, http_server
from tests.e2e.process import Ended, Program
from tests.providers.support import collect, request
from treadle.app.config.addresses import bind_base_url
from treadle.app.config.edit import set_value
from treadle.app.config.key_hosts import confirm_host, require_host
from treadle.app.config.layers import load_settings
from treadle.app.config.sections import ProviderSettings, Settings
from treadle.app.errors.exits import Exit
from treadle.app.models.model_choice import Models
from treadle.app.models.provider_keys import require_key_host
from treadle.app.models.saving_model import check_setting
from treadle.protocol.errors import ConfigError

KEYS = {
    "OPENAI_API_KEY": "sk-openai-1111111111",
    "ANTHROPIC_API_KEY": "sk-anthropic-2222222222",
    "GROQ_API_KEY": "gsk-groq-3333333333",
}
REFS = {"openai": "openai/gpt-5", "anthropic": "anthropic/claude-sonnet-4-5", "groq": "groq/openai/gpt-oss-120b"}
CHAT = (
    b'data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"ok"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
MESSAGES = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text",'
    b'"text":"ok"}}\n\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)


@dataclass
class Servers:
    """An address for each provider, and one more that is given as the base URL; what each was sent."""

    urls: Mapping[str, str]
    asked: dict[str, list[Asked]] = field(default_factory=dict)

    @property
    def settings(self) -> str:
        names = (name for name in self.urls if name != "given")
        return "".join(f'[providers.{name}]\nbase_url = "{self.urls[name]}/v1"\n' for name in names)

    def keys_at(self, place: str) -> set[str]:
        """Name the providers whose keys arrived at a place."""
        sent = str([asked.headers for asked in self.asked[place]])
        return {name.removesuffix("_API_KEY").lower() for name, key in KEYS.items() if key in sent}


@asynccontextmanager
async def servers(*, refusing: str = "") -> AsyncGenerator[Servers]:
    """Serve each provider; `refusing` answers that it is overloaded."""
    asked: dict[str, list[Asked]] = {name: [] for name in (*REFS, "given")}

    def answer(place: str, one: Asked) -> tuple[int, object]:
        asked[place].append(one)
        if place == refusing:
            return 529, {"error": {"type": "overloaded_error", "message": "busy"}}
        return 200, MESSAGES if one.path.endswith("/messages") else CHAT

    async with AsyncExitStack() as stack:
        urls = {}
        for name in asked:
            urls[name] = await stack.enter_async_context(http_server(partial(answer, name)))
        yield Servers(urls, asked)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("MODEL", "BASE_URL", "MODE", "TOOL_PROTOCOL", "MAX_STEPS", "MAX_RETRIES", "THINKING_BUDGET"):
        monkeypatch.delenv(f"TREADLE_{name}", raising=False)
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    for folder in ("home", "ws"):
        (tmp_path / folder).mkdir()
    return tmp_path


SOURCES = ("flag", "variable", "file")


@pytest.mark.parametrize(
    ("source", "said", "written"), list(itertools.product(SOURCES, (None, "openai", "groq"), (None, "anthropic")))
)
def test_a_base_url_is_the_address_of_one_provider_or_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str | None, written: str | None
) -> None:
    lines = [f'model = "{REFS[written]}"'] if written else []
    lines += ['base_url = "https://given/v1"'] if source == "file" else []
    (place / "home" / "config.toml").write_text("\n".join(lines))
    if source == "variable":
        monkeypatch.setenv("TREADLE_BASE_URL", "https://given/v1")
    flags = {"model": REFS[said]} if said else {}
    flags |= {"base_url": "https://given/v1"} if source == "flag" else {}
    models = Models(load_settings(flags), KEYS)
    reached = {name for name in REFS if models.base_url(models.row(name)) == "https://given/v1"}
    bound = said or written
    if source == "file" and bound:
        confirm_host(bound, "https://given/v1")
    assert reached == ({bound} if bound else set())
    if bound is None:
        for refused in (models.choose, lambda: models.provider(REFS["openai"])):
            with pytest.raises(ConfigError) as error:
                refused()
            assert (error.value.code, "[providers.NAME]" in error.value.fix) == ("base-url-alone", True)
    else:
        assert models.choose().spec.provider == bound


@pytest.mark.parametrize(
    "url", ["http://", "http://[::1", "http://127.0.0.1:99999/v1", "http://127.0.0.1:port/v1", "https://a b/v1"]
)
def test_an_address_that_names_no_server_is_refused_before_anything_is_called(place: Path, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Models(Settings(model="openai-compatible/m", base_url=url), {}).choose()
    assert caught.value.code == "base-url-invalid"


def test_what_else_is_said_of_the_provider_stays_and_its_other_name_is_it(place: Path) -> None:
    said = ProviderSettings(api_key_env="MINE", base_url="http://old")
    for ref, section in (("gemini/gemini-2.5-pro", "google"), ("Google/gemini-2.5-pro", "google"), ("own/m", "own")):
        settings = Settings(model=ref, base_url="http://given", providers={section: said})
        bound = bind_base_url(settings, ref)
        assert bound.providers == {section: ProviderSettings(api_key_env="MINE", base_url="http://given")}
        assert (bound.base_url, bind_base_url(bound, ref)) == ("", bound)


def test_a_mistyped_provider_does_not_become_one_by_an_address(place: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        Models(Settings(model="antropic/claude-sonnet-4-5", base_url="http://given"), KEYS).choose()
    assert (refused.value.code, "'anthropic'" in refused.value.fix) == ("provider-unknown", True)


def test_a_workspace_that_names_the_model_does_not_say_whose_address_yours_is(place: Path) -> None:
    (place / "ws" / ".treadle").mkdir()
    (place / "ws" / ".treadle" / "config.toml").write_text('model = "openai/gpt-5"\n')
    file = place / "home" / "config.toml"
    file.write_text('base_url = "http://gateway/v1"\nmodel = "anthropic/claude-sonnet-4-5"\n')
    models = Models(load_settings({}, workspace=place / "ws", trusted=True), KEYS)
    assert models.choose().spec.ref == "openai/gpt-5"
    assert models.base_url(models.row("openai")) == "https://api.openai.com/v1"
    assert models.base_url(models.row("anthropic")) == "http://gateway/v1"
    file.write_text('base_url = "http://gateway/v1"\n')
    with pytest.raises(ConfigError) as refused:
        load_settings({}, workspace=place / "ws", trusted=True)
    assert refused.value.code == "base-url-alone"
    flags = {"model": "anthropic/claude-sonnet-4-5"}
    models = Models(load_settings(flags, workspace=place / "ws", trusted=True), KEYS)
    assert models.base_url(models.row("anthropic")) == "http://gateway/v1"


async def _run(place: Path, *arguments: str, extra: Mapping[str, str] | None = None) -> Ended:
    program = Program(place / "home", {**KEYS, "TREADLE_MAX_RETRIES": "2", **(extra or {})})
    async with asyncio.timeout(90):
        return await program.run("-p", "Go.", *arguments, "-C", str(place / "ws"))


async def test_the_fallback_keeps_its_own_address_and_key(place: Path) -> None:
    async with servers(refusing="given") as all_of_them:
        config = f'fallback = "{REFS["anthropic"]}"\n{all_of_them.settings}'
        (place / "home" / "config.toml").write_text(config)
        ended = await _run(place, "--model", REFS["openai"], "--base-url", f"{all_of_them.urls['given']}/v1")
    assert ended.code == Exit.DONE, ended.err
    assert [all_of_them.keys_at(name) for name in ("given", "anthropic", "openai")] == [
        {"openai"},
        {"anthropic"},
        set(),
    ]


@pytest.mark.parametrize(("mode", "where"), [("plan", "anthropic"), ("edits", "given")])
async def test_the_model_of_a_mode_keeps_its_own_address_and_key(place: Path, mode: str, where: str) -> None:
    async with servers() as all_of_them:
        config = f'[modes.plan]\nmodel = "{REFS["anthropic"]}"\n{all_of_them.settings}'
        (place / "home" / "config.toml").write_text(f'model = "{REFS["groq"]}"\n{config}')
        variable = {"TREADLE_BASE_URL": f"{all_of_them.urls['given']}/v1"}
        await _run(place, "--mode", mode, extra=variable)
    reached = {name: all_of_them.keys_at(name) for name in all_of_them.urls if all_of_them.asked[name]}
    assert reached == {where: {"anthropic" if mode == "plan" else "groq"}}


async def test_a_session_that_goes_on_takes_the_address_for_the_model_that_is_named(place: Path) -> None:
    async with servers() as all_of_them:
        (place / "home" / "config.toml").write_text(all_of_them.settings)
        given = f"{all_of_them.urls['given']}/v1"
        first = await _run(place, "--model", REFS["groq"])
        own = await _run(place, "--continue", "--base-url", given)
        other = await _run(place, "--continue", "--base-url", given, extra={"TREADLE_MODEL": REFS["openai"]})
        named = await _run(place, "--continue", "--base-url", given, "--model", REFS["openai"])
        alone = await _run(place, "--base-url", given)
    assert [one.code for one in (first, own, other, named, alone)] == [*[Exit.DONE] * 4, Exit.CONFIG]
    assert "A base URL was given without a model. [base-url-alone]" in alone.err
    assert f"--base-url is for openai, the provider in your settings, but this session uses {REFS['groq']}." in (
        other.err
    )
    assert [all_of_them.keys_at(name) for name in ("groq", "openai", "anthropic")] == [{"groq"}, set(), set()]
    # The second run is of the session's own provider; the third names another one, so the session keeps its address.
    assert [
        [asked.headers["authorization"][-10:] for asked in all_of_them.asked[name]] for name in ("groq", "given")
    ] == [
        ["3333333333"] * 2,
        ["3333333333", "1111111111"],
    ]


async def test_a_redirect_carries_no_key_to_another_host(place: Path) -> None:
    taken: list[Asked] = []

    def take(asked: Asked) -> tuple[int, object]:
        taken.append(asked)
        return 200, CHAT

    def redirect(status: int, _: Asked) -> tuple[int, object]:
        return status, {}

    async with http_server(take) as foreign:
        for status in (301, 302, 307, 308):
            async with http_server(partial(redirect, status), location=foreign) as url:
                ended = await _run(place, "--model", REFS["groq"], "--base-url", f"{url}/v1")
            assert (ended.code, "which Treadle does not follow" in ended.err) == (Exit.FAILED, True)
    assert taken == []


async def test_a_model_that_is_switched_to_in_the_session_is_called_at_its_own_address(place: Path) -> None:
    async with servers() as all_of_them:
        (place / "home" / "config.toml").write_text(all_of_them.settings)
        models = Models(load_settings({"model": REFS["openai"], "base_url": f"{all_of_them.urls['given']}/v1"}), KEYS)
        for name in ("openai", "groq", "anthropic", "openai"):
            chosen = models.choose(REFS[name]).spec
            await collect(models.provider(chosen.ref), request())
        await models.close()
    reached = {name: (all_of_them.keys_at(name), len(asked)) for name, asked in all_of_them.asked.items()}
    assert reached == {
        "given": ({"openai"}, 3),  # before the second call, the provider is asked for its list
        "groq": ({"groq"}, 1),
        "anthropic": ({"anthropic"}, 1),
        "openai": (set(), 0),
    }


async def test_a_refused_key_is_named_with_the_way_to_another_and_without_its_text(place: Path) -> None:
    def refuse(_: Asked) -> tuple[int, object]:
        return 401, {"error": {"message": f"Incorrect API key provided: {KEYS['GROQ_API_KEY']}"}}

    async with http_server(refuse) as url:
        ended = await _run(place, "--model", REFS["groq"], "--base-url", f"{url}/v1")
    assert "The key comes from GROQ_API_KEY and ends in …3333. (HTTP 401)" in ended.err
    assert "Store another key: `treadle login groq`. GROQ_API_KEY overrides a stored key" in ended.err
    assert KEYS["GROQ_API_KEY"] not in ended.err + ended.out
    assert "log:" not in ended.err


HERE = ("http://localhost:1/v1", "http://127.0.0.1/v1", "http://[::1]:8/v1", "http://x.localhost", "https://127.3.3.3")
ELSEWHERE = ("https://a.example/v1", "https://a.example:8443/v1", "https://user@b.example", "https://[2001:db8::1]/v1")
CLEAR = (
    "http://a.example/v1",
    "HTTP://a.example",
    "http://192.0.2.1:80/v1",
    "http://0.0.0.0/v1",
    "http://localhost.evil",
)


@pytest.mark.parametrize("url", [*HERE, *ELSEWHERE, *CLEAR])
@pytest.mark.parametrize("written", ["said with the run", "in the file", "at the top of the file"])
@pytest.mark.parametrize("confirmed", ["", "openai", "groq", "another port", "another scheme"])
def test_a_key_goes_to_hosts_that_were_confirmed_for_it(place: Path, url: str, written: str, confirmed: str) -> None:
    top = f'base_url = "{url}"\n' if written == "at the top of the file" else ""
    table = f'[providers.openai]\nbase_url = "{url}"\n' if written == "in the file" else ""
    (place / "home" / "config.toml").write_text(f'model = "openai/gpt-5"\n{top}{table}')
    if confirmed in ("openai", "groq"):
        confirm_host(confirmed, url)
    elif confirmed:
        scheme, _, rest = url.partition("://")
        other = f"{'ftp' if confirmed == 'another scheme' else scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
        host = other.rstrip("0123456789").removesuffix(":") if confirmed == "another port" else other
        confirm_host("openai", f"{host}:4711" if confirmed == "another port" else host)
    expected = ""
    if url not in HERE and confirmed != "openai":
        expected = "key-in-clear" if url in CLEAR else "host-unconfirmed" if written != "said with the run" else ""
    if not expected:
        require_host(("openai",), url)
        return
    with pytest.raises(ConfigError) as refused:
        require_host(("openai",), url)
    assert (refused.value.code, url in refused.value.fix) == (expected, True)


def test_what_was_confirmed_is_read_by_its_owner_and_what_is_damaged_confirms_nothing(place: Path) -> None:
    confirm_host("openai", "https://a.example/v1")
    file = place / "home" / "hosts.json"
    assert file.stat().st_mode & 0o777 == 0o600
    (place / "home" / "config.toml").write_text('[providers.openai]\nbase_url = "https://a.example/v1"\n')
    require_host(("openai",), "https://a.example/v1")
    for damage in ("", "[]", '{"providers": {"openai": "https://a.example:443"}}', "\x00"):
        file.write_text(damage)
        with pytest.raises(ConfigError):
            require_host(("openai",), "https://a.example/v1")


async def test_an_address_that_came_into_the_file_gets_no_key_until_it_is_set_on_the_command_line(place: Path) -> None:
    program = Program(place / "home", {"OPENAI_API_KEY": KEYS["OPENAI_API_KEY"], "TREADLE_MAX_RETRIES": "0"})
    (place / "home" / "config.toml").write_text('[providers.openai]\nbase_url = "https://a.invalid/v1"\n')
    task = ("-p", "hi", "--model", "openai/gpt-5", "-C", str(place / "ws"))
    refused = await program.run(*task)
    assert (refused.code, "[host-unconfirmed]" in refused.err) == (Exit.CONFIG, True), refused.err
    assert (await program.run("config", "set", "providers.openai.base_url", "https://a.invalid/v1")).code == 0
    went = await program.run(*task)
    assert "host-unconfirmed" not in went.err
    assert went.code != Exit.CONFIG


CORP = "https://corp.example/v1"


@pytest.mark.parametrize(
    "chosen", ['api_key_env = "CORP_KEY"', 'token_command = ["vault", "read"]', 'api_key_env = "HOME"']
)
@pytest.mark.parametrize("section", ["openai", "llama.cpp", "llamacpp", "google"])
def test_a_host_that_was_confirmed_for_one_key_gets_no_other_one(place: Path, section: str, chosen: str) -> None:
    set_value(f"providers.{json.dumps(section)}.base_url", CORP, check_setting)
    file = place / "home" / "config.toml"
    environment = {**KEYS, "CORP_KEY": "corp", "HOME": "/root", "LLAMA_CPP_API_KEY": "llama", "GEMINI_API_KEY": "g"}

    def send() -> None:
        models = Models(load_settings({}), environment)
        row = models.row(section)
        require_key_host(row, models.said(row), "a key")

    send()
    mine = file.read_text()
    file.write_text(f"{mine}{chosen}\n")  # it came there by hand
    with pytest.raises(ConfigError) as refused:
        send()
    assert (refused.value.code, CORP in refused.value.fix) == ("host-unconfirmed", True)
    name, _, value = chosen.partition(" = ")
    file.write_text(mine)
    set_value(
        f"providers.{json.dumps(section)}.{name}", value.strip('"') if name == "api_key_env" else value, check_setting
    )
    send()
    file.write_text(mine)
    send()
    file.write_text(mine.replace("corp.example", "evil.example"))
    set_value(
        f"providers.{json.dumps(section)}.{name}", value.strip('"') if name == "api_key_env" else value, check_setting
    )
    with pytest.raises(ConfigError):
        send()  # the address came by hand: who chose a key for it has not said that they want it
