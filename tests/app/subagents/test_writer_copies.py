"""Copies in which subagents write: what is in them, what never leads back, how they are found again and removed."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.app.reports.doctor_report import examine
from treadle.app.subagents.writer_copies import (
    WriterCopy,
    left_copies,
    make_writer_copy,
    merge,
    open_copy,
    plan,
    remove_copy,
    writer_changes,
)
from treadle.protocol.errors import ConfigError, SessionError


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home/treadle"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = (tmp_path / "shop").resolve()
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def committed(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")


def every(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Give all files below a folder with their modes and times."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
        for path in files
    }


def test_a_copy_has_all_files_with_their_rights_and_times(workspace: Path) -> None:
    committed(workspace)
    (workspace / ".gitignore").write_text("secret\nbuild/\nnode_modules/\n.mypy_cache\n__pycache__\n")
    (workspace / "secret").write_text("ignored, and needed")
    (workspace / "untracked.sh").write_text("#!/bin/sh\n")
    (workspace / "untracked.sh").chmod(0o755)
    for name in ("build/out.o", "node_modules/x/i.js", "deep/er/f", ".hypothesis/own"):
        (workspace / name).parent.mkdir(parents=True)
        (workspace / name).write_text(name)
        os.utime(workspace / name, ns=(10**18, 10**18 + 7))
    before = every(workspace)
    for name in ("__pycache__/a.pyc", ".mypy_cache/CACHEDIR.TAG", ".mypy_cache/x"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("made again")
    copy = make_writer_copy(workspace, (), "child")
    after = every(copy.folder)
    assert copy.folder.name == "shop"
    assert {name: one for name, one in after.items() if name != ".git/config"} == {
        name: one for name, one in before.items() if name != ".git/config"
    }
    assert copy.notes == ()
    assert not writer_changes(copy)


def test_the_repository_of_a_copy_is_one_of_its_own(workspace: Path) -> None:
    committed(workspace)
    before = every(workspace)
    copy = make_writer_copy(workspace, (), "child")
    assert git(copy.folder, "status", "--porcelain") == ""
    git(copy.folder, "pack-refs", "--all")
    git(copy.folder, "gc", "-q", "--prune=now")
    assert not writer_changes(copy)
    inodes = {path.stat().st_ino: path for path in workspace.rglob("*") if path.is_file()}
    shared = [path for path in copy.folder.rglob("*") if path.is_file() and path.stat().st_ino in inodes]
    assert [path for path in shared if ".git/objects" not in str(path) or path.stat().st_mode & 0o222] == []
    (copy.folder / "a.txt").write_text("two\n")
    git(copy.folder, "commit", "-qam", "second")
    git(copy.folder, "gc", "-q", "--prune=now")
    git(workspace, "fsck", "--strict")
    now = {name: one for name, one in every(workspace).items() if name in before}
    assert {name: one[2] for name, one in now.items()} == {name: one[2] for name, one in before.items()}
    assert git(workspace, "log", "--format=%s") == "first"
    done = merge(writer_changes(copy))
    assert [one.path for one in done.merged] == [f"{workspace}/a.txt"]
    assert done.held == ()
    assert done.left_out == (
        f"{workspace}/.git: branches, settings or hooks of the copy's repository; take them with git",
    )
    assert git(workspace, "log", "--format=%s") == "first"


def test_a_worktree_and_a_submodule_get_repositories_of_their_own(workspace: Path, tmp_path: Path) -> None:
    committed(workspace)
    git(workspace, "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    tree = (tmp_path / "tree").resolve()
    git(tree, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(workspace), "sub")
    git(tree, "commit", "-qm", "with sub")
    states = every(workspace / ".git")
    copy = make_writer_copy(tree, (), "child")
    assert (copy.folder / ".git").is_dir()
    assert git(copy.folder, "rev-parse", "--abbrev-ref", "HEAD") == "side"
    assert git(copy.folder, "status", "--porcelain") == ""
    for folder in (copy.folder, copy.folder / "sub"):
        place = Path(git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir"))
        assert place.is_relative_to(copy.folder)
        (folder / "new.txt").write_text("new")
        git(folder, "add", "new.txt")
        git(folder, "commit", "-qm", "mine")
    assert {name: one[2] for name, one in every(workspace / ".git").items()} == {
        name: one[2] for name, one in states.items()
    }
    assert git(tree, "log", "-1", "--format=%s") == "with sub"


def test_links_lead_into_the_copy_and_back_and_what_leads_out_is_named(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("theirs")
    for name, target in (("inner", "a.txt"), ("whole", f"{workspace}/a.txt"), ("out", f"{tmp_path}/outside")):
        (workspace / name).symlink_to(target)
    os.mkfifo(workspace / "pipe")
    copy = make_writer_copy(workspace, (), "child")
    links = {name: str((copy.folder / name).readlink()) for name in ("inner", "whole", "out")}
    assert links == {"inner": "a.txt", "whole": f"{copy.folder}/a.txt", "out": f"{tmp_path}/outside"}
    assert copy.notes == (
        f"out: it is a link out of the folder, to {tmp_path}/outside",
        "pipe: it is not in the copy: it is a pipe, a socket or a device",
    )
    assert not writer_changes(copy)
    (copy.folder / "whole").unlink()
    (copy.folder / "mine").symlink_to(copy.folder / "a.txt")
    assert merge(writer_changes(copy)).complete
    assert (workspace / "mine").readlink() == workspace / "a.txt"
    assert not os.path.lexists(workspace / "whole")
    assert not writer_changes(copy)


def test_further_folders_are_copied_too_and_lead_to_each_other(workspace: Path, tmp_path: Path) -> None:
    other = (tmp_path / "else/shop").resolve()
    (other / "lib").mkdir(parents=True)
    (other / "lib/b.txt").write_text("b\n")
    (workspace / "link").symlink_to(other / "lib")
    copy = make_writer_copy(workspace, (workspace / "sub", other, other / "lib"), "child")
    assert [source for source, _ in copy.roots] == [workspace, other]
    (copy.folder / "link/b.txt").write_text("c\n")
    done = merge(writer_changes(copy))
    assert [one.path for one in done.merged] == [f"{other}/lib/b.txt"]
    assert f"In {other}:\ndiff a/lib/b.txt b/lib/b.txt\n" in done.diff
    assert (other / "lib/b.txt").read_text() == "c\n"


def test_a_plan_writes_nothing_and_binds_what_a_merge_may_write(workspace: Path) -> None:
    (workspace / "b.txt").write_text("b\n")
    copy = make_writer_copy(workspace, (), "child")
    (copy.folder / "a.txt").write_text("child\n")
    (copy.folder / "b.txt").unlink()
    found = writer_changes(copy)
    planned = plan(found)
    assert "-one\n+child\n" in planned.diff
    (workspace / "other.txt").write_text("not met")
    assert plan(found) == planned
    (workspace / "b.txt").write_text("b of the person\n")
    refused = merge(found, digest=planned.digest)
    assert refused.refused == "The workspace changed since this was planned. Nothing was written."
    assert (refused.merged, (workspace / "a.txt").read_text()) == ((), "one\n")
    done = merge(found, digest=plan(found).digest)
    assert [one.path for one in done.merged] == [f"{workspace}/a.txt"]
    assert [(one.path, one.about) for one in done.conflicts] == [(f"{workspace}/b.txt", ("", "It is not there.", ""))]
    assert (workspace / "b.txt").read_text() == "b of the person\n"


def test_a_conflict_has_the_places_of_all_three_versions(workspace: Path) -> None:
    (workspace / "a.txt").write_text("1\n2\n3\n")
    copy = make_writer_copy(workspace, (), "child")
    (copy.folder / "a.txt").write_text("1\nchild\n3\n")
    (workspace / "a.txt").write_text("1\nperson\n3\n")
    (conflict,) = merge(writer_changes(copy)).conflicts
    (place,) = conflict.places
    assert [part.lines[1] for part in (place.before, place.session, place.now)] == ["2", "child", "person"]
    assert (workspace / "a.txt").read_text() == "1\nperson\n3\n"


def test_what_is_protected_is_merged_only_with_a_yes(workspace: Path) -> None:
    names = ("AGENTS.md", ".github/workflows/ci.yml", ".claude/agents/a.md", ".env", "src/code.py")
    copy = make_writer_copy(workspace, (), "child")
    for name in names:
        (copy.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (copy.folder / name).write_text(name)
    done = merge(writer_changes(copy))
    assert [one.path for one in done.merged] == [f"{workspace}/src/code.py"]
    assert {one.path for one in done.held} == {f"{workspace}/{name}" for name in names[:-1]}
    again = merge(writer_changes(copy), approved=frozenset({f"{workspace}/AGENTS.md"}))
    assert [one.path for one in again.merged] == [f"{workspace}/AGENTS.md"]
    assert len(again.held) == 3


def _to_file(folder: Path) -> None:
    shutil.rmtree(folder / "d")
    (folder / "d").write_text("file")


def _to_folder(folder: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "a.txt").mkdir()
    (folder / "a.txt/in").write_text("in")


def _edit(name: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).write_text("edited")

    return edit


def _remove_folder(folder: Path) -> None:
    shutil.rmtree(folder / "d")


@pytest.mark.parametrize(
    ("child", "person", "conflicts"),
    [
        (_to_file, None, []),
        (_to_folder, None, []),
        (_to_file, _edit("d/x"), ["d", "d/x"]),
        (_to_file, _edit("d/more"), ["d"]),
        (_to_folder, _edit("a.txt"), ["a.txt", "a.txt/in"]),
        (_edit("d/x"), _to_file, ["d/x"]),
        (_edit("d/more"), _to_file, ["d/more"]),
        (_edit("a.txt"), _to_folder, ["a.txt"]),
        (_remove_folder, _to_file, []),
        (_to_file, _remove_folder, []),
        (_to_folder, _to_folder, []),
    ],
)
def test_files_and_folders_that_take_each_others_places_lose_nothing(
    workspace: Path,
    child: Callable[[Path], None],
    person: Callable[[Path], None] | None,
    conflicts: list[str],
) -> None:
    (workspace / "d").mkdir()
    (workspace / "d/x").write_text("x")
    copy = make_writer_copy(workspace, (), "child")
    child(copy.folder)
    if person is not None:
        person(workspace)
    before = {name: one[2] for name, one in every(workspace).items()}
    done = merge(writer_changes(copy))
    after = {name: one[2] for name, one in every(workspace).items()}
    assert sorted(os.path.relpath(one.path, workspace) for one in done.conflicts) == conflicts
    kept = {name for name in before if name in conflicts or (person is not None and before[name] == b"edited")}
    assert {name: after.get(name) for name in kept} == {name: before[name] for name in kept}
    if not conflicts and person is None:
        assert after == {name: one[2] for name, one in every(copy.folder).items()}


def test_nothing_is_written_through_a_link_out_of_the_workspace(workspace: Path, tmp_path: Path) -> None:
    (workspace / "d").mkdir()
    (workspace / "d/x").write_text("x")
    copy = make_writer_copy(workspace, (), "child")
    (copy.folder / "d/x").write_text("child")
    (copy.folder / "d/new").write_text("child")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x").write_text("x")
    shutil.rmtree(workspace / "d")
    (workspace / "d").symlink_to(tmp_path / "outside")
    done = merge(writer_changes(copy))
    assert [Path(one.path).name for one in done.conflicts] == ["x", "new"]
    assert {path.name: path.read_text() for path in (tmp_path / "outside").iterdir()} == {"x": "x"}


def test_a_large_file_that_changed_is_named_and_keeps_the_copy(workspace: Path) -> None:
    with (workspace / "large").open("wb") as stream:
        stream.truncate(50_000_001)
    copy = make_writer_copy(workspace, (), "child")
    assert copy.notes == ("large: not handed back: It is larger than 50,000,000 bytes.",)
    assert not writer_changes(copy)
    with (copy.folder / "large").open("r+b") as stream:
        stream.write(b"x")
    assert writer_changes(copy).left_out == ("large: it changed, and it is too large to be handed back",)
    with pytest.raises(SessionError) as refused:
        remove_copy("child")
    assert refused.value.why == "It holds what is not applied: 1 too large or not compared."


KILLED = """
import os, signal
from pathlib import Path
from treadle.app.subagents.writer_copies import make_writer_copy
copy = make_writer_copy(Path({workspace!r}), (), "child")
(copy.folder / "a.txt").write_text("before the end\\n")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_copy_is_found_again_after_a_kill_and_stays_until_it_is_applied(workspace: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED.format(workspace=str(workspace))], check=False)
    assert ended.returncode == -signal.SIGKILL
    copy = open_copy("child")
    assert copy is not None
    assert make_writer_copy(workspace, (), "child") == copy
    with pytest.raises(SessionError) as refused:
        remove_copy("child")
    assert (refused.value.code, refused.value.why) == ("writer-unapplied", "It holds what is not applied: 1 changed.")
    assert merge(writer_changes(copy)).complete
    assert (workspace / "a.txt").read_text() == "before the end\n"
    remove_copy("child")
    assert (open_copy("child"), left_copies()) == (None, ())


