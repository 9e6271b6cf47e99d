"""The files that a person may want to name: what git knows, or what is there, and nothing that is hidden."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from treadle.app.session.mentions.mentionable import mentionable_paths

OLD = time.time() - 30 * 24 * 3600


def write(root: Path, *names: str, text: str = "x", at: float = OLD) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (at, at))


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b", *arguments], cwd=root, check=True)


def listed(root: Path, *, trusted: bool) -> Sequence[str]:
    return mentionable_paths(str(root), trusted=trusted)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    root.mkdir()
    return root


@pytest.mark.parametrize("trusted", [True, False])
def test_files_and_folders_that_nothing_hides_are_listed_with_or_without_git(root: Path, trusted: bool) -> None:
    git(root, "init", "-q")
    write(root, ".gitignore", text="build/\n*.log\n")
    write(root, "README.md", "shop/cart.py", "build/out.txt", "a.log", "shop/__pycache__/cart.pyc", ".github/ci.yml")
    git(root, "add", "README.md")
    assert listed(root, trusted=trusted) == (
        ".github/", ".gitignore", "README.md", "shop/", ".github/ci.yml", "shop/cart.py",
    )  # fmt: skip


def test_git_is_asked_in_a_trusted_folder_only(root: Path, tmp_path: Path) -> None:
    git(root, "init", "-q")
    write(root, "a.py", "ignored/b.py", "gone.py")
    git(root, "add", "-f", "a.py", "ignored/b.py", "gone.py")
    write(root, ".git/info/exclude", text="own.py\n")
    write(root, "own.py")
    (root / "gone.py").unlink()
    assert set(listed(root, trusted=True)) == {"a.py", "ignored/", "ignored/b.py"}
    assert "own.py" in listed(root, trusted=False)  # only git reads its own settings


def test_a_repository_that_could_make_git_run_something_is_looked_through_without_it(root: Path) -> None:
    git(root, "init", "-q")
    marker = root.parent / "ran"
    git(root, "config", "core.fsmonitor", f"touch {marker}; false")
    write(root, "a.py")
    assert listed(root, trusted=True) == ("a.py",)
    assert not marker.exists()


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("name", [".treadleignore", ".agentignore", ".clineignore", ".aiderignore"])
def test_what_an_access_list_guards_is_not_offered(root: Path, name: str, trusted: bool) -> None:
    git(root, "init", "-q")
    write(root, name, text="keys/\n*.pem\n")
    write(root, "keys/a.txt", "deep/keys/b.txt", "deep/c.pem", "deep/d.py")
    git(root, "add", "-A")
    assert set(listed(root, trusted=trusted)) == {name, "deep/", "deep/d.py"}


def test_an_access_list_that_cannot_be_used_guards_everything_below_it(root: Path) -> None:
    write(root, "open.py", "closed/a.py")
    write(root, "closed/.treadleignore", text="x\n" * 70_000)
    assert set(listed(root, trusted=False)) == {"open.py"}


def test_names_of_any_bytes_are_shown_on_one_line(root: Path) -> None:
    for raw in (b"a\xff.txt", b"new\nline", "\u202egnp.exe".encode(), b"with blank"):
        Path(os.fsdecode(bytes(root) + b"/" + raw)).touch()
    git(root, "init", "-q")
    names = {"a\\xff.txt", "new\\nline", "\\u202egnp.exe", "with blank"}
    assert set(listed(root, trusted=False)) == set(listed(root, trusted=True)) == names


def test_what_changed_lately_comes_first_but_not_what_was_checked_out_together(root: Path) -> None:
    now = time.time()
    write(root, "a.py", "b.py", "deep/c.py")
    write(root, "deep/new.py", at=now - 100)
    write(root, "newer.py", at=now - 10)
    write(root, *(f"many/{number}.py" for number in range(100)), at=now - 5_000)
    assert listed(root, trusted=False)[:4] == ("newer.py", "deep/new.py", "a.py", "b.py")


def test_links_are_named_and_not_followed(root: Path) -> None:
    write(root.parent, "outside/secret.txt")
    (root / "link").symlink_to(root.parent / "outside")
    (root / "loop").symlink_to(root)
    assert set(listed(root, trusted=False)) == {"link", "loop"}


def test_a_folder_that_cannot_be_read_or_is_not_there_has_no_files(root: Path) -> None:
    assert listed(root / "none", trusted=False) == ()
    assert listed(root / "none", trusted=True) == ()
