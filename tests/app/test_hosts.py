"""The hosts that a provider's key may go to: each is confirmed by itself, for one provider."""

from pathlib import Path

import msgspec
import pytest

from treadle.app.config.edit import set_value
from treadle.app.config.key_hosts import confirm_host, require_host
from treadle.app.config.places import config_file
from treadle.protocol.errors import ConfigError

CONFIRMED = "https://Host.Example:443/v1"
OTHERS = (
    "https://host.example:8443/v1",
    "https://other.example/v1",
    "https://host.example.other/v1",
    "https://sub.host.example/v1",
    "https://host.example@other.example/v1",
    "https://[2001:db8::1]/v1",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    config_file().parent.mkdir(parents=True, exist_ok=True)
    return tmp_path


def outcome(provider: str, url: str) -> str:
    """Say why a key may not go to an address of the settings file; empty where it may."""
    config_file().write_text(f'[providers.{provider}]\nbase_url = "{url}"\n')
    try:
        require_host([provider], url)
    except ConfigError as error:
        return error.code
    return ""


@pytest.mark.parametrize("url", ["https://host.example/v1", "https://HOST.example:443/other", "HTTPS://host.example"])
def test_a_confirmed_host_is_confirmed_in_every_spelling(url: str) -> None:
    confirm_host("openai", CONFIRMED)
    assert outcome("openai", url) == ""


@pytest.mark.parametrize("url", OTHERS)
def test_another_host_or_port_is_not_confirmed_with_it(url: str) -> None:
    assert outcome("openai", url) == "host-unconfirmed"
    confirm_host("openai", CONFIRMED)
    assert outcome("openai", url) == "host-unconfirmed"
    assert outcome("openai", CONFIRMED.replace("https", "http")) == "key-in-clear"
    confirm_host("openai", url)
    assert [outcome("openai", one) for one in (url, CONFIRMED)] == ["", ""]


def test_a_host_is_confirmed_for_one_provider() -> None:
    confirm_host("openai", CONFIRMED)
    assert outcome("groq", CONFIRMED) == "host-unconfirmed"


def test_what_was_confirmed_is_kept_with_all_before_it(home: Path) -> None:
    for provider, url in (("openai", CONFIRMED), ("groq", OTHERS[5]), ("openai", OTHERS[0]), ("openai", CONFIRMED)):
        confirm_host(provider, url)
    text = config_file().with_name("hosts.json").read_bytes()
    assert msgspec.json.decode(text) == {
        "version": 1,
        "providers": {
            "openai": ["https://host.example:443", "https://host.example:8443"],
            "groq": ["https://[2001:db8::1]:443"],
        },
    }
    assert text.endswith(b"}\n")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/v1", "http://localhost/v1", "http://[::1]/v1", "http://a.localhost"]
)
def test_this_computer_needs_no_word(url: str) -> None:
    assert outcome("openai", url) == ""


@pytest.mark.parametrize("url", ["http://127.0.0.1.example/v1", "http://localhost.example/v1", "http://10.0.0.1/v1"])
def test_what_only_looks_like_this_computer_does(url: str) -> None:
    assert outcome("openai", url) == "key-in-clear"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1, "providers": {"openai": 1}}'])
def test_a_file_that_cannot_be_read_confirms_nothing(text: str) -> None:
    config_file().with_name("hosts.json").write_text(text)
    assert outcome("openai", CONFIRMED) == "host-unconfirmed"


@pytest.mark.parametrize("text", ["", '{"version": 1, "providers": {"openai": ["https://host.example:443"], }}'])
def test_a_file_that_cannot_be_read_is_not_written_over(text: str) -> None:
    file = config_file().with_name("hosts.json")
    file.write_text(text)
    with pytest.raises(ConfigError, match="The address is set, but not confirmed"):
        confirm_host("groq", CONFIRMED)
    assert file.read_text() == text


def test_where_nothing_can_be_noted_that_is_said(home: Path) -> None:
    config_file().with_name("hosts.json").mkdir()
    with pytest.raises(ConfigError, match="The address is set, but not confirmed"):
        confirm_host("groq", CONFIRMED)


def test_an_address_that_the_settings_file_does_not_name_was_given_with_the_run() -> None:
    config_file().write_text('[providers.groq]\nbase_url = "https://other.example/v1"\n')
    require_host(["openai"], "https://host.example/v1")


EVIL, GOOD = "https://other.example/v1", "https://host.example/v1"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("providers.openai.base_url", GOOD),
        ("providers.openai", f'{{base_url = "{GOOD}"}}'),
        ("providers.openai.api_key_env", "SOME_KEY"),
        ("model", "openai/gpt-5"),
    ],
)
def test_only_the_address_that_was_set_is_confirmed_and_not_another_one_of_the_file(key: str, value: str) -> None:
    config_file().write_text(f'model = "openai/gpt-5"\nbase_url = "{EVIL}"\n')
    set_value(key, value, lambda *_: None)
    for name in ("", "SOME_KEY"):
        with pytest.raises(ConfigError) as found:
            require_host(["openai"], EVIL, name)
        assert found.value.code == "host-unconfirmed"


def test_the_address_at_the_top_is_confirmed_for_the_provider_of_the_model_when_it_is_set() -> None:
    config_file().write_text('model = "openai/gpt-5"\n')
    set_value("base_url", GOOD, lambda *_: None)
    require_host(["openai"], GOOD)
    with pytest.raises(ConfigError):
        require_host(["openai"], GOOD, "SOME_KEY")
    set_value("providers.openai.api_key_env", "SOME_KEY", lambda *_: None)
    require_host(["openai"], GOOD, "SOME_KEY")
