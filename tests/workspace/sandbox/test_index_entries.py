"""What is in git's index as a control file and is no file of the workspace is taken out, unless it was there before."""

import subprocess
from pathlib import Path

import pytest
from tests.workspace.sandbox.running import bubblewrap

from treadle.protocol.protected_names import control_name
from treadle.workspace.sandbox import GitReader
from treadle.workspace.sandbox.index_entries import IndexEntries


def git(root: Path, *words: str, text: str = "") -> str:
    return subprocess.run(("git", *words), cwd=root, check=True, capture_output=True, text=True, input=text).stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    bubblewrap()
    folder = tmp_path / "work"
    folder.mkdir()
    for words in (("init", "-qb", "main"), ("config", "user.name", "A"), ("config", "user.email", "a@b")):
        git(folder, *words)
    return folder


def entries(root: Path) -> IndexEntries:
    private = str(root.parent / "private")
    readers = GitReader(str(root), private), GitReader(str(root), private, writes=True)
    return IndexEntries(*readers, is_held=lambda path: control_name(path) is not None)


def put(root: Path, *names: str, text: str = "evil") -> None:
    named = git(root, "hash-object", "-w", "--stdin", text=text).strip()
    for name in names:
        git(root, "update-index", "--add", "--cacheinfo", f"100644,{named},{name}")


@pytest.mark.parametrize("committed", [False, True])
def test_what_came_into_the_index_alone_is_what_it_was_and_the_rest_stays(committed: bool, root: Path) -> None:
    (root / "AGENTS.md").write_text("rules")
    (root / "a").write_text("one")
    git(root, "add", "-A")
    if committed:
        git(root, "commit", "-qm", "first")
    put(root, "CLAUDE.md")  # as a person left it
    found = entries(root)
    put(root, ".envrc", ".husky/*", ".husky/pre-commit", "b")
    (root / ".npmrc").write_text("on the disk")
    git(root, "add", ".npmrc")
    if committed:
        put(root, "AGENTS.md")
    said = list(found.take_out())
    changed = [".envrc", ".husky/*", ".husky/pre-commit", *(["AGENTS.md"] if committed else [])]
    assert sorted(one.split()[0] for one in said) == sorted(changed)
    assert all(one.endswith("It was taken out again.") for one in said)
    assert git(root, "ls-files").split() == [".npmrc", "AGENTS.md", "CLAUDE.md", "a", "b"]
    assert git(root, "show", ":AGENTS.md") == "rules"
    assert list(entries(root).take_out()) == []


def test_what_cannot_be_taken_out_is_said(root: Path) -> None:
    found = entries(root)
    put(root, ".envrc")
    (root / ".git/index.lock").touch()
    (said,) = found.take_out()
    assert said.endswith("no file of the workspace is the same. It is still there: `git reset` takes it out.")


def test_no_hook_and_no_filter_of_the_repository_runs(root: Path) -> None:
    (root / ".gitattributes").write_text("* filter=x")
    git(root, "config", "filter.x.clean", "touch ran; cat")
    hook = root / ".git/hooks/post-index-change"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    found = entries(root)
    put(root, ".envrc")
    (root / "ran").unlink(missing_ok=True)
    assert len(list(found.take_out())) == 1
    assert not (root / "ran").exists()
