import stat
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from treadle.app.models import provider_keys as keys
from treadle.app.models.provider_keys import ApiKey, find_key, forget_key, key_file, keyring_name, store_key
from treadle.protocol.errors import ConfigError

SECRET = "sk-test-3141592653589793"


class FakeKeyring:
    """A keyring in memory."""

    priority = 5.0

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        self.kept[service, name] = value

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


class NoKeyring(FakeKeyring):
    """What `keyring` gives on a machine without one."""

    priority = 0.0


class LockedKeyring(FakeKeyring):
    """One that waits for somebody to unlock it."""

    def get_password(self, service: str, name: str) -> str | None:
        time.sleep(0.5)
        return "late"


class RefusingKeyring(FakeKeyring):
    """One that raises an error of its own."""

    def set_password(self, service: str, name: str, value: str) -> None:
        raise LookupError(value)


class ChainKeyring(FakeKeyring):
    """Several keyrings behind one."""

    priority = 10.0

    def __init__(self, *backends: FakeKeyring) -> None:
        super().__init__()
        self.backends = backends


class PlainText(FakeKeyring):
    """One of the alternatives that keep plain text."""


PlainText.__module__ = "keyrings.alt.file"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    _install(monkeypatch, NoKeyring())


def _install(monkeypatch: pytest.MonkeyPatch, backend: FakeKeyring) -> None:
    module = ModuleType("keyring")
    module.get_keyring = lambda: backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", module)


def test_the_environment_counts_before_what_is_stored() -> None:
    store_key("openai", SECRET)
    names = ("OPENAI_API_KEY", "OTHER")
    assert find_key("openai", names, {"OTHER": " from-env "}) == ApiKey(value="from-env", origin="OTHER")
    assert find_key("openai", names, {"OPENAI_API_KEY": " "}) == ApiKey(value=SECRET, origin=str(key_file()))
    assert find_key("groq", (), {}) is None


@pytest.mark.parametrize("exists", [False, True])
def test_without_a_keyring_the_key_is_in_a_file_of_the_owner_alone(exists: bool) -> None:
    if exists:
        key_file().parent.mkdir(mode=0o755)
    assert store_key("openai", SECRET) == str(key_file())
    assert stat.S_IMODE(key_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file().parent.stat().st_mode) == 0o700
    assert list(key_file().parent.iterdir()) == [key_file()]


def test_with_a_keyring_the_key_is_not_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    store_key("openai", "sk-older-key-in-the-file")
    backend = FakeKeyring()
    _install(monkeypatch, backend)
    assert store_key("openai", SECRET) == "the system's keyring"
    assert backend.kept == {("treadle", "openai"): SECRET}
    assert "sk-" not in key_file().read_text()
    assert find_key("openai", (), {}) == ApiKey(value=SECRET, origin="the system's keyring")
    assert forget_key("openai")
    assert backend.kept == {}
    assert find_key("openai", (), {}) is None


def test_the_keyring_is_not_asked_for_providers_that_it_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, FakeKeyring())
    store_key("openai", SECRET)
    monkeypatch.delitem(sys.modules, "keyring")
    assert find_key("groq", (), {}) is None
    assert "keyring" not in sys.modules


@pytest.mark.parametrize(
    "backend", [NoKeyring(), PlainText(), ChainKeyring(PlainText(), NoKeyring()), RefusingKeyring()]
)
def test_what_is_no_real_keyring_is_passed_over(monkeypatch: pytest.MonkeyPatch, backend: FakeKeyring) -> None:
    _install(monkeypatch, backend)
    assert store_key("openai", SECRET) == str(key_file())
    assert backend.kept == {}


def test_the_first_real_keyring_of_several_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    real = FakeKeyring()
    _install(monkeypatch, ChainKeyring(PlainText(), real))
    store_key("openai", SECRET)
    assert real.kept == {("treadle", "openai"): SECRET}
    assert keyring_name() == FakeKeyring.__module__


def test_a_keyring_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, LockedKeyring())
    monkeypatch.setattr(keys, "_KEYRING_SECONDS", 0.01)
    assert store_key("openai", SECRET) == str(key_file())


def test_a_key_is_forgotten() -> None:
    store_key("openai", SECRET)
    store_key("groq", "gsk-other-key-here")
    assert (forget_key("openai"), forget_key("openai")) == (True, False)
    assert SECRET not in key_file().read_text()
    assert find_key("groq", (), {}) is not None


def test_a_file_that_others_can_read_is_refused() -> None:
    store_key("openai", SECRET)
    key_file().chmod(0o640)
    with pytest.raises(ConfigError) as caught:
        find_key("openai", (), {})
    assert caught.value.code == "keys-exposed"


@pytest.mark.parametrize("text", ["{", '{"keys": {"openai": 5}, "x": "' + SECRET + '"}', SECRET])
def test_a_damaged_file_is_told_without_its_content(text: str) -> None:
    store_key("openai", SECRET)
    key_file().write_text(text)
    with pytest.raises(ConfigError) as caught:
        find_key("openai", (), {})
    assert caught.value.code == "keys-unreadable"
    assert SECRET not in f"{caught.value.what}{caught.value.why}{caught.value.fix}"
    assert caught.value.__cause__ is None


def test_a_folder_that_cannot_be_one_holds_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "file" / "home"))
    assert find_key("openai", (), {}) is None


def test_a_key_does_not_show_itself() -> None:
    key = ApiKey(value=SECRET, origin="X")
    assert SECRET not in f"{key} {key!r} {[key]}"
