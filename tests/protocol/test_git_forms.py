"""What git takes for a repository is known by its form, and a file that makes a folder one is known by its path."""

import itertools
import subprocess
from pathlib import Path

import pytest

from treadle.protocol.inert_settings import acting_settings
from treadle.protocol.protected_names import git_data_of, is_git_data

NAMES = ("HEAD", "objects", "refs", "commondir", "config")
SETS = [set(chosen) for number in range(len(NAMES) + 1) for chosen in itertools.combinations(NAMES, number)]


@pytest.mark.parametrize("names", SETS, ids=lambda names: "+".join(sorted(names)) or "nothing")
def test_what_git_takes_for_a_repository_is_known_by_its_names(tmp_path: Path, names: set[str]) -> None:
    shared, folder = tmp_path / "shared", tmp_path / "folder"
    subprocess.run(("git", "init", "-q", "--bare", str(shared)), check=True)
    folder.mkdir()
    for name in names:
        match name:
            case "HEAD":
                (folder / name).write_text("ref: refs/heads/main\n")
            case "commondir":
                (folder / name).write_text("../shared\n")
            case "config":
                (folder / name).write_text("")
            case _:
                (folder / name).mkdir()
    asked = subprocess.run(("git", "rev-parse", "--git-dir"), cwd=folder, capture_output=True, text=True, check=False)
    assert is_git_data(names) is (asked.stdout.strip() == ".")


def test_case_says_nothing() -> None:
    assert is_git_data(("head", "Objects", "REFS"))


@pytest.mark.parametrize(
    ("path", "folders"),
    [
        ("/ws/x/HEAD", {"/ws/x/": "HEAD"}),
        ("/ws/x/Config", {"/ws/x/": "Config"}),
        ("/ws/x/config.worktree", {"/ws/x/": "config.worktree"}),
        ("/ws/x/commondir", {"/ws/x/": "commondir"}),
        ("/ws/x/hooks/pre-commit", {"/ws/x/": "hooks"}),
        ("/ws/x/refs/objects/a", {"/ws/x/": "refs", "/ws/x/refs/": "objects"}),
        ("/ws/x/objects", {"/ws/x/": "objects"}),
        ("/ws/x/HEAD/a", {}),
        ("/ws/x/config.py", {}),
        ("/ws/hooksmith/a", {}),
    ],
)
def test_a_path_names_the_folders_that_it_may_make_a_repository(path: str, folders: dict[str, str]) -> None:
    assert dict(git_data_of(path)) == folders


def test_settings_of_what_git_itself_makes_act_in_nothing(tmp_path: Path) -> None:
    made = {
        "bare": ("init", "-q", "--bare"),
        "shared": ("init", "-q", "--bare", "--shared"),
        "mirror": ("clone", "-q", "--mirror", str(tmp_path / "bare")),
        "clone": ("clone", "-q", "--bare", str(tmp_path / "bare")),
    }
    for name, words in made.items():
        subprocess.run(("git", *words, str(tmp_path / name)), check=True, capture_output=True)
        assert acting_settings((tmp_path / name / "config").read_text()) == []
