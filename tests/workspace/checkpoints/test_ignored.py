"""Files that git ignores: in each tree up to a bound, restored byte for byte, and told of where they are too much."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workspace.checkpoints.folders import opened, state
from tests.workspace.checkpoints.test_store import session

from treadle.workspace.checkpoints import scanning
from treadle.workspace.checkpoints.store import CheckpointStore

NAMES = ["a.log", "local/db", "local/deep/x", "plain", "sub/b.log", "sub/plain", "build/out", "local/venv/lib", "x.pyc"]
COVERED = [name for name in NAMES if name not in ("build/out", "local/venv/lib", "x.pyc")]
IGNORE = "*.log\nlocal/\nbuild/\n*.pyc\n"

contents = st.none() | st.binary(max_size=40)
changes_ = st.lists(st.tuples(st.sampled_from(NAMES), contents, st.sampled_from([0o600, 0o644, 0o755])), max_size=8)


def write(root: Path, name: str, content: bytes | None, mode: int = 0o644) -> None:
    file = root / name
    if content is None:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.chmod(mode)


def covered(root: Path) -> dict[str, tuple[bytes, int]]:
    files = ((name, root / name) for name in COVERED)
    return {name: (file.read_bytes(), file.stat().st_mode) for name, file in files if file.is_file()}


def undo(store: CheckpointStore, before: str, now: str) -> list[str]:
    plan = store.plan_restore(before, now, [session(before, now)])
    done = store.apply(plan)
    assert (plan.conflicts, done.conflicts, done.failed) == ((), (), ())
    return sorted(os.fsdecode(path) for path in (*done.written, *done.removed))


@settings(max_examples=150)
@given(changes_, changes_)
def test_all_that_is_covered_is_restored_byte_for_byte_and_nothing_else_is_touched(
    first: list[tuple[str, bytes | None, int]], then: list[tuple[str, bytes | None, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, store = opened(Path(folder))
        (root / ".gitignore").write_text(IGNORE)
        for one in first:
            write(root, *one)
        was, before = covered(root), store.take("1").tree
        for one in then:
            write(root, *one)
        now = covered(root)
        made = {name: (root / name).read_bytes() for name in set(NAMES) - set(COVERED) if (root / name).is_file()}
        told = undo(store, before, store.take("2").tree)
        assert covered(root) == was
        assert told == sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
        assert all((root / name).read_bytes() == content for name, content in made.items())
        store.close()


@settings(max_examples=60)
@given(changes_, st.sampled_from(["", "build/\n", "local/\n", "*.log\n"]))
def test_a_change_of_the_ignore_file_loses_nothing_that_was_there(
    first: list[tuple[str, bytes | None, int]], ignore: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, store = opened(Path(folder))
        (root / ".gitignore").write_text(IGNORE)
        for one in first:
            write(root, *one)
        was, before = state(root), store.take("1").tree
        (root / ".gitignore").write_text(ignore)
        undo(store, before, store.take("2").tree)
        assert state(root) == was
        store.close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, CheckpointStore]:
    monkeypatch.setattr(scanning, "MOST_IGNORED", 100)
    monkeypatch.setattr(scanning, "_MOST_IGNORED_ENTRIES", 10)
    root, store = opened(tmp_path)
    (root / ".gitignore").write_text("data/\n*.log\n")
    return root, store


@pytest.mark.parametrize(
    "files", [{"data/a": b"x" * 101}, {f"data/{n}": b"" for n in range(11)}, {"a.log": b"x" * 101}]
)
def test_what_is_too_much_is_left_out_as_a_whole_and_told_once(
    place: tuple[Path, CheckpointStore], files: dict[str, bytes]
) -> None:
    root, store = place
    for name, content in files.items():
        write(root, name, content)
    write(root, "b.log", b"small")
    taken = store.take("1")
    top = next(iter(files)).split("/")[0]
    assert [one.path for one in taken.not_covered] == [top.encode()]
    assert taken.notice.startswith(f"{top} is in no checkpoint, and /undo does not restore it.")
    for name in files:
        write(root, name, b"changed")
    write(root, "b.log", b"changed")
    again = store.take("2")
    assert again.notice == ""
    assert undo(store, taken.tree, again.tree) == ["b.log"]
    assert all((root / name).read_bytes() == b"changed" for name in files)


def test_what_was_covered_stays_so_when_a_folder_grows_too_large(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    write(root, "data/db", b"before")
    write(root, "data/gone", b"before")
    first = store.take("1").tree
    write(root, "data/db", b"after")
    write(root, "data/gone", None)
    for number in range(20):
        write(root, f"data/new/{number}", b"x" * 20)
    second = store.take("2")
    assert second.notice.startswith("What is new in data is in no checkpoint, and /undo does not restore it.")
    assert undo(store, first, second.tree) == ["data/db", "data/gone"]
    assert [(root / "data" / name).read_bytes() for name in ("db", "gone")] == [b"before", b"before"]
    assert len(list((root / "data" / "new").iterdir())) == 20


def test_a_file_that_grows_too_large_is_a_conflict_and_stays(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    write(root, "a.log", b"before")
    first = store.take("1").tree
    write(root, "a.log", b"x" * 101)
    second = store.take("2").tree
    plan = store.plan_restore(first, second, [session(first, second)])
    assert [(one.path, one.why) for one in plan.conflicts] == [(b"a.log", "Checkpoints do not cover it as it is now.")]
    assert (plan.writes, plan.removals) == ((), ())


def test_a_link_in_what_is_ignored_is_restored_and_not_followed(tmp_path: Path) -> None:
    root, store = opened(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    (root / ".gitignore").write_text("local\n")
    (root / "local").symlink_to(outside)
    first = store.take("1").tree
    (root / "local").unlink()
    assert undo(store, first, store.take("2").tree) == ["local"]
    assert (os.readlink(root / "local"), (outside / "mine").read_text()) == (str(outside), "mine")
