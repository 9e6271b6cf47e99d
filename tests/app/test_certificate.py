"""The certificate of the page on the network: kept as long as it does, and made anew where it does not."""

import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from treadle.app.hosting.certificate import page_certificate
from treadle.protocol.errors import ConfigError

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ("192.0.2.7", "2001:db8::7", "host.local")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    return tmp_path


def test_it_is_made_once_and_only_its_owner_reads_it() -> None:
    made = page_certificate(NAMES, NOW)
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    assert len(made.fingerprint) == 32 * 3 - 1
    assert page_certificate(reversed(NAMES), NOW + timedelta(days=300)) == made  # type: ignore[arg-type]
    assert made.context().get_ca_certs() == []


def _end_its_key(file: Path) -> None:
    file.write_bytes(file.read_bytes()[100:])


def _of_another(file: Path) -> None:
    text = file.read_bytes()
    file.unlink()
    page_certificate(NAMES, NOW)
    key = file.read_bytes().partition(b"-----BEGIN CERTIFICATE")[0]
    file.write_bytes(key + text[text.index(b"-----BEGIN CERTIFICATE") :])


def _linked(file: Path) -> None:
    file.rename(file.with_name("elsewhere.pem"))
    file.symlink_to(file.with_name("elsewhere.pem"))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.chmod(0o640),
        lambda file: file.write_text(""),
        lambda file: file.write_bytes(b"\xff\x00"),
        lambda file: file.unlink(),
        _end_its_key,
        _of_another,
        _linked,
    ],
)
def test_one_that_cannot_be_relied_on_is_replaced(spoil: Callable[[Path], object]) -> None:
    made = page_certificate(NAMES, NOW)
    spoil(made.file)
    again = page_certificate(NAMES, NOW)
    assert again.fingerprint != made.fingerprint
    assert stat.S_IMODE(again.file.lstat().st_mode) == 0o600
    assert page_certificate(NAMES, NOW) == again


@pytest.mark.parametrize(
    ("days", "names"), [(368, NAMES), (500, NAMES), (-1, NAMES), (0, NAMES[:2]), (0, (*NAMES, "x"))]
)
def test_it_is_made_anew_near_its_end_and_for_other_addresses(days: int, names: tuple[str, ...]) -> None:
    made = page_certificate(NAMES, NOW)
    assert page_certificate(names, NOW + timedelta(days=days)).fingerprint != made.fingerprint


@pytest.mark.parametrize("name", ["fe80::1%eth0", "2001:DB8::7", "b\u00fcro.local", "Host.local", ".local"])
def test_however_a_name_is_written_the_certificate_is_made_once(name: str) -> None:
    made = page_certificate((*NAMES, name), NOW)
    assert page_certificate((*NAMES, name), NOW) == made


def test_where_it_cannot_be_kept_the_page_does_not_go_to_the_network(home: Path) -> None:
    (home / "web").write_text("a file")
    with pytest.raises(ConfigError) as refused:
        page_certificate(NAMES, NOW)
    assert refused.value.code == "certificate-unwritable"
