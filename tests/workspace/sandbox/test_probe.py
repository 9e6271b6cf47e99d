"""What kind of sandbox is found: from stand-ins for bubblewrap that work or do not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.workspace.sandbox import Backend, SandboxState, probe
from treadle.workspace.sandbox.confine import version


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a folder in the place of the system's, and forget what was found before and after."""
    monkeypatch.setattr("treadle.workspace.sandbox.backend._SYSTEM", str(tmp_path))
    monkeypatch.setattr("treadle.workspace.sandbox.backend.find_spec", lambda _: None)
    probe.cache_clear()
    yield tmp_path
    probe.cache_clear()


def put(folder: Path, text: str) -> str:
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return str(program)


def test_a_bubblewrap_that_works_is_taken(programs: Path) -> None:
    program = put(programs, "exit 0")
    assert probe() == SandboxState(backend=Backend.BUBBLEWRAP, program=program)


def test_a_bubblewrap_that_fails_is_named_with_what_it_said(programs: Path) -> None:
    put(programs, "echo 'no permission for a namespace' >&2; exit 1")
    state = probe()
    assert state.reason.startswith("bubblewrap does not work here: no permission for a namespace; ")
    assert state.backend is (Backend.LANDLOCK if version() >= 3 else None)


def test_on_a_busy_machine_it_is_tried_once_more(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.workspace.sandbox.backend._PATIENCE", (0.2, 90.0))
    program = put(programs, f"test -e {programs}/tried && exit 0; : >{programs}/tried; exec sleep 60")
    assert probe() == SandboxState(backend=Backend.BUBBLEWRAP, program=program)


def test_without_bubblewrap_that_is_said(programs: Path) -> None:
    assert probe().reason.startswith("bubblewrap is not installed; ")


def test_without_landlock_there_is_nothing(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for found, said in ((0, "the kernel has no Landlock"), (2, "the kernel has Landlock 2, too old")):
        monkeypatch.setattr("treadle.workspace.sandbox.confine.version", lambda found=found: found)
        probe.cache_clear()
        assert probe() == SandboxState(backend=None, reason=f"bubblewrap is not installed; {said}")
