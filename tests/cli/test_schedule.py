"""`treadle schedule`: kept, listed, paused and removed."""

import json
from pathlib import Path

import pytest

from treadle.cli.main import run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    (tmp_path / "ws").mkdir()
    monkeypatch.chdir(tmp_path / "ws")


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert run(["schedule", "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_schedule_is_kept_listed_paused_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "add", "every weekday 9:00", "Look.", "--max-cost", "0.25", "--mode", "plan"]) == 0
    assert " CE" in capsys.readouterr().out  # the zone of the person, in winter or in summer
    (row,) = rows(capsys)
    assert (row["when"], row["zone"], row["task"]) == ("every weekday 9:00", "Europe/Berlin", "Look.")
    assert (row["folder"], row["max_cost"], row["mode"]) == (str((tmp_path / "ws").resolve()), 0.25, "plan")
    assert (row["paused"], row["missed"]) == (False, 0)
    name = str(row["id"])
    assert run(["schedule", "pause", name]) == 0
    assert [(one["paused"], one["next"]) for one in rows(capsys)] == [(True, None)]
    assert run(["schedule", "resume", name]) == 0
    assert [one["paused"] for one in rows(capsys)] == [False]
    assert run(["schedule", "list"]) == 0
    assert "Look." in capsys.readouterr().out
    assert run(["schedule", "remove", name]) == 0
    assert rows(capsys) == []
    assert run(["schedule", "remove", name]) == 78
    assert "treadle schedule list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("every blue 9:00", "Look."), "every weekday 9:00"),
        (("2020-01-01 9:00", "Look."), "still to come"),
        (("every day 9:00", " "), "Write it behind the time"),
        (("every day 9:00", "/goal all tests pass"), "/goal cannot be scheduled."),
        (("every day 9:00", " /compact"), "/compact cannot be scheduled."),
        (("every day 9:00", "/mode plan"), "/mode cannot be scheduled."),
        (("every day 9:00", "!ls"), "Say what to do in words."),
        (("every day 9:00", "Look.", "--max-cost", "0"), "such as 0.5"),
        (("every day 9:00", "Look.", "--zone", "Nowhere"), "Europe/Berlin"),
        (("every day 9:00", "Look.", "--model", "nobody/x"), "There is no provider 'nobody'"),
        (("every day 9:00", "Look.", "--model", "anthropic/claude-sonet-5"), "The nearest names are"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_way_on(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schedule", "add", *words]) != 0
    assert says in " ".join(capsys.readouterr().err.split())
    assert rows(capsys) == []
