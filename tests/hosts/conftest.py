"""A program as hosts start it, with nothing of the one who runs the tests."""

import os
import shlex
import stat
from pathlib import Path

import pytest

from tests.hosts.place import CONFIG, Host
from tests.orphans import no_orphans
from tests.ready import started_anew, treadle

__all__ = ["no_orphans", "started_anew"]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN")) or name.startswith("CLAUDE"):
            monkeypatch.delenv(name)
    home, folder, cli = tmp_path / "home", tmp_path / "project", tmp_path / "treadle"
    home.mkdir()
    folder.mkdir()
    (home / "config.toml").write_text(CONFIG)
    cli.write_text(f'#!/bin/sh\nexec {shlex.join(treadle())} "$@"\n')
    cli.chmod(cli.stat().st_mode | stat.S_IXUSR)
    return Host(cli, folder, home)
