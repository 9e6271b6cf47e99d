"""What a checkpoint covers, what a restore does and leaves alone, and what becomes of a store on a bad disk."""

import multiprocessing
import os
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.workspace.checkpoints.folders import everything, opened, state

from treadle.protocol.errors import ConfigError, StoreError
from treadle.workspace.checkpoints.planning import Interval
from treadle.workspace.checkpoints.scanning import GIT_DATA, SPECIAL, NotCovered
from treadle.workspace.checkpoints.store import CheckpointStore, open_checkpoints


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, CheckpointStore]]:
    root, store = opened(tmp_path)
    yield root, store
    store.close()


def session(before: str, after: str) -> Interval:
    return Interval(before=before, after=after, by_session=True)


def others(before: str, after: str) -> Interval:
    return Interval(before=before, after=after, by_session=False)


def git(folder: Path, *arguments: str) -> None:
    names = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(("git", *names, *arguments), cwd=folder, check=True, capture_output=True)


def test_the_same_files_are_the_same_tree_in_a_later_process_too(
    place: tuple[Path, CheckpointStore], tmp_path: Path
) -> None:
    root, store = place
    (root / "a").mkdir()
    (root / "a" / "b.txt").write_text("one\n")
    first = store.take("s/1")
    store.close()
    again = open_checkpoints(tmp_path / "data" / "store", str(root))
    assert again.take("s/2") == first
    assert again.tree_of("s/1") == first.tree
    again.close()


