"""Git's index is read as git reads it; whatever else the bytes are, nothing is raised."""

import os
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from treadle.workspace.ignore.git_index import Tracked, read_index


def git(folder: Path, *words: str) -> bytes:
    return subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True).stdout


def made(folder: Path) -> bytes:
    git(folder, "init", "-q")
    for name in ("a", "sub/b", "sub/long-" + "n" * 200, "é"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    (folder / os.fsdecode(b"\xff")).write_text("x")
    git(folder, "add", ".")
    (folder / "later").write_text("x")
    git(folder, "add", "-N", "later")
    return (folder / ".git/index").read_bytes()


def test_an_index_is_read_as_git_reads_it(tmp_path: Path) -> None:
    entries = read_index(made(tmp_path))
    assert entries is not None
    listed = git(tmp_path, "ls-files", "-z").split(b"\0")[:-1]
    assert sorted(name for name, _ in entries) == sorted(listed)
    found = {name: (int.from_bytes(mode, "big"), blob.hex()) for (name, _), (mode, blob) in entries.items()}
    for row in git(tmp_path, "ls-files", "-z", "--stage").split(b"\0")[:-1]:
        facts, _, name = row.partition(b"\t")
        mode, blob, _ = facts.split()
        assert found[name] == (int(mode, 8), blob.decode())


def test_what_git_has_is_known_also_below_the_top_and_in_a_worktree(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    made(top)
    git(top, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x")
    git(top, "worktree", "add", "-q", "../other")
    for root in (top / "sub", tmp_path / "other/sub"):
        tracked = Tracked([str(root)])
        assert (tracked.has(0, b"b"), tracked.has(0, b"no")) == (True, False)
    assert not Tracked([str(tmp_path)]).has(0, b"top/a")


def test_of_an_index_that_cannot_be_read_every_file_may_be_one_that_git_has(tmp_path: Path) -> None:
    made(tmp_path)
    index = tmp_path / ".git/index"
    index.unlink()
    assert not Tracked([str(tmp_path)]).has(0, b"a"), "without an index git has no file"
    index.mkdir()
    assert Tracked([str(tmp_path)]).has(0, b"a")
    index.rmdir()
    index.write_bytes(b"")
    assert Tracked([str(tmp_path)]).has(0, b"a")


@given(st.binary(max_size=300), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_no_bytes_make_reading_fail(rest: bytes, version: int, count: int) -> None:
    index = b"DIRC" + version.to_bytes(4, "big") + count.to_bytes(4, "big") + rest
    assert count == 0 or len(rest) > 62 or read_index(index) is None
