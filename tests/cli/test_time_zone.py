"""A time zone that the system does not know: times are in its own, and that is said."""

import os
import time
from collections.abc import Iterator

import pytest

from treadle.cli.time_zone import use_known_zone


@pytest.fixture(autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")  # what is there is there again afterwards
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("named", ["Nowhere/Land", "Nowhere", "/nope", "/etc/passwd", "Europe\x1b[2J", ":x/y"])
def test_a_zone_that_is_not_known_gives_way_to_the_systems_own_and_is_named(
    named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TZ")
    time.tzset()
    own = time.strftime("%Z, UTC%z")
    monkeypatch.setenv("TZ", named)
    time.tzset()
    use_known_zone()
    assert time.strftime("%Z, UTC%z") == own
    assert "TZ" not in os.environ
    said = f"treadle: TZ={named!a} is no time zone of this system: times are in its own ({own}).\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "named", ["", "UTC", "GMT", "UTC0", "EST5EDT", "<+03>-3", "CET-1CEST,M3.5.0,M10.5.0/3", ":UTC", "Custom/Zone"]
)
def test_a_zone_that_is_known_stays(
    named: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path_factory.mktemp("zones")
    (folder / "Custom").mkdir()
    (folder / "Custom" / "Zone").write_bytes(b"TZif2")
    monkeypatch.setenv("TZDIR", str(folder))
    monkeypatch.setenv("TZ", named)
    use_known_zone()
    assert (os.environ["TZ"], capsys.readouterr().err) == (named, "")