KILLED_MERGING = """
import os, signal
from treadle.app.subagents.writer_copies import writer_changes, merge, open_copy
from treadle.workspace.checkpoints.store import CheckpointStore
CheckpointStore.revise = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
merge(writer_changes(open_copy("child")))
"""


def test_a_merge_that_was_killed_is_done_again_without_harm(workspace: Path) -> None:
    (workspace / "both.txt").write_text("1\n2\n3\n4\n5\n")
    (workspace / "gone.txt").write_text("gone\n")
    copy = make_writer_copy(workspace, (), "child")
    (copy.folder / "both.txt").write_text("one\n2\n3\n4\n5\n")
    (copy.folder / "gone.txt").unlink()
    (copy.folder / "new.txt").write_text("new\n")
    (workspace / "both.txt").write_text("1\n2\n3\n4\nfive\n")
    ended = subprocess.run([sys.executable, "-c", KILLED_MERGING], check=False)
    assert ended.returncode == -signal.SIGKILL
    expected = {"a.txt": b"one\n", "both.txt": b"one\n2\n3\n4\nfive\n", "new.txt": b"new\n"}
    assert {name: one[2] for name, one in every(workspace).items()} == expected
    again = merge(writer_changes(copy))
    assert (again.merged, again.complete) == ((), True)
    assert {name: one[2] for name, one in every(workspace).items()} == expected
    remove_copy("child")


