"""Git as Treadle itself runs it is never a program of the folder."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.workspace.sandbox.running import bubblewrap

from treadle.workspace.sandbox import GitReader
from treadle.workspace.sandbox.home import home_for


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose own `git` comes first on the search path, by its place and by the current directory."""
    folder = tmp_path.resolve() / "ws"
    programs = folder / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    for place in (programs, folder):
        (place / "git").write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
        (place / "git").chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{programs}:.:{os.environ['PATH']}")
    return folder


def test_git_is_not_taken_from_the_folder_that_it_reads(folder: Path) -> None:
    bubblewrap()
    ask = GitReader(str(folder), str(folder.parent / "private"))
    assert (ask("rev-parse", "--show-toplevel") or b"").decode().strip() == str(folder)
    assert not (folder.parent / "ran").exists()


def test_git_that_reads_the_users_settings_is_not_taken_from_the_folder(folder: Path) -> None:
    home = folder.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Somebody\n")
    private = folder.parent / "private"
    private.mkdir()
    found = home_for(str(home), str(private), {}, roots=[str(folder)], environments=[])
    assert [Path(file).read_text() for _, file in found.replaced] == ['[user]\n\tname = "Somebody"\n']
    assert not (folder.parent / "ran").exists()
