"""What is missing around the program is named with what to do: no trace, and no bug of Treadle."""

import os
import pwd
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from treadle.app.config.places import data_directory

LOOKS = [("sessions",), ("config",), ("trust",), ("policy", "explain", "ls"), ("tools",), ("-p", "go"), ("mcp", "list")]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_current_folder_that_is_gone_is_named(
    treadle: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    said = treadle(*words)
    monkeypatch.chdir(tmp_path)
    assert said.code == 78
    assert said.err.startswith("treadle: The current folder does not exist any more. [folder-gone]\n")
    assert "  fix: Go to another folder with `cd`, and run the command again." in said.err


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is not in the list of users, as in a container."""

    def unknown(_: int) -> None:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(pwd, "getpwuid", unknown)


@pytest.mark.parametrize("home_variable", ["", "relative/folder"])
def test_without_a_home_what_needs_one_says_so_and_the_rest_works(
    treadle: Command, nobody: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home_variable: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", home_variable)
    assert treadle("sessions").err.startswith("No sessions here yet.")  # TREADLE_HOME is set
    task = treadle("-p", "go", "--model", "scripted//x.json")
    monkeypatch.delenv("TREADLE_HOME")
    for said in (task, treadle("sessions"), treadle("config", "set", "mode", "ask")):
        assert said.code == 78
        assert said.err.startswith("treadle: The home folder of the user is unknown. [home-unknown]\n")
        assert "  fix: Set HOME to a folder of yours." in said.err


def test_a_home_that_is_no_absolute_path_is_that_of_the_list_of_users(
    treadle: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "relative/folder")
    assert treadle("sessions").code == 0
    assert os.environ["HOME"] == pwd.getpwuid(os.getuid()).pw_dir
    assert Path.home().is_absolute()
    assert data_directory().is_absolute()


def test_a_user_that_there_is_not_in_a_path_is_named_as_one(treadle: Command) -> None:
    said = treadle("sessions", "-C", "~nosuchuser/folder")
    assert said.code == 78
    assert "A path begins with ~ and the name of a user that this computer does not have. [home-of-user]" in said.err
