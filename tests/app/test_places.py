"""Where Treadle keeps its things, by what the environment says."""

import os
import pwd
import sys
from pathlib import Path

import pytest

from treadle.app.config.places import config_file, data_directory

USUAL_DATA, USUAL_SETTINGS = (
    ("Library/Application Support", "Library/Application Support")
    if sys.platform == "darwin"
    else (".local/share", ".config")
)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment name nothing."""
    for name in ("TREADLE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_data_and_settings_are_in_the_usual_folders_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert data_directory() == Path("/home/ann") / USUAL_DATA / "treadle"
    assert config_file() == Path("/home/ann") / USUAL_SETTINGS / "treadle" / "config.toml"


def test_xdg_variables_name_other_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/settings")
    assert data_directory() == Path("/data/treadle")
    assert config_file() == Path("/settings/treadle/config.toml")


@pytest.mark.parametrize("named", ["", "relative/folder"])
def test_a_folder_that_depends_on_the_current_one_is_not_used(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, named)
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert data_directory() == home / USUAL_DATA / "treadle"
    assert config_file() == home / USUAL_SETTINGS / "treadle" / "config.toml"


def test_treadle_home_holds_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert data_directory() == tmp_path
    assert config_file() == tmp_path / "config.toml"
