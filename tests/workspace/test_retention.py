"""Old outputs go; what is in use stays."""

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from treadle.workspace.commands import retention
from treadle.workspace.commands.background_jobs import Job
from treadle.workspace.commands.retention import read_outputs, remove_old_outputs, remove_old_outputs_now, try_folder
from treadle.workspace.files.owners import owner_of

_DAY = 24 * 3600
_NOW = 1_000_000_000.0


def _session(place: Path, name: str, *, days: float, size: int = 4096) -> Path:
    folder = place / name
    folder.mkdir(parents=True)
    (folder / "output-1.txt").write_bytes(bytes(size))
    for path in (folder / "output-1.txt", folder):
        os.utime(path, (_NOW - days * _DAY, _NOW - days * _DAY))
    return folder


def test_old_outputs_go_and_those_of_running_sessions_stay(tmp_path: Path) -> None:
    for name, days in (("old", 31), ("old-but-open", 90), ("young", 29)):
        _session(tmp_path, name, days=days)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "young")
    assert [one.folder.name for one in read_outputs(tmp_path)] == ["old-but-open", "old", "young"]
    assert remove_old_outputs(tmp_path, {"old-but-open"}, now=_NOW) >= 4096
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tidied", "file", "link", "old-but-open", "young"]


def test_the_oldest_go_when_there_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, days in (("first", 3), ("open", 2), ("second", 1), ("third", 0)):
        _session(tmp_path, name, days=days, size=100_000)
    monkeypatch.setattr(retention, "MOST_BYTES", 250_000)
    remove_old_outputs(tmp_path, {"open"}, now=_NOW)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tidied", "open", "third"]


def test_it_looks_once_a_day(tmp_path: Path) -> None:
    remove_old_outputs(tmp_path, (), now=_NOW)
    _session(tmp_path, "old", days=31)
    assert remove_old_outputs(tmp_path, (), now=_NOW + _DAY / 2) == 0
    assert remove_old_outputs(tmp_path, (), now=_NOW + _DAY) >= 4096
    assert remove_old_outputs(tmp_path / "nowhere", (), now=_NOW) == 0


def test_what_a_killed_session_left_running_keeps_its_output(tmp_path: Path) -> None:
    folder = _session(tmp_path, "killed", days=99)
    with subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE) as process:
        guard = owner_of(process.pid)
        job = Job(number=1, command="x", started_at=0, guard=guard, owner=guard, output="")
        (folder / "job-1.json").write_bytes(msgspec.json.encode(job))
        for path in (folder / "job-1.json", folder):
            os.utime(path, (_NOW - 99 * _DAY, _NOW - 99 * _DAY))
        remove_old_outputs(tmp_path, (), now=_NOW)
        assert folder.is_dir()
        process.kill()
    remove_old_outputs(tmp_path, (), now=_NOW + _DAY)
    assert not folder.exists()


def test_what_hooks_of_a_killed_session_were_given_goes_with_the_next_one_that_ends(tmp_path: Path) -> None:
    remove_old_outputs_now(tmp_path, ())
    for session, hours in (("killed", 2), ("open", 2), ("new", 0)):
        file = tmp_path / session / "hooks" / "hook-1-in"
        file.parent.mkdir(parents=True)
        file.write_text("{}")
        os.utime(file, (time.time() - hours * 3600,) * 2)
    remove_old_outputs_now(tmp_path, {"open"})
    assert sorted(file.parts[-3] for file in tmp_path.rglob("hook-*")) == ["new", "open"]


def test_the_folder_of_a_trial_stays_while_its_process_lives(tmp_path: Path) -> None:
    mine, next_one, ended = try_folder(tmp_path), try_folder(tmp_path), tmp_path / f"try-{os.getpid()}-1"
    for folder in (mine, next_one, ended, tmp_path / "try-no-number", tmp_path / "try-1-x", tmp_path / "session"):
        folder.mkdir()
        os.utime(folder, (0, 0))
    remove_old_outputs_now(tmp_path, {"session"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tidied", "session", mine.name, next_one.name]