def test_what_the_session_and_others_changed_in_one_file_is_told_apart(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    file = root / "a.txt"
    file.write_text("".join(f"{number}\n" for number in range(20)))
    first = store.take("1").tree
    file.write_text(file.read_text().replace("3\n", "session\n", 1))
    second = store.take("2").tree
    file.write_text(file.read_text().replace("19\n", "user\n", 1))
    third = store.take("3").tree
    plan = store.plan_restore(first, third, [session(first, second), others(second, third)])
    assert [write.path for write in plan.writes] == [b"a.txt"]
    store.apply(plan)
    assert file.read_text() == "".join(f"{number}\n" for number in range(19)) + "user\n"


def test_lines_that_both_changed_are_a_conflict_and_stay(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    trees = []
    for text in ("one\n", "session\n", "user\n"):
        (root / "a.txt").write_text(text)
        trees.append(store.take(text).tree)
    plan = store.plan_restore(trees[0], trees[2], [session(*trees[:2]), others(*trees[1:])])
    [conflict] = plan.conflicts
    assert (plan.writes, plan.removals, conflict.path) == ((), (), b"a.txt")
    assert conflict.target is not None
    assert conflict.now is not None
    assert (store.read(conflict.target.what), store.read(conflict.now.what)) == (b"one\n", b"user\n")


def test_what_changed_after_the_plan_was_made_is_a_conflict(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    for name in ("changed", "gone", "plain"):
        (root / name).write_text("one")
    before = store.take("1").tree
    for name in ("changed", "gone", "plain", "new"):
        (root / name).write_text("two")
    now = store.take("2").tree
    plan = store.plan_restore(before, now, [session(before, now)])
    (root / "changed").write_text("abc")
    (root / "gone").unlink()
    (root / "new").write_text("abc")
    done = store.apply(plan)
    assert sorted(each.path for each in done.conflicts) == [b"changed", b"gone", b"new"]
    assert (done.written, done.removed, done.failed) == ((b"plain",), (), ())
    assert {name: (root / name).read_text() for name in ("changed", "plain", "new")} == {
        "changed": "abc",
        "plain": "one",
        "new": "abc",
    }


def test_a_folder_that_became_a_link_is_not_followed(place: tuple[Path, CheckpointStore], tmp_path: Path) -> None:
    root, store = place
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "folder").mkdir()
    (root / "folder" / "a").write_text("one")
    before = store.take("1").tree
    (root / "folder" / "a").write_text("two")
    (root / "folder" / "b").write_text("two")
    now = store.take("2").tree
    plan = store.plan_restore(before, now, [session(before, now)])
    shutil.rmtree(root / "folder")
    (outside / "a").write_text("two")
    (outside / "b").write_text("two")
    (root / "folder").symlink_to(outside)
    done = store.apply(plan)
    assert sorted(each.path for each in done.conflicts) == [b"folder/a", b"folder/b"]
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"a": "two", "b": "two"}


def test_git_data_is_neither_covered_nor_changed_and_nested_repositories_are_files(
    place: tuple[Path, CheckpointStore],
) -> None:
    root, store = place
    for folder in (root, root / "committed", root / "fresh"):
        folder.mkdir(exist_ok=True)
        git(folder, "init")
        (folder / "a.txt").write_text("one\n")
    for folder in (root / "committed", root):
        git(folder, "add", "a.txt")
        git(folder, "commit", "-m", "one")
    git(root, "worktree", "add", "work")
    git(root, "init", "--bare", "bare.git")
    (root / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch ran\n")
    for folder in (root, root / "committed", root / "fresh"):
        (folder / ".gitattributes").write_text("* text eol=crlf ident filter=nothing working-tree-encoding=UTF-16\n")
    repositories = [folder / ".git" for folder in (root, root / "committed", root / "fresh")]
    untouched = [everything(folder) for folder in (*repositories, root / "bare.git")]
    first = store.take("1")
    assert first.not_covered == (NotCovered(b"bare.git", GIT_DATA),)
    files = state(root)
    for folder in (root, root / "committed", root / "fresh", root / "work"):
        (folder / "a.txt").write_text("two\n")
        (folder / "new.txt").write_text("new\n")
    second = store.take("2").tree
    link = (root / "work" / ".git").read_text()
    done = store.apply(store.plan_restore(first.tree, second, [session(first.tree, second)]))
    assert len(done.written) == len(done.removed) == 4
    assert state(root) == files
    assert [everything(folder) for folder in (*repositories, root / "bare.git")] == untouched
    assert (root / "work" / ".git").read_text() == link


def test_ignored_files_are_covered_but_what_builds_make_only_by_setting(tmp_path: Path) -> None:
    root, store = opened(tmp_path)
    git(root, "init")
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    (root / ".git" / "info" / "exclude").write_text("secret\n")
    (root / "build" / "kept").mkdir(parents=True)
    (root / "local").mkdir()
    (root / ".gitignore").write_text("*.log\nbuild/\nlocal/\n")
    for name in ("a.log", "tracked.log", "secret", "build/x", "build/kept/y", "plain", "local/db", "local/x.pyc"):
        (root / name).write_text("one")
    git(root, "add", "-f", "tracked.log", "build/kept/y")
    tree = store.take("1").tree
    names = [change.path for change in store.compare("", tree)]
    assert names == [".gitignore", "a.log", "build/kept/y", "local/db", "plain", "secret", "tracked.log"]
    store.close()
    whole = open_checkpoints(tmp_path / "data" / "whole", str(root), covers_ignored=True)
    assert len(whole.compare("", whole.take("1").tree)) == 9
    whole.close()


def test_what_git_has_is_covered_in_a_linked_worktree_too(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init")
    (main / ".gitignore").write_text("*.log\n")
    (main / "tracked.log").write_text("one")
    git(main, "add", "-f", ".")
    git(main, "commit", "-m", "one")
    root, store = opened(tmp_path)
    git(main, "worktree", "add", str(root / "linked"))
    store.close()
    linked = open_checkpoints(tmp_path / "data" / "linked", str(root / "linked"))
    (root / "linked" / "build").mkdir()
    (root / "linked" / "build" / "other.log").write_text("one")
    assert [change.path for change in linked.compare("", linked.take("1").tree)] == [".gitignore", "tracked.log"]
    linked.close()


def test_what_an_ignore_file_of_then_hid_is_not_removed(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    (root / ".gitignore").write_text("data/\n")
    before = store.take("1").tree
    (root / "data").mkdir()
    (root / "data" / "mine").write_text("mine")
    (root / ".gitignore").unlink()
    now = store.take("2").tree
    # As of an earlier version, whose trees hold nothing that is ignored: it may have been there.
    plan = store.plan_restore(before, now, [session(before, now)], held_ignored=False)
    store.apply(plan)
    assert [each.path for each in plan.kept] == [b"data/mine"]
    assert (root / "data" / "mine").read_text() == "mine"


def test_an_edited_ignore_file_takes_effect_on_the_next_checkpoint(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    (root / "deep").mkdir()
    (root / "deep" / "a.log").write_text("one")
    first = store.take("1").tree
    (root / ".gitignore").write_text("*.log\n")
    second = store.take("2").tree
    (root / ".gitignore").unlink()
    assert store.take("3").tree == first
    assert [change.path for change in store.compare("", second)] == [".gitignore", "deep/a.log"]
    (root / ".gitignore").write_text("deep/\n")
    (root / "deep").rename(root / "build")
    (root / ".gitignore").write_text("build/\n")
    assert [change.path for change in store.compare("", store.take("4").tree)] == [".gitignore"]


def test_what_cannot_be_covered_is_named_and_left_alone(tmp_path: Path) -> None:
    root, store = opened(tmp_path, largest=10)
    (root / "large").write_text("small")
    (root / "pipe").write_text("file")
    before = store.take("1").tree
    (root / "large").write_text("more than ten")
    (root / "pipe").unlink()
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        now = store.take("2")
    assert sorted(now.not_covered, key=lambda each: each.path) == [
        NotCovered(b"large", "It is larger than 10 bytes."),
        NotCovered(b"pipe", SPECIAL),
        NotCovered(b"socket", SPECIAL),
    ]
    plan = store.plan_restore(before, now.tree, [session(before, now.tree)])
    assert (plan.writes, plan.removals) == ((), ())
    back = store.plan_restore(now.tree, before, [session(now.tree, before)])
    assert (back.writes, back.removals) == ((), ())
    store.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_what_cannot_be_read_is_named(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    (root / "closed").write_text("one")
    (root / "closed").chmod(0)
    assert [each.path for each in store.take("1").not_covered] == [b"closed"]


def test_a_killed_restore_is_finished_by_another(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    for number in range(6):
        (root / str(number)).write_text("one")
    before = store.take("1").tree
    files = state(root)
    for number in range(3):
        (root / str(number)).unlink()
    for number in range(3, 9):
        (root / str(number)).write_text("two")
    now = store.take("2").tree
    history = [session(before, now)]
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from treadle.workspace.checkpoints.planning import Interval\n"
        "from treadle.workspace.checkpoints.store import open_checkpoints\n"
        "from treadle.workspace.files.temporary_files import TemporaryFiles\n"
        "folder, root, before, now = sys.argv[1:]\n"
        "store = open_checkpoints(Path(folder), root)\n"
        "plan = store.plan_restore(before, now, [Interval(before=before, after=now, by_session=True)])\n"
        "def saved(path):\n"
        "    if path.endswith('/2'):\n"
        "        Path(path).with_name('.treadle-0123456789abcdef.tmp').write_text('half')\n"
        "        os._exit(9)\n"
        "store.apply(plan, temporary_files=TemporaryFiles(saved=saved))\n"
    )
    arguments = (sys.executable, "-c", script, str(store._folder), str(root), before, now)
    assert subprocess.run(arguments, check=False).returncode == 9
    assert state(root) != files
    half = store.take("3").tree
    done = store.apply(store.plan_restore(before, half, [*history, session(now, half)]))
    assert (done.conflicts, done.failed) == ((), ())
    (root / ".treadle-0123456789abcdef.tmp").unlink()
    assert state(root) == files
    assert store.take("4").tree == before


def test_a_tree_is_written_into_an_empty_folder(place: tuple[Path, CheckpointStore], tmp_path: Path) -> None:
    root, store = place
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "run").write_text("#!/bin/sh\n")
    (root / "a" / "b" / "run").chmod(0o755)
    (root / "link").symlink_to("a/b")
    tree = store.take("1").tree
    copy = tmp_path / "copy"
    assert len(store.extract(tree, copy).written) == 2
    assert state(copy) == state(root)
    (tmp_path / "loop").symlink_to("loop")
    for used in (copy, root / "a" / "b" / "run", root / "a" / "b" / "run" / "below", tmp_path / "loop"):
        with pytest.raises(ConfigError) as caught:
            store.extract(tree, used)
        assert caught.value.code == "checkpoints-folder-used"


def test_a_diff_tells_text_links_modes_and_bytes_with_safe_names(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    (root / "a\nb").write_text("one\ntwo\n")
    (root / "bin").write_bytes(b"\0one")
    old = store.take("1").tree
    (root / "a\nb").write_text("one\nthree")
    (root / "bin").write_bytes(b"\0two")
    (root / "bin").chmod(0o755)
    (root / "link").symlink_to("bin")
    new = store.take("2").tree
    assert store.diff(old, new) == (
        "diff a/a\\nb b/a\\nb\n--- a/a\\nb\n+++ b/a\\nb\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
        "\\ No newline at end of file\n"
        "diff a/bin b/bin\nold mode 644\nnew mode 755\nBinary files a/bin and b/bin differ\n"
        "diff a/link b/link\nnew file link\n--- /dev/null\n+++ b/link\n@@ -0,0 +1,1 @@\n+bin\n"
        "\\ No newline at end of file\n"
    )
    counts = [(each.path, each.added, each.removed) for each in store.compare(old, new)]
    assert counts == [("a\nb", 1, 1), ("bin", None, None), ("link", 1, 0)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_lines_of_a_text_in_a_wide_encoding_are_counted_and_shown(
    place: tuple[Path, CheckpointStore], encoding: str
) -> None:
    root, store = place
    names = ("changed", "encoded", "gone", "new")
    lines = "".join(f"line {number}\n" for number in range(20))
    for name in names[:3]:
        (root / name).write_bytes(lines.encode(encoding))
    old = store.take("1").tree
    (root / "changed").write_bytes(lines.replace("line 7\n", "Zeile Ċ\nmehr\n").encode(encoding))
    (root / "encoded").write_bytes(lines.encode())
    (root / "gone").unlink()
    (root / "new").write_bytes(lines.encode(encoding))
    new = store.take("2").tree
    counts = {each.path: (each.added, each.removed, each.by_lines) for each in store.compare(old, new)}
    assert counts == {
        "changed": (2, 1, False),
        "encoded": (None, None, False),  # other bytes of the same text are not no change
        "gone": (0, 20, False),
        "new": (20, 0, False),
    }
    shown = store.diff(old, new)
    assert "-line 7\n+Zeile Ċ\n+mehr\n" in shown
    assert "Binary files a/encoded and b/encoded differ\n" in shown


def test_pruning_removes_the_oldest_and_what_is_kept_can_be_read(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    trees = []
    for number in range(10):
        (root / "shared").write_bytes(b"shared")
        (root / "random").write_bytes(os.urandom(100_000))
        trees.append(store.take(f"s/{number}").tree)
    store.copy_refs("s/", "fork/", lambda rest: int(rest) >= 8)
    assert store.prune(350_000) == tuple(f"s/{number}" for number in range(6, -1, -1))
    assert store.size() < 500_000
    assert [store.tree_of(name) for name in ("s/6", "s/7", "fork/8")] == [None, trees[7], trees[8]]
    store.forget("s/")
    store.prune(10_000_000)
    assert [store.tree_of(name) for name in ("s/9", "fork/8", "fork/9")] == [None, trees[8], trees[9]]
    assert len(store.compare("", trees[8])) == 2
    assert store.take("new").tree == trees[9]


@pytest.mark.parametrize("how", ["cut", "zeros", "text", "middle"])
def test_a_damaged_store_is_set_aside_and_a_new_one_begun(tmp_path: Path, how: str) -> None:
    root, store = opened(tmp_path)
    for number in range(50):
        (root / str(number)).write_bytes(os.urandom(2000))
    store.take("1")
    store.prune(10**9)
    store.close()
    file = tmp_path / "data" / "store" / "checkpoints.db"
    data = file.read_bytes()
    bad = {
        "cut": data[: len(data) // 2],
        "zeros": bytes(len(data)),
        "text": b"hello " * 5000,
        "middle": data[:4096] + b"\xff" * (len(data) - 4096),
    }
    file.write_bytes(bad[how])
    files = state(root)
    again = open_checkpoints(tmp_path / "data" / "store", str(root))
    taken = again.take("2")
    assert "damaged" in taken.notice
    assert len(list(file.parent.glob("checkpoints.db.broken-*"))) >= 1
    assert len(again.compare("", taken.tree)) == 50
    assert again.take("3").notice == ""
    assert state(root) == files
    again.close()


def test_bytes_that_the_disk_changed_are_not_restored(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    for name in ("a", "b"):
        (root / name).write_text(f"{name} one")
    before = store.take("1").tree
    [entry] = [change.after for change in store.compare("", before) if change.path == "a"]
    for name in ("a", "b"):
        (root / name).write_text("two")
    now = store.take("2").tree
    store.close()
    with sqlite3.connect(store._folder / "checkpoints.db") as connection:
        other = connection.execute("SELECT data FROM objects WHERE size = 3").fetchone()[0]
        connection.execute(
            "UPDATE objects SET data = ?, base = NULL WHERE id = ?", (other, bytes.fromhex(entry.what if entry else ""))
        )
    connection.close()
    done = store.apply(store.plan_restore(before, now, [session(before, now)]))
    assert (done.written, [each.path for each in done.failed]) == ((b"b",), [b"a"])
    assert (root / "a").read_text() == "two"
    with pytest.raises(StoreError) as raised:
        store.read(entry.what if entry else "")
    assert raised.value.code == "checkpoints-damaged"


def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(tmp_path: Path) -> None:
    root, _ = opened(tmp_path)
    (tmp_path / "data").write_text("in the way")
    store = open_checkpoints(tmp_path / "data" / "store", str(root))
    with pytest.raises(StoreError) as raised:
        store.take("1")
    assert (raised.value.code, str(tmp_path) in raised.value.why) == ("checkpoints-unusable", True)


def _full(folder: Path, root: Path, queue: "multiprocessing.Queue[str]") -> None:
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    try:
        open_checkpoints(folder, str(root)).take("2")
    except StoreError as error:
        queue.put(error.code)


def test_a_full_disk_leaves_the_earlier_checkpoints_and_the_files(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    (root / "small").write_text("one")
    first = store.take("1")
    store.close()
    (root / "large").write_bytes(os.urandom(1_000_000))
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str] = context.Queue()
    child = context.Process(target=_full, args=(store._folder, root, queue))
    child.start()
    assert queue.get(timeout=60) == "checkpoints-unusable"
    child.join()
    assert [each.path for each in store.compare("", first.tree)] == ["small"]
    (root / "large").unlink()
    assert store.take("3") == first


def _many(folder: Path, root: Path, name: str) -> None:
    store = open_checkpoints(folder, str(root))
    for number in range(20):
        (root / name).write_text(str(number))
        store.take(f"{name}/{number}")
    store.close()


def test_two_processes_share_a_store(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_many, args=(store._folder, root, name)) for name in ("a", "b")]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    for name in ("a", "b"):
        for number in range(20):
            tree = store.tree_of(f"{name}/{number}")
            assert tree is not None
            [entry] = [change.after for change in store.compare("", tree) if change.path == name]
            assert entry is not None
            assert store.read(entry.what) == str(number).encode()


def test_a_store_that_another_process_holds_is_waited_for_in_vain(tmp_path: Path) -> None:
    import fcntl

    _, store = opened(tmp_path, patience=0)
    store.take("1")
    with (store._folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreError) as raised:
            store.take("2")
    assert raised.value.code == "checkpoints-busy"
    store.close()


def test_roots_that_cannot_have_checkpoints_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    bare = tmp_path / "bare"
    inside = tmp_path / "data" / "store" / "x"
    for folder in (home, inside, *(bare / name for name in ("HEAD", "objects", "refs"))):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for root in (home, tmp_path, Path("/"), tmp_path / "data", inside, bare):
        with pytest.raises(ConfigError) as raised:
            open_checkpoints(tmp_path / "data" / "store", str(root))
        assert raised.value.code == "checkpoints-root"


def test_a_swap_of_file_folder_and_link_is_taken_back(place: tuple[Path, CheckpointStore]) -> None:
    root, store = place
    (root / "file").write_text("one")
    (root / "folder").mkdir()
    (root / "folder" / "a").write_text("one")
    (root / "link").symlink_to("folder")
    before, files = store.take("1").tree, state(root)
    (root / "file").unlink()
    (root / "file" / "deep").mkdir(parents=True)
    (root / "file" / "deep" / "x").write_text("two")
    shutil.rmtree(root / "folder")
    (root / "folder").symlink_to("file")
    (root / "link").unlink()
    (root / "link").write_text("two")
    now = store.take("2").tree
    done = store.apply(store.plan_restore(before, now, [session(before, now)]))
    assert (done.conflicts, done.failed, state(root)) == ((), (), files)


RIGHTS = {"usual": 0o755, "private": 0o700, "private/in": 0o750, "shared": 0o775, "locked": 0o555}


@pytest.fixture(params=[0o002, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("way", ["restored", "extracted"])
def test_a_folder_that_is_made_again_has_the_rights_that_it_had(
    place: tuple[Path, CheckpointStore], tmp_path: Path, way: str
) -> None:
    root, store = place
    for name in RIGHTS:
        (root / name).mkdir()
        (root / name / "a.txt").write_text("one")
    for name, mode in RIGHTS.items():
        (root / name).chmod(mode)
    (root / "stays").mkdir()
    (root / "stays" / "a.txt").write_text("one")
    before = store.take("1").tree
    (root / "locked").chmod(0o755)
    for name in ("usual", "private", "shared", "locked"):
        shutil.rmtree(root / name)
    (root / "stays" / "a.txt").unlink()
    (root / "stays").chmod(0o711)
    now = store.take("2").tree
    if way == "restored":
        store.apply(store.plan_restore(before, now, [session(before, now)]))
        assert (root / "stays").stat().st_mode & 0o777 == 0o711
        assert (root / "stays" / "a.txt").read_text() == "one"
    else:
        root = tmp_path / "written"
        store.extract(before, root)
    found = {name: (root / name).stat().st_mode & 0o777 for name in RIGHTS}
    assert found == {**RIGHTS, "locked": 0o755}, "the user can write into what was made again"
    assert all((root / name / "a.txt").read_text() == "one" for name in RIGHTS)
