"""The copies of tasks: all of a project and nothing of its future, and a patch that is exact and runs nothing."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from treadle.app.processes.task_copies import ProjectCopy, copy_project, mirror_of, project_patch, remove_project_copy
from treadle.protocol.errors import ConfigError

WHO = ("-c", "user.name=a", "-c", "user.email=a@b")
LATIN = "caf\xe9\n".encode("latin-1")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *WHO, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with two commits: the second has the solution."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "kept.log").write_text("kept\n")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-qm", "first")
    git(folder, "tag", "begin")
    (folder / "a.txt").write_text("solved\n")
    git(folder, "commit", "-qam", "the solution")
    return folder


def copied(project: Path, commit: str, name: str = "t") -> ProjectCopy:
    wanted = ProjectCopy(folder=project.parent / "out" / name, base=project.parent / "out" / f"{name}.git")
    return copy_project(
        str(project) if commit != "none" else "", commit.replace("none", ""), wanted, leave_out=Path("/")
    )


def applied(project: Path, patch: bytes, commit: str) -> Path:
    """A fresh clone at a commit with the patch, as whoever judges it makes it."""
    there = project.parent / "judged"
    git(project.parent, "clone", "-q", str(project), str(there))
    git(there, "checkout", "-q", commit)
    subprocess.run(["git", "apply", "-"], cwd=there, input=patch, check=True)
    return there


def test_a_copy_at_a_commit_has_what_came_before_and_nothing_else(project: Path) -> None:
    first = git(project, "rev-parse", "begin")
    copy = copied(project, first[:8])
    assert (copy.folder / "a.txt").read_text() == "one\n"
    assert git(copy.folder, "rev-parse", "HEAD") == first
    assert (git(copy.folder, "remote"), git(copy.folder, "branch", "--all", "--format=%(refname)").count("refs")) == (
        "",
        0,
    )
    assert git(copy.folder, "log", "--all", "--format=%s") == "first"
    solution = git(project, "rev-parse", "main")
    assert subprocess.run(["git", "cat-file", "-e", solution], cwd=copy.folder, check=False).returncode != 0
    assert str(project) not in "".join(
        one.read_text(errors="replace") for one in (copy.folder / ".git").rglob("*") if one.is_file()
    )
    shared = {one.stat().st_ino for one in project.rglob("*")} & {one.stat().st_ino for one in copy.folder.rglob("*")}
    assert shared == set()


def test_the_patch_has_every_change_committed_or_not_and_applies(project: Path) -> None:
    copy = copied(project, "begin")
    (copy.folder / "a.txt").write_text("two\n")
    git(copy.folder, "commit", "-qam", "by the agent")
    (copy.folder / "new.bin").write_bytes(bytes(range(256)))
    (copy.folder / "ignored.log").write_text("no")
    (copy.folder / "__pycache__").mkdir()
    (copy.folder / "__pycache__" / "a.pyc").write_bytes(b"no")
    (copy.folder / "kept.log").unlink()
    (copy.folder / "run.sh").write_text("#!/bin/sh\n")
    (copy.folder / "run.sh").chmod(0o755)
    patch = project_patch(copy)
    assert project_patch(copy) == patch
    there = applied(project, patch, "begin")
    assert (there / "a.txt").read_text() == "two\n"
    assert (there / "new.bin").read_bytes() == bytes(range(256))
    assert os.access(there / "run.sh", os.X_OK)
    assert {one.name for one in there.iterdir()} == {".git", ".gitignore", "a.txt", "new.bin", "run.sh"}


def test_what_a_killed_process_left_hinders_nothing(project: Path) -> None:
    out = project.parent / "out"
    left = out / ".new-t~1-abc" / ".git"
    left.mkdir(parents=True)
    (out / ".new-t-2~1-abc").mkdir()  # of another task, which may be at work
    (left / "index.lock").write_text("")
    copy = copied(project, "begin")
    (copy.base / "index.lock").write_text("")
    (copy.folder / "a.txt").write_text("two\n")
    assert b"+two" in project_patch(copy)
    assert sorted(one.name for one in out.iterdir()) == [".new-t-2~1-abc", "t", "t.git"]
    assert not list(copy.base.glob("index-*"))


def test_a_text_in_another_encoding_stays_exact(project: Path) -> None:
    copy = copied(project, "begin")
    (copy.folder / "a.txt").write_bytes(LATIN)
    patch = project_patch(copy)
    assert patch.decode().count("GIT binary patch") == 1
    assert (applied(project, patch, "begin") / "a.txt").read_bytes() == LATIN


def test_nothing_that_the_copy_names_is_run(project: Path) -> None:
    copy = copied(project, "begin")
    ran = project.parent / "ran"
    for name in ("filter.x.clean", "diff.x.command", "diff.x.textconv", "core.fsmonitor", "core.hooksPath"):
        git(copy.folder, "config", name, f"touch {ran}")
    (copy.folder / ".git" / "hooks").mkdir(exist_ok=True)
    (copy.folder / ".gitattributes").write_text("* filter=x diff=x\n")
    (copy.folder / "a.txt").write_text("two\n")
    assert b"+two" in project_patch(copy)
    assert not ran.exists()


def test_a_folder_is_copied_as_it_is_without_the_place_of_the_copies(project: Path) -> None:
    out = project / "out"
    out.mkdir()
    (project / "a.txt").write_text("not committed\n")
    (project / "link").symlink_to("a.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(project / "sock"))
        wanted = ProjectCopy(folder=out / "copies" / "t", base=out / "t.git")
        copy = copy_project(str(project), "", wanted, leave_out=out.resolve())
    assert (copy.folder / "a.txt").read_text() == "not committed\n"
    assert (copy.folder / "link").is_symlink()
    assert not (copy.folder / "out").exists()
    assert not (copy.folder / "sock").exists()
    assert project_patch(copy) == b""


def test_an_empty_copy_is_a_repository_of_its_own(project: Path) -> None:
    copy = copied(project, "none")
    assert git(copy.folder, "rev-parse", "--show-toplevel") == str(copy.folder)
    (copy.folder / "b.txt").write_text("b\n")
    assert b"new file mode 100644" in project_patch(copy)


def test_what_cannot_be_copied_is_named_and_leaves_no_copy(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no commit nowhere\.") as failed:
        copied(project, "nowhere")
    assert failed.value.code == "task-copy"
    with pytest.raises(ConfigError, match="There is no folder"):
        copied(project.parent / "nothing", "begin")
    assert not (project.parent / "out" / "t").exists()


def test_an_address_is_cloned_once(project: Path) -> None:
    mirrors = project.parent / "mirrors"
    mirror = mirror_of(f"file://{project}", mirrors)
    git(project, "commit", "-q", "--allow-empty", "-m", "later")
    assert mirror_of(f"file://{project}", mirrors) == mirror
    assert "later" not in git(mirror, "log", "--all", "--format=%s")


def test_a_copy_that_cannot_be_written_is_removed(project: Path) -> None:
    copy = copied(project, "begin")
    (copy.folder / "sub").mkdir()
    (copy.folder / "sub" / "file").write_text("x")
    (copy.folder / "sub").chmod(0o500)
    remove_project_copy(copy)
    assert not copy.folder.exists()
    assert not copy.base.exists()


def test_the_files_of_inner_repositories_are_in_the_patch(project: Path) -> None:
    copy = copied(project, "begin")
    for name, commits in (("empty", False), ("sub", True), ("sub/deep", True), ("ignored.log", True)):
        inner = copy.folder / name
        inner.mkdir()
        git(inner, "init", "-q")
        (inner / "b.txt").write_text(f"{name}\n")
        if commits:
            git(inner, "add", "b.txt")
            git(inner, "commit", "-qm", "inner")
    patch = project_patch(copy)
    assert project_patch(copy) == patch
    there = applied(project, patch, "begin")
    added = sorted(str(one.relative_to(there)) for one in there.rglob("b.txt"))
    assert added == ["empty/b.txt", "sub/b.txt", "sub/deep/b.txt"]
    assert b"Subproject" not in patch
    assert not list(copy.base.glob("index-*"))


def test_a_folder_with_repositories_in_it_is_copied_with_them(project: Path) -> None:
    for name in ("inner", "new"):
        (project / name).mkdir()
        git(project / name, "init", "-q")
        (project / name / "c.txt").write_text("c\n")
    git(project / "inner", "add", "c.txt")
    git(project / "inner", "commit", "-qm", "inner")
    (project / ".git").rename(project.parent / "elsewhere")  # without one of its own the copy gets one
    copy = copied(project, "")
    assert git(copy.folder, "ls-files") == ".gitignore\na.txt"
    assert project_patch(copy) == b""
    (copy.folder / "inner" / "c.txt").write_text("changed\n")
    (copy.folder / "new" / "c.txt").unlink()
    patch = project_patch(copy)
    assert patch.count(b"diff --git") == 2
    subprocess.run(["git", "apply", "-"], cwd=project, input=patch, check=True)
    assert (project / "inner" / "c.txt").read_text() == "changed\n"
    assert not (project / "new" / "c.txt").exists()


def test_the_copy_of_a_worktree_has_a_repository_of_its_own(project: Path) -> None:
    tree = project.parent / "tree"
    git(project, "worktree", "add", "-q", "--detach", str(tree))
    wanted = ProjectCopy(folder=project.parent / "out" / "w", base=project.parent / "out" / "w.git")
    copy = copy_project(str(tree), "", wanted, leave_out=Path("/"))
    (copy.folder / "a.txt").write_text("by the task\n")
    git(copy.folder, "commit", "-qam", "in the copy")
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "log", "-1", "--format=%s") == "the solution"
    assert len(copy.notes) == 1
    files = {one.stat().st_ino for one in project.rglob("*") if one.is_file()}
    assert files & {one.stat().st_ino for one in copy.folder.rglob("*")} == set()


@pytest.mark.parametrize("merges", ["main", "tree"])
def test_the_copy_of_a_worktree_is_in_a_merge_only_where_the_worktree_is(project: Path, merges: str) -> None:
    tree = project.parent / "tree"
    git(project, "worktree", "add", "-q", "-b", "beside", str(tree))
    git(
        project if merges == "main" else tree,
        "merge",
        "-q",
        "--no-commit",
        "--no-ff",
        "--strategy=ours",
        *unrelated(project),
    )
    wanted = ProjectCopy(folder=project.parent / "out" / "w", base=project.parent / "out" / "w.git")
    copy = copy_project(str(tree), "", wanted, leave_out=Path("/"))
    status = ("status", "--branch", "--long")
    assert git(copy.folder, *status) == git(tree, *status)
    assert ("merging" in git(copy.folder, *status)) == (merges == "tree")
    assert git(copy.folder, "reflog") == git(tree, "reflog")


def unrelated(project: Path) -> tuple[str, ...]:
    """What `git merge` is told to take a commit that has nothing in common with others."""
    tree = git(project, "rev-parse", "HEAD^{tree}")
    return ("--allow-unrelated-histories", git(project, "commit-tree", "-m", "alone", tree))