def test_the_beginning_of_a_copy_is_made_anew(workspace: Path) -> None:
    copy = make_writer_copy(workspace, (), "child")
    (copy.folder.parent.parent / "copy.json").unlink()
    (copy.folder / "half").write_text("of a file")
    assert open_copy("child") is None
    assert [(one.whole, one.unapplied) for one in left_copies()] == [(False, 0)]
    assert not (make_writer_copy(workspace, (), "child").folder / "half").exists()


@pytest.mark.parametrize("record", [b"", b"{", b"[]", b"{}"])
def test_a_copy_whose_record_cannot_be_read_is_neither_removed_nor_made_anew(workspace: Path, record: bytes) -> None:
    copy = make_writer_copy(workspace, (), "child")
    (copy.folder / "a.txt").write_text("work")
    (copy.folder.parent.parent / "copy.json").write_bytes(record)
    for use in (lambda: make_writer_copy(workspace, (), "child"), lambda: remove_copy("child", discard=True)):
        with pytest.raises(SessionError, match="cannot be read"):
            use()
    assert [(one.whole, one.unapplied) for one in left_copies()] == [(True, None)]
    assert (copy.folder / "a.txt").read_text() == "work"


def test_unapplied_changes_go_only_when_they_may(workspace: Path) -> None:
    copy = make_writer_copy(workspace, (), "child")
    (copy.folder / "a.txt").write_text("x")
    (copy.folder / "locked").mkdir(mode=0o755)
    (copy.folder / "locked/f").write_text("x")
    (copy.folder / "locked").chmod(0o500)
    shutil.move(workspace, workspace.with_name("moved"))
    with pytest.raises(SessionError, match="is kept"):
        remove_copy("child")
    remove_copy("child", discard=True)
    assert left_copies() == ()
    remove_copy("child")


