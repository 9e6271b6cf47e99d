"""What commands see only a stand-in of never gets into the index or a commit, neither emptied nor deleted."""

import subprocess
from pathlib import Path

import pytest

from tests.app.rehearsal import Rehearsal, rehearse, run
from tests.workspace.sandbox.running import bubblewrap
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Outcome
from treadle.workspace.sandbox.git_excludes import excludes_for

NEW = (".env", "sub/.env", "a [b] #!.pem", "\\*?.key", " .pem", ".aws/untracked")
"""Secrets that git neither knows nor ignores; the folder of the last one holds some that it knows."""

KNOWN = (".env.old", ".aws/deep/x", ".aws/credentials", "run.secret")


def git(root: Path, *words: str) -> str:
    settings = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "core.quotePath=false")
    return subprocess.run(("git", *settings, *words), cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bubblewrap()
    git(tmp_path, "init", "-b", "main")
    git(tmp_path, "config", "user.name", "A")
    git(tmp_path, "config", "user.email", "a@b")
    for name in KNOWN:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("committed")
    (tmp_path / "run.secret").chmod(0o755)
    (tmp_path / ".aws/link").symlink_to("credentials")
    (tmp_path / "a").write_text("one\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "first")
    for name in (*NEW, *KNOWN):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("SECRET")
    return tmp_path


def _secrets(root: Path) -> dict[str, str]:
    """Give what the index and the commits hold of secrets, by path, with their modes and contents."""
    places = ("ls-files -s --full-name", "ls-tree -r HEAD")
    rows = [row for place in places for row in git(root, *place.split(), "-z").split("\0") if row]
    stashed = git(root, "stash", "list")
    found = {f"{row.split()[0]} {row.partition(chr(9))[2]}": row.replace(" blob", "").split()[1] for row in rows}
    return {name: data for name, data in found.items() if not name.endswith((" a", " n"))} | {"stash": stashed}


TAKEN = {
    "all": "git add -A && git commit -m x",
    "here": "git add . && git commit -m x",
    "all that changed": "git add n; git commit -am x",
    "from below": "cd sub; git add -A ..; git commit -m x",
    "a stash": "git stash -u; git stash pop",
    "by a pattern": "git add '*' ; git commit -m x",
}
REFUSED = {
    "by name": "git add sub/.env",
    "by force": "git add -f sub/.env",
    "all by force": "git add -f .",
    "into the index": "git update-index --add sub/.env",
    "a commit of it": "git commit -m x sub/.env",
}
CALLS = {"line": "echo n > n; {}", "script": "printf '%s\\n' \"echo n > n; {}\" > /tmp/s; sh /tmp/s"}


async def _ran(folder: Path, line: str) -> Rehearsal:
    return await rehearse(folder, [run(line)], mode=Mode.AUTO)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", TAKEN)
async def test_what_takes_along_all_leaves_secrets_as_they_are(folder: Path, name: str, call: str) -> None:
    before = _secrets(folder)
    found = await _ran(folder, CALLS[call].format(TAKEN[name]))
    assert _secrets(folder) == before, found.texts
    assert "stash" in name or git(folder, "show", "HEAD:n") == "n\n"
    told = [text for text in found.texts[0].splitlines() if text.startswith("[Git adds ")]
    assert told == [
        "[Git adds  .pem, .env, \\*?.key, a [b] #!.pem, sub/.env to no commit in the sandbox: secrets may be there.]"
    ]
    assert all((folder / one).read_text() == "SECRET" for one in (*NEW, *KNOWN))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", REFUSED)
async def test_a_secret_that_is_named_is_refused_with_the_reason(folder: Path, name: str, call: str) -> None:
    before = _secrets(folder)
    found = await _ran(folder, CALLS[call].format(REFUSED[name]))
    assert _secrets(folder) == before, found.texts
    assert "sub/.env to no commit in the sandbox" in found.texts[0] or "protected" in found.texts[0], found.texts


async def test_a_secret_that_is_staged_is_not_staged_as_emptied(folder: Path) -> None:
    git(folder, "add", "sub/.env")
    before = _secrets(folder)
    found = await _ran(folder, "echo n > n; git add -A")
    assert _secrets(folder) == before, found.texts
    assert "sub/.env to no commit in the sandbox" in found.texts[0]


async def test_what_the_repository_ignores_itself_is_not_told(folder: Path) -> None:
    (folder / ".gitignore").write_text("*.pem\n*.key\n.env\n")
    found = await _ran(folder, "echo n > n; git add n; git commit -m x")
    assert "to no commit" not in found.texts[0]


def test_the_list_of_what_is_ignored_is_the_repositorys_own_and_names_the_rest(folder: Path) -> None:
    (folder / ".git/info/exclude").write_text("*.own")
    (folder / "x.own").touch()
    paths = [f"{folder}/{name}" for name in NEW]
    ((own, file),) = excludes_for(str(folder), paths, str(folder.parent))
    assert own == f"{folder}/.git/info/exclude"
    listed = git(folder, "ls-files", "-z", "--others", "-i", "-X", file).split("\0")[:-1]
    assert sorted(listed) == sorted((*NEW, "x.own"))
    assert list(excludes_for(str(folder), [], str(folder.parent))) == []
    (folder / ".git/info/exclude").unlink()
    assert list(excludes_for(str(folder), paths, str(folder.parent))) == []


@pytest.mark.parametrize("line", ["git add -A && git commit -m x", "git commit -am x", "git stash", "git rm -q a"])
async def test_what_is_too_large_to_be_shown_as_committed_is_not_taken_for_deleted(folder: Path, line: str) -> None:
    (folder / ".aws/deep/large").write_bytes(bytes(5 * 1024 * 1024))
    git(folder, "add", ".aws/deep/large")
    git(folder, "commit", "-m", "second", "--", ".aws/deep/large")
    before = _secrets(folder)
    (folder / "a").write_text("one\n" if line.startswith("git rm") else "two\n")
    found = await _ran(folder, line)
    assert _secrets(folder) == before, found.texts
    assert ("Git adds .aws/deep/large" in found.texts[0]) is not line.startswith("git rm"), found.texts


async def test_no_command_of_root_changes_the_machines_device_in_the_place_of_a_secret(folder: Path) -> None:
    """Its modes and times would be changed for everybody."""
    hook = folder / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ncat .env && touch -d @1 .env\necho x > .env\ntest ! -s .env\n")
    hook.chmod(0o755)
    found = await _ran(folder, "git commit --allow-empty -m x")
    assert (found.results[0].outcome, Path("/dev/null").stat().st_mtime == 1) == (Outcome.OK, False), found.texts
    assert (folder / ".env").read_text() == "SECRET"
