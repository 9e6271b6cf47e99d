"""`treadle update` prints commands and runs none; `--version` names the commit of a checkout."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import treadle as package
from tests.cli.conftest import Command
from treadle.commit import checked_out, version_words
from treadle.workspace.installed import install_command, installation


def test_update_prints_one_command_a_line_and_says_what_it_is_about(
    treadle: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    said = treadle("update")
    assert (said.code, said.out.splitlines()) == (0, list(installation().updating()))
    assert said.err.startswith(f"{version_words()}, installed by ")


def test_an_extra_is_added_by_the_command_that_error_texts_name(treadle: Command) -> None:
    assert treadle("update", "--with", "browser").out == f"{install_command('browser')}\n"


def test_an_unknown_extra_is_refused_with_those_that_there_are(treadle: Command) -> None:
    said = treadle("update", "--with", "brwser")
    assert (said.code, said.out) == (78, "")
    assert "browser" in said.err


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_of_a_checkout_is_read_as_git_gives_it(tmp_path: Path) -> None:
    repository, worktree = tmp_path / "a", tmp_path / "b"
    repository.mkdir()
    assert checked_out(str(repository)) == ""
    git(repository, "init", "-q")
    assert checked_out(str(repository)) == ""
    git(repository, "commit", "-q", "--allow-empty", "-m", "one")
    head = git(repository, "rev-parse", "HEAD")
    assert checked_out(str(repository)) == head
    git(repository, "pack-refs", "--all")
    assert checked_out(str(repository)) == head
    git(repository, "worktree", "add", "-q", "-b", "other/branch", str(worktree))
    git(worktree, "commit", "-q", "--allow-empty", "-m", "two")
    assert checked_out(str(worktree)) == git(worktree, "rev-parse", "HEAD") != head
    git(repository, "checkout", "-q", "--detach")
    assert checked_out(str(repository)) == head


@pytest.mark.parametrize(
    ("noted", "words"),
    [
        ({"url": "u", "vcs_info": {"vcs": "git", "commit_id": "1234567890abcdef"}}, "Treadle, commit 1234567890ab"),
        ({"url": "u", "archive_info": {}}, "Treadle"),
        (None, "Treadle"),
    ],
)
def test_an_installed_copy_names_the_commit_that_the_installer_noted(tmp_path: Path, noted: object, words: str) -> None:
    there = tmp_path / "treadle"
    there.mkdir()
    for name in ("__init__.py", "commit.py"):
        shutil.copy(Path(package.__file__).with_name(name), there)
    notes = tmp_path / "treadle-0.2.0.dist-info"
    notes.mkdir()
    if noted:
        (notes / "direct_url.json").write_text(json.dumps(noted))
    code = "from treadle.commit import version_words; print(version_words())"
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == f"{package.__version__} ({words})\n"
