"""What a tracked secret shows in the sandbox: its committed text, or nothing where git does not give that."""

import subprocess
from pathlib import Path

import pytest
from tests.workspace.sandbox.running import bubblewrap

from treadle.app.security.command_confinement import confine_as
from treadle.app.security.command_folders import CommandFolders
from treadle.protocol.tools import Confinement
from treadle.workspace.sandbox import Committed, GitReader

SETTINGS = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = (tmp_path / "ws").resolve()
    root.mkdir()
    (root / ".env").write_text("A=committed\n")
    (root / "empty.pem").write_text("")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        subprocess.run(("git", *SETTINGS, *words), cwd=root, check=True, capture_output=True)
    (root / ".env").write_text("A=told\n")
    return root


def _shown(repository: Path) -> dict[str, str]:
    private = repository.parent / "private"
    committed = Committed(str(repository), str(private), GitReader(str(repository), str(private)))
    pairs = committed.instead((f"{repository}/.env", f"{repository}/empty.pem", f"{repository}/new.pem"))
    return {Path(path).name: Path(file).read_text() for path, file in pairs}


def test_a_tracked_secret_shows_its_committed_text(repository: Path) -> None:
    bubblewrap()
    assert _shown(repository) == {".env": "A=committed\n", "empty.pem": ""}


@pytest.mark.parametrize("damage", ["missing", "empty", "no git", "a folder"])
def test_a_tracked_secret_whose_data_are_missing_shows_nothing_and_commands_run(
    repository: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bubblewrap()
    blob = subprocess.run(("git", "rev-parse", "HEAD:.env"), cwd=repository, check=True, capture_output=True, text=True)
    data = repository / ".git/objects" / blob.stdout[:2] / blob.stdout.strip()[2:]
    data.chmod(0o644)
    match damage:
        case "missing":
            data.unlink()
        case "empty":
            data.write_bytes(b"")
        case "a folder":
            data.unlink()
            data.mkdir()
        case _:
            monkeypatch.setattr("treadle.workspace.sandbox.reading_git.find_outside", lambda *_: "/missing/git")
    assert _shown(repository).get(".env") is None
    data_folder = repository.parent / "data"
    place = CommandFolders(root=str(repository), data=data_folder, private=data_folder / "private")
    setup = confine_as(Confinement.WORK, "cat .env", place)
    words = setup.wrapping.around(("cat", f"{repository}/.env"))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)
