"""Keys under names of one's own: which one a session uses, and who may say so."""

from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from treadle import Treadle
from treadle.app.config.edit import set_value
from treadle.app.config.layers import load_settings
from treadle.app.config.places import config_file
from treadle.app.config.sections import ModelSettings, ProfileSettings, Settings
from treadle.app.models.model_choice import Models
from treadle.app.models.model_notes import as_now, named_profile, plain_ref, with_profile
from treadle.app.models.profiles import checked_profile, describe_profiles, model_in_profile, profile_lines
from treadle.app.models.provider_keys import key_file, store_key, stored_values
from treadle.app.models.saving_model import check_setting
from treadle.protocol.errors import ConfigError
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ModelRequest
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

SONNET, OPUS = "claude-sonnet-5-5", "claude-opus-5-5"
ENVIRONMENT = {"ANTHROPIC_API_KEY": "sk-of-the-environment", "OPENAI_API_KEY": "sk-openai-of-the-environment"}
WORK, HOME = "sk-of-work-27182818", "sk-of-home-31415926"


@pytest.fixture(autouse=True)
def _keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    for name in ("TREADLE_PROFILE", "TREADLE_MODEL", "TREADLE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    store_key("anthropic@work", WORK)
    store_key("anthropic@home", HOME)


def write_settings(text: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text)


async def test_each_profile_is_called_with_its_own_key_whatever_the_environment_says() -> None:
    said = Script(turns=(Turn(items=(SayText(text="Hi"),)),) * 3)
    message = Message(role=Role.USER, content=(Text(text="Hello"),))
    async with ScriptedServer(said) as server:
        models = Models(
            msgspec.convert({"providers": {"anthropic": {"base_url": server.base_url}}}, Settings), ENVIRONMENT
        )
        for ref in (f"anthropic@work/{SONNET}", f"anthropic@home/{SONNET}", f"anthropic/{SONNET}"):
            request = ModelRequest(id="1", model=SONNET, system="", messages=(message,))
            async with aclosing(models.provider(ref).stream(request)) as stream:
                assert [event async for event in stream]
        await models.close()
    keys = [one.headers["x-api-key"] for one in server.requests]
    assert keys == [WORK, HOME, "sk-of-the-environment"]
    assert {one.body["model"] for one in server.requests} == {SONNET}


def test_a_profile_changes_nothing_of_what_is_known_of_a_model() -> None:
    settings = Settings(models={f"anthropic/{SONNET}": ModelSettings(context_window=50_000)})
    models = Models(settings, ENVIRONMENT)
    plain, own = models.spec(f"anthropic/{SONNET}"), models.spec(f"anthropic@work/{SONNET}")
    assert own == msgspec.structs.replace(plain, provider="anthropic@work")
    assert (own.context_window, own.prices is not None) == (50_000, True)
    assert Models(Settings(profile="home"), ENVIRONMENT).choose().spec.ref.startswith("anthropic@home/claude-")


def test_a_session_begins_with_the_profile_of_the_settings() -> None:
    chosen = Models(Settings(profile="work", model=f"anthropic/{OPUS}"), ENVIRONMENT).choose()
    assert (chosen.spec.ref, chosen.notices) == (f"anthropic@work/{OPUS}", ())
    other = Models(Settings(profile="work", model=f"anthropic@home/{OPUS}"), ENVIRONMENT).choose()
    assert other.spec.ref == f"anthropic@home/{OPUS}"
    usual = Models(Settings(profile="work"), ENVIRONMENT).choose(f"anthropic@/{OPUS}")
    assert (usual.spec.ref, usual.notices) == (f"anthropic/{OPUS}", ())


def test_where_a_profile_has_no_key_of_a_provider_the_usual_one_is_used_and_that_is_said() -> None:
    chosen = Models(Settings(profile="work"), ENVIRONMENT).choose("openai/gpt-6-sol")
    assert chosen.spec.ref == "openai/gpt-6-sol"
    assert chosen.notices[0] == "The profile work has no key of openai: the usual one is used."


def test_a_profile_that_is_gone_is_never_replaced_by_another_key() -> None:
    own = {"away": ProfileSettings(model=f"anthropic/{OPUS}")}
    endings = [
        (Settings(profile="away"), "", "profile-unknown", "There is no profile 'away'."),
        (Settings(), f"anthropic@away/{OPUS}", "key-missing", "The profile away has no key of Anthropic."),
        (Settings(profile="away", profiles=own), f"anthropic/{OPUS}", "key-missing", "The profile away has no key"),
    ]
    for settings, ref, code, what in endings:
        with pytest.raises(ConfigError) as refused:
            Models(settings, ENVIRONMENT).choose(ref)
        assert (refused.value.code, refused.value.what.startswith(what)) == (code, True)
        assert "--as away" in refused.value.fix


def test_the_nearest_folder_says_the_profile_and_this_run_says_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer, inner = tmp_path / "all", tmp_path / "all" / "mine"
    (inner / "project").mkdir(parents=True)
    write_settings(
        f"""model = "openai/gpt-6-sol"
profile = "usual-one"
[profiles.work]
folders = ["{outer}"]
model = "anthropic/{OPUS}"
[profiles.home]
folders = ["{inner}"]
"""
    )

    def settled(folder: Path, **flags: str) -> tuple[str, str]:
        settings = load_settings(flags, workspace=folder)
        return settings.profile, settings.model

    assert settled(tmp_path) == ("usual-one", "openai/gpt-6-sol")
    assert settled(outer) == ("work", f"anthropic/{OPUS}")
    assert settled(inner / "project") == ("home", "openai/gpt-6-sol")
    assert settled(inner, profile="work") == ("work", f"anthropic/{OPUS}")
    assert settled(outer, model=f"anthropic/{SONNET}") == ("work", f"anthropic/{SONNET}")
    monkeypatch.setenv("TREADLE_PROFILE", "home")
    assert settled(outer) == ("home", "openai/gpt-6-sol")


@pytest.mark.parametrize(
    "text",
    [
        'profile = "home"',
        '[profiles.work]\nmodel = "anthropic/x"',
        f'model = "anthropic@home/{OPUS}"',
        f'fallback = "anthropic@home/{OPUS}"',
        f'[modes.plan]\nmodel = "anthropic@home/{OPUS}"',
    ],
)
def test_a_project_chooses_no_key(text: str, tmp_path: Path) -> None:
    (tmp_path / ".treadle").mkdir()
    (tmp_path / ".treadle" / "config.toml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_settings({}, workspace=tmp_path, trusted=True)
    assert (refused.value.code, refused.value.why) == (
        "config-workspace",
        "Only you decide which of your keys is used.",
    )


def test_another_model_keeps_the_profile_of_the_present_one() -> None:
    work, usual = f"anthropic@work/{SONNET}", f"anthropic/{SONNET}"
    assert as_now(f"anthropic/{OPUS}", work) == f"anthropic@work/{OPUS}"
    assert as_now(f"anthropic@home/{OPUS}", work) == f"anthropic@home/{OPUS}"
    assert as_now("openai/gpt-6-sol", work) == "openai/gpt-6-sol"
    store_key("openai@third", "sk-of-third-1618033")
    assert as_now("openai/gpt-6-sol", work) == "openai@/gpt-6-sol"
    assert as_now(f"claude/{OPUS}", work) == f"anthropic@work/{OPUS}"
    assert as_now(f"anthropic/{OPUS}", usual) == f"anthropic@/{OPUS}"
    assert with_profile(f"anthropic@/{OPUS}", "work") == f"anthropic/{OPUS}"
    assert (plain_ref(work), named_profile(work), named_profile(usual)) == (usual, "work", "")


async def test_the_profile_stays_where_a_mode_has_a_model_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", ENVIRONMENT["ANTHROPIC_API_KEY"])
    monkeypatch.setenv("OPENAI_API_KEY", ENVIRONMENT["OPENAI_API_KEY"])
    (tmp_path / "folder").mkdir()
    write_settings(
        f"""profile = "work"
model = "anthropic/{SONNET}"
[modes.plan]
model = "anthropic/{OPUS}"
[modes.edits]
model = "openai/gpt-6-sol"
"""
    )
    used = []
    async with Treadle(tmp_path / "folder", mode="ask") as t:
        used.append(t.status.model)
        for way in ("plan", "edits", "plan", "home", "plan", "ask", "usual", "plan", "work", "ask"):
            if way in ("home", "usual", "work"):
                await t.set_model(model_in_profile(load_settings({}), way, t.status.model))
            else:
                await t.set_mode(way)
            used.append(t.status.model)
    assert [f"{named_profile(one)} {one.partition('/')[2]}" for one in used] == [
        *(f"work {SONNET}", f"work {OPUS}", " gpt-6-sol", f"work {OPUS}"),
        *(f"home {OPUS}", f"home {OPUS}", f"home {SONNET}"),
        *(f" {SONNET}", f" {OPUS}", f"work {OPUS}", f"work {SONNET}"),
    ]


def test_profiles_are_listed_and_one_is_changed_to() -> None:
    settings = Settings(profiles={"work": ProfileSettings(model=f"anthropic/{OPUS}", folders=("~/work",))})
    store_key("openai@third", "sk-of-third-1618033")
    assert describe_profiles(settings, f"anthropic@work/{SONNET}").splitlines() == [
        "  usual: the keys without a profile",
        "  home: keys of anthropic",
        "  third: keys of openai",
        f"* work: keys of anthropic; begins with anthropic/{OPUS}; in ~/work",
    ]
    assert [one.name for one in profile_lines(settings)] == ["home", "third", "work"]
    present = f"anthropic@work/{SONNET}"
    assert model_in_profile(settings, "home", present) == f"anthropic@home/{SONNET}"
    assert model_in_profile(settings, "work", f"openai/{SONNET}") == f"anthropic@work/{OPUS}"
    assert model_in_profile(settings, "usual", present) == f"anthropic@/{SONNET}"
    for name, code in (("third", "key-missing"), ("nobody", "profile-unknown")):
        with pytest.raises(ConfigError) as refused:
            model_in_profile(settings, name, present)
        assert refused.value.code == code


@pytest.mark.parametrize("name", ["a b", "", "../x", "a/b", "@", "-x", "x" * 41])
def test_a_profile_has_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigError):
        checked_profile(name)


def test_the_key_of_a_profile_goes_only_where_it_was_said_for_this_key() -> None:
    write_settings(f'[profiles.work]\nmodel = "anthropic/{OPUS}"\nbase_url = "https://gateway.example.com"\n')
    with pytest.raises(ConfigError) as refused:
        Models(load_settings({}), ENVIRONMENT).provider(f"anthropic@work/{OPUS}")
    assert refused.value.code == "host-unconfirmed"
    assert "treadle config set profiles.work.base_url https://gateway.example.com" in refused.value.fix
    set_value("profiles.work.base_url", "https://gateway.example.com", check_setting)
    models = Models(load_settings({}), ENVIRONMENT)
    endpoints = [models.endpoint(models.row(name)) for name in ("anthropic@work", "anthropic@home", "anthropic")]
    assert [(one.base_url, one.api_key) for one in endpoints] == [
        ("https://gateway.example.com", WORK),
        ("https://api.anthropic.com", HOME),
        ("https://api.anthropic.com", "sk-of-the-environment"),
    ]


@pytest.mark.parametrize("flags", [{}, {"model": f"anthropic/{SONNET}"}, {"model": f"anthropic@work/{SONNET}"}])
def test_an_address_that_is_said_for_a_run_goes_before_that_of_the_profile(flags: dict[str, str]) -> None:
    write_settings(f'[profiles.work]\nmodel = "anthropic/{OPUS}"\nbase_url = "https://gateway.example.com"\n')
    said = load_settings({"profile": "work", "base_url": "https://other.example.com", **flags})
    models = Models(said, ENVIRONMENT)
    endpoint = models.endpoint(models.row("anthropic@work"))
    assert (endpoint.base_url, endpoint.api_key) == ("https://other.example.com", WORK)


def test_an_address_for_another_provider_leaves_that_of_the_profile() -> None:
    write_settings(f'[profiles.work]\nmodel = "anthropic/{OPUS}"\nbase_url = "https://gateway.example.com"\n')
    set_value("profiles.work.base_url", "https://gateway.example.com", check_setting)
    flags = {"profile": "work", "base_url": "https://other.example.com", "model": "openai/gpt-5.5"}
    models = Models(load_settings(flags), ENVIRONMENT)
    assert [models.endpoint(models.row(name)).base_url for name in ("anthropic@work", "openai")] == [
        "https://gateway.example.com",
        "https://other.example.com",
    ]


def test_the_keys_of_all_profiles_are_hidden_and_shown_nowhere() -> None:
    assert dict(stored_values()) == {WORK: "anthropic@work key", HOME: "anthropic@home key"}
    shown = describe_profiles(Settings(), "") + repr(Models(Settings()).key(Models(Settings()).row("anthropic@work")))
    assert WORK not in shown
    assert HOME not in shown
    assert WORK in key_file().read_text()