async def test_the_doctor_names_the_copies_that_are_kept(workspace: Path) -> None:
    copy = make_writer_copy(workspace, (), "child")
    (copy.folder / "a.txt").write_text("x")
    make_writer_copy(workspace, (), "other")
    found = {one.name: (one.status, one.found.partition(";")[0]) async for one in examine(offline=True)}
    assert found["copy child"] == ("warn", f"1 file not applied to {workspace}")
    assert found["copy other"] == ("ok", "all of it is applied")


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "x" * 101])
def test_an_id_that_is_no_name_is_refused(workspace: Path, name: str) -> None:
    with pytest.raises(SessionError):
        make_writer_copy(workspace, (), name)


def test_a_folder_that_holds_the_data_of_treadle_is_not_copied(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        make_writer_copy(tmp_path, (), "child")
    with pytest.raises(ConfigError):
        make_writer_copy(workspace, (tmp_path,), "child")


def test_a_writer_that_works_on_is_merged_from_where_it_was(workspace: Path) -> None:
    (workspace / "a.txt").write_text("1\n2\n3\n4\n5\n")
    copy: WriterCopy = make_writer_copy(workspace, (), "child")
    (copy.folder / "a.txt").write_text("one\n2\n3\n4\n5\n")
    (workspace / "a.txt").write_text("1\n2\n3\n4\nfive\n")
    assert merge(writer_changes(copy)).complete
    (copy.folder / "a.txt").write_text("first\n2\n3\n4\n5\n")
    assert merge(writer_changes(copy)).complete
    assert (workspace / "a.txt").read_text() == "first\n2\n3\n4\nfive\n"


def plain(workspace: Path, _: Path) -> Path:
    (workspace / "empty").mkdir()
    (workspace / "near").symlink_to("a.txt")
    (workspace / "out").symlink_to("/etc/hostname")
    return workspace


def in_a_repository(workspace: Path, _: Path) -> Path:
    committed(workspace)
    (workspace / ".gitignore").write_text("secret\n")
    (workspace / "secret").write_text("s")
    return workspace


def linked_within(workspace: Path, _: Path) -> Path:
    committed(workspace)
    (workspace / "absolute").symlink_to(workspace / "a.txt")
    (workspace / ".git/hooks/pre-commit").symlink_to(workspace / "a.txt")
    return workspace


def with_a_submodule(workspace: Path, tmp_path: Path) -> Path:
    committed(workspace)
    git(workspace, "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    tree = (tmp_path / "tree").resolve()
    git(tree, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(workspace), "sub")
    git(tree, "commit", "-qm", "with sub")
    return tree


def large(workspace: Path, _: Path) -> Path:
    with (workspace / "large").open("wb") as stream:
        stream.truncate(50_000_001)
    os.mkfifo(workspace / "pipe")
    (workspace / "run").write_text("x")
    (workspace / "run").chmod(0o755)
    return workspace


def tree_of(folder: Path) -> dict[str, object]:
    """Give all names below a folder: files with their modes, times and bytes, links within it as such."""
    links = {str(one.relative_to(folder)): one.readlink() for one in folder.rglob("*") if one.is_symlink()}
    within = {name: str(link).replace(str(folder), "HERE") for name, link in links.items()}
    folders = {str(one.relative_to(folder)): one.stat().st_mode for one in folder.rglob("*") if one.is_dir()}
    return {**every(folder), **folders, **within}


SHAPES = (plain, in_a_repository, linked_within, with_a_submodule, large)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_copy_like_another_is_as_if_it_was_made_of_the_workspace(
    workspace: Path, tmp_path: Path, shape: Callable[[Path, Path], Path]
) -> None:
    folder = shape(workspace, tmp_path)
    first = make_writer_copy(folder, (), "first")
    begun = tree_of(first.folder)
    (folder / "a.txt").write_text("edited meanwhile\n")
    second = make_writer_copy(folder, (), "second", like=first)
    assert (tree_of(second.folder), second.notes) == (begun, first.notes)
    assert not writer_changes(first)
    assert not writer_changes(second)
    inodes = {path.stat().st_ino for path in first.folder.rglob("*") if path.is_file() and not path.is_symlink()}
    files = [path for path in second.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    shared = [path for path in files if path.stat().st_ino in inodes]
    assert [path for path in shared if "/objects/" not in str(path) or path.stat().st_mode & 0o222] == []
    (first.folder / "a.txt").write_text("of the first\n")
    remove_copy("first", discard=True)
    assert not writer_changes(second)
    (second.folder / "a.txt").unlink()
    (second.folder / "new.txt").write_text("of the second\n")
    done = merge(writer_changes(second))
    assert [Path(one.path).name for one in done.merged] == ["new.txt"]
    assert [Path(one.path).name for one in done.conflicts] == ["a.txt"]
    assert (folder / "a.txt").read_text() == "edited meanwhile\n"


def test_what_a_copy_cannot_give_on_is_no_deletion_in_the_one_like_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "b.txt").write_text("two\n")
    first = make_writer_copy(workspace, (), "first")
    opened = os.open

    def unreadable(path: str, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == "b.txt":  # as one that its group may read, and its owner not
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, *more, dir_fd=dir_fd)

    with monkeypatch.context() as during:
        during.setattr(os, "open", unreadable)
        second = make_writer_copy(workspace, (), "second", like=first)
    assert second.notes == ("b.txt: it is not in the copy: Permission denied",)
    assert not (second.folder / "b.txt").exists()
    assert not writer_changes(second)


def test_two_folders_are_copied_again_each_to_its_place(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other/shop"
    other.mkdir(parents=True)
    (other / "b.txt").write_text("two\n")
    (workspace / "there").symlink_to(other / "b.txt")
    first = make_writer_copy(workspace, (other,), "first")
    second = make_writer_copy(workspace, (other,), "second", like=first)
    assert [source for source, _ in second.roots] == [workspace, other]
    assert (second.folder / "there").readlink() == second.roots[1][1] / "b.txt"
    assert not writer_changes(second)
    (second.folder / "there").write_text("written\n")
    assert [one.path for one in merge(writer_changes(second)).merged] == [f"{other}/b.txt"]


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("again", [False, True])
def test_a_copy_that_is_stopped_leaves_nothing(workspace: Path, after: int, again: bool) -> None:
    for name in ("b.txt", "c.txt", "d.txt"):
        (workspace / name).write_text(name)
    like = make_writer_copy(workspace, (), "first") if again else None
    asked = iter(range(100))
    with pytest.raises(SessionError) as stopped:
        make_writer_copy(workspace, (), "child", like=like, stopped=lambda: next(asked) >= after)
    assert stopped.value.why == "It was stopped."
    assert open_copy("child") is None
    assert [one.child_id for one in left_copies()] == (["first"] if again else [])
