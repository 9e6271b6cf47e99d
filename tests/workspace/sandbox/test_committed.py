"""What a tracked secret shows in the sandbox: its committed text, or nothing where git does not give that."""

import stat
import subprocess
from pathlib import Path

import pytest
from tests.workspace.sandbox.running import bubblewrap

from treadle.app.security.command_confinement import confine_as
from treadle.app.security.command_folders import CommandFolders
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Confinement
from treadle.workspace.sandbox import Committed, GitReader, tracked

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


LARGE = 5 * 1024 * 1024


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A repository with a folder of secrets in which folders are, and things of every kind."""
    root = (tmp_path / "ws").resolve()
    folder = root / ".aws"
    (folder / "sub").mkdir(parents=True)
    _git(root, "init", "-q")
    (root / "a").write_text("one\n")
    for name in "wxyz":
        (folder / "sub" / name).write_text(name)
    (folder / "same").write_text("x")
    (folder / "same").chmod(0o755)
    (folder / "link").symlink_to("sub/x")
    (folder / "large").write_bytes(bytes(LARGE))
    (folder / "gone").write_text("gone\n")
    _git(root, "add", "-A")
    commit = _git(root, "commit-tree", _git(root, "write-tree").strip(), "-m", "inner").strip()
    _git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},.aws/other")
    _git(root, "commit", "-qm", "one")
    gone = _git(root, "rev-parse", "HEAD:.aws/gone").strip()
    (root / ".git/objects" / gone[:2] / gone[2:]).unlink()
    return root


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(("git", *SETTINGS, *words), cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("most", [5_000, 3])
def test_nothing_that_is_committed_in_a_folder_of_secrets_is_missing_there(
    secrets: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bubblewrap()
    monkeypatch.setattr(tracked, "_MOST_IN_A_FOLDER", most)
    private, asked = secrets.parent / "private", list[str]()
    reader = GitReader(str(secrets), str(private))

    def ask(*words: str) -> bytes | None:
        asked.append(words[0])
        return reader(*words)

    ((path, shown),) = Committed(str(secrets), str(private), ask).instead((f"{secrets}/.aws",), folders=True)
    assert (path, len(asked) < 10) == (f"{secrets}/.aws", True)
    kinds = {str(one.relative_to(shown)): stat.S_IFMT(one.lstat().st_mode) for one in Path(shown).rglob("*")}
    files = {one.relative_to(shown): one.read_text() for one in Path(shown).rglob("*") if one.is_file()}
    assert files == {one: (secrets / ".aws" / one).read_text() for one in files}
    assert len(files) == (6 if most > 3 else 0)
    assert kinds == {
        "gone": stat.S_IFSOCK,
        "large": stat.S_IFSOCK,
        "link": stat.S_IFLNK,
        "other": stat.S_IFDIR,
        "sub": stat.S_IFDIR,
        "same": stat.S_IFREG if most > 3 else stat.S_IFSOCK,
        **dict.fromkeys((f"sub/{name}" for name in "wxyz"), stat.S_IFREG if most > 3 else stat.S_IFSOCK),
    }


def test_where_git_does_not_say_what_it_has_in_a_folder_of_secrets_no_commit_is_made(secrets: Path) -> None:
    bubblewrap()
    tree = _git(secrets, "rev-parse", "HEAD:.aws").strip()
    (secrets / ".git/objects" / tree[:2] / tree[2:]).unlink()
    private = str(secrets.parent / "private")
    committed = Committed(str(secrets), private, GitReader(str(secrets), private))
    with pytest.raises(ToolError, match="Git did not say"):
        committed.instead((f"{secrets}/.aws",), folders=True)
    assert committed.instead((f"{secrets}/.aws",)) == ()
