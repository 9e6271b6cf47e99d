"""What is read of a copy: every change, nothing that is none, and why something is never applied."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from tests.workspace.copies.copied import Bench, Ran, snapshot
from tests.workspace.sandbox.running import bubblewrap

from treadle.present.trial_words import changes_of
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Confinement, CopyChanges, Rights
from treadle.workspace.checkpoints.trees import LARGEST_KEPT
from treadle.workspace.copies import apply_changes, make_copy, nothing_is_held

REPOSITORY = "the command also changed the repository"


def listed(bench: Bench, changes: CopyChanges) -> list[tuple[str, str, str]]:
    """Name changes by their path in the workspace."""
    return [(os.path.relpath(one.path, bench.root), one.kind.value, one.held) for one in changes.changes]


def git(bench: Bench, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@t")
    done = subprocess.run(("git", *identity, *words), cwd=bench.root, check=True, capture_output=True, text=True)
    return done.stdout


def repository(bench: Bench) -> None:
    git(bench, "init", "-q")
    (bench.root / "file").write_text("text\n")
    (bench.root / ".gitignore").write_text("build/\n*.log\n")
    (bench.root / "build").mkdir()
    (bench.root / "build/old").write_text("old\n")
    (bench.root / "tracked.log").write_text("text\n")
    git(bench, "add", "-f", "file", ".gitignore", "tracked.log")
    git(bench, "commit", "-qm", "first")


async def test_what_ends_as_it_was_is_no_change(bench: Bench) -> None:
    for name in ("same", "touched", "renamed", "inner/one"):
        (bench.root / name).parent.mkdir(exist_ok=True)
        (bench.root / name).write_text("text\n")
    (bench.root / "link").symlink_to("same")
    ran = await bench.run(
        "cat same; cp same x; mv x same; touch touched; mv renamed y; mv y renamed; echo z > new; rm new; mkdir d;"
        "rmdir d; chmod 600 same; chmod 644 same; rm -r inner; mkdir inner; printf 'text\\n' > inner/one; rm link;"
        "ln -s same link"
    )
    assert ran.status == 0
    assert ran.changes() == CopyChanges(digest=ran.changes().digest)


async def test_a_folder_that_was_replaced_hides_all_that_was_below_it(bench: Bench) -> None:
    (bench.root / "top/middle/low").mkdir(parents=True)
    (bench.root / "top/middle/low/old").write_text("old\n")
    (bench.root / "top/middle/kept").write_text("kept\n")
    ran = await bench.run(
        "rm -r top; mkdir -p top/middle/low; echo kept > top/middle/kept; echo n > top/middle/low/new"
    )
    assert listed(bench, ran.changes()) == [("top/middle/low/new", "added", ""), ("top/middle/low/old", "deleted", "")]


async def test_a_folder_in_the_place_of_a_link_is_not_read_through_the_link(bench: Bench) -> None:
    (bench.folder / "outside").mkdir()
    (bench.folder / "outside/same").write_text("secret\n")
    (bench.root / "l").symlink_to("../outside")
    ran = await bench.run("rm l; mkdir l; echo mine > l/same")
    changes = ran.changes()
    assert listed(bench, changes) == [("l", "changed", ""), ("l/same", "added", "")]
    apply_changes(ran.copy, changes.digest, nothing_is_held)
    assert (bench.root / "l/same").read_text() == "mine\n"
    assert (bench.folder / "outside/same").read_text() == "secret\n"


async def test_what_is_special_is_held_and_what_leads_out_is_said(bench: Bench) -> None:
    (bench.root / "d").mkdir()
    (bench.root / "d/out").symlink_to("../..")
    ran = await bench.run(
        "mkfifo pipe; ln -s /etc/passwd absolute; ln -s ../x relative; ln -s d/out/victim through; ln -s d/in in;"
        "ln -s loop loop;"
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'"
    )
    special = "a pipe, socket or device is never applied"
    changes = ran.changes()
    assert listed(bench, changes) == [
        ("pipe", "added", special),
        ("socket", "added", special),
        ("absolute", "added", ""),
        ("in", "added", ""),
        ("loop", "added", ""),
        ("relative", "added", ""),
        ("through", "added", ""),
    ]
    assert [one.about for one in changes.changes[2:]] == [
        "link to /etc/passwd, which may lead out of the workspace",
        "link to d/in",
        "link to loop, which may lead out of the workspace",
        "link to ../x, which may lead out of the workspace",
        "link to d/out/victim, which may lead out of the workspace",
    ]
    assert not changes.whole


async def test_modes_are_kept_but_for_the_bits_that_give_rights(bench: Bench) -> None:
    (bench.root / "file").write_text("text\n")
    await asyncio.sleep(0.02)
    ran = await bench.run(
        "chmod 755 file; chmod 4755 file; echo x > none; chmod 0 none; mkdir closed; echo x > closed/x; chmod 0 closed"
    )
    apply_changes(ran.copy, ran.changes().digest, nothing_is_held)
    modes = {name: (bench.root / name).stat().st_mode & 0o7777 for name in ("file", "none", "closed")}
    assert modes == {"file": 0o755, "none": 0, "closed": 0}
    (bench.root / "closed").chmod(0o700)
    assert (bench.root / "closed/x").read_text() == "x\n"


async def test_odd_names_are_read_and_applied(bench: Bench) -> None:
    names = [b"-rf", b"a b", b"new\nline", b"\xff\xfe", b"*", b":,\\", b"n" * 255, "é".encode(), b"'\""]
    (bench.root / "made.py").write_text(f"for name in {names!r}:\n    open(name, 'wb').write(name)\n")
    await asyncio.sleep(0.02)
    ran = await bench.run("python3 made.py")
    apply_changes(ran.copy, ran.changes().digest, nothing_is_held)
    assert {name: (Path(os.fsdecode(os.fsencode(bench.root) + b"/" + name))).read_bytes() for name in names} == {
        name: name for name in names
    }


async def test_an_odd_workspace_works_too(tmp_path: Path) -> None:
    bench = Bench(Path(os.fsdecode(os.fsencode(tmp_path.resolve()) + b"/a:b,c\\d e\n\xff")))
    bench.root.mkdir(parents=True)
    bench.needs_copies()
    ran = await bench.run("echo x > new")
    assert [Path(one.path).name for one in ran.changes().changes] == ["new"]


async def test_what_git_ignores_goes_with_the_changes_and_caches_are_thrown_away(bench: Bench) -> None:
    repository(bench)
    await asyncio.sleep(0.02)
    ran = await bench.run(
        "mkdir -p pkg/__pycache__ .pytest_cache .venv; echo x | tee pkg/__pycache__/a pkg/__pycache__/b .pytest_cache/c"
        " build/new build/old more.log .venv/d; echo '*' > .venv/.gitignore; echo x >> tracked.log; echo x > pkg/kept"
    )
    changes = ran.changes()
    assert listed(bench, changes) == [("pkg/kept", "added", ""), ("tracked.log", "changed", "")]
    assert changes.ignored == 2
    outputs = [(os.path.relpath(one.path, bench.root), one.files) for one in changes.outputs]
    assert outputs == [(".venv", 2), ("build", 2), ("more.log", 1)]
    apply_changes(ran.copy, changes.digest, nothing_is_held)
    assert sorted(path.name for path in bench.root.iterdir()) == [
        *(".git", ".gitignore", ".venv", "build", "file", "more.log", "pkg", "tracked.log")
    ]
    assert (bench.root / "build/old").read_text() == "x\n"
    assert not (bench.root / "pkg/__pycache__").exists()


async def test_what_git_ignores_and_no_checkpoint_holds_is_shown_before_it_is_lost(bench: Bench) -> None:
    repository(bench)
    (bench.root / "data.log").write_text("rows\n")
    (bench.root / "old.log").write_text("rows\n")
    await asyncio.sleep(0.02)
    ran = await bench.run("echo more >> data.log; rm -r build old.log; echo x > file")
    changes = ran.changes()
    assert [(os.path.relpath(one.path, bench.root), one.kind.value, one.about) for one in changes.changes] == [
        ("build", "deleted", "1 file that git ignores"),
        ("data.log", "changed", "git ignores it"),
        ("old.log", "deleted", "git ignores it"),
        ("file", "changed", ""),
    ]
    assert "build/old: deleted" in changes.diff
    apply_changes(ran.copy, changes.digest, nothing_is_held)
    assert sorted(path.name for path in bench.root.iterdir()) == [
        ".git",
        ".gitignore",
        "data.log",
        "file",
        "tracked.log",
    ]


async def test_what_is_too_large_for_a_checkpoint_is_said_where_it_changes_or_goes(bench: Bench) -> None:
    repository(bench)
    for name in ("data.log", "old.log", "plain"):
        with (bench.root / name).open("wb") as file:
            file.truncate(LARGEST_KEPT + 1)
    await asyncio.sleep(0.02)
    ran = await bench.run("> data.log; rm old.log; > plain; chmod +x file; echo x > new")
    about = {os.path.relpath(one.path, bench.root): one.about for one in ran.changes().changes}
    assert {
        name for name, text in about.items() if "too large for a checkpoint: /undo does not restore it" in text
    } == {
        "data.log",
        "old.log",
        "plain",
    }


async def test_a_folder_that_moves_takes_along_what_git_ignores_in_it(bench: Bench) -> None:
    repository(bench)
    (bench.root / "app").mkdir()
    (bench.root / "app/code").write_text("code\n")
    (bench.root / "app/prod.log").write_text("rows\n")
    before = snapshot(bench.root / "app")
    await asyncio.sleep(0.02)
    ran = await bench.run("mv app core")
    changes = ran.changes()
    assert listed(bench, changes) == [("app/code", "deleted", ""), ("core/code", "added", "")]
    apply_changes(ran.copy, changes.digest, nothing_is_held)
    assert not (bench.root / "app").exists()
    assert snapshot(bench.root / "core") == before


async def test_a_removed_folder_takes_its_caches_and_ignored_files_along(bench: Bench) -> None:
    repository(bench)
    (bench.root / "pkg/__pycache__").mkdir(parents=True)
    for name in ("pkg/__pycache__/a.pyc", "pkg/x.log", "pkg/code"):
        (bench.root / name).write_text("text\n")
    await asyncio.sleep(0.02)
    ran = await bench.run("rm -r pkg")
    changes = ran.changes()
    assert listed(bench, changes) == [("pkg/x.log", "deleted", ""), ("pkg/code", "deleted", "")]
    apply_changes(ran.copy, changes.digest, nothing_is_held)
    assert not (bench.root / "pkg").exists()


async def test_git_may_look_and_what_it_writes_is_held_in_one_line(bench: Bench) -> None:
    repository(bench)
    (bench.root / "file").write_text("text\n")  # newer than the index, so that git refreshes it
    ran = await bench.run("git status --short")
    assert ((ran.status, ran.output), ran.changes().changes) == ((0, ""), ())
    identity = "git -c user.name=t -c user.email=t@t"
    for line in (
        "echo x >> file; git add file",
        f"{identity} commit -q --allow-empty -m x",
        "git checkout -q -b other",
    ):
        ran = await bench.run(line)
        assert ran.status == 0, ran.output
        assert (".git", "changed", REPOSITORY) in listed(bench, ran.changes())
    ran = await bench.run("git init -q sub && echo x > sub/file; rm -rf .git")
    assert listed(bench, ran.changes()) == [
        (".git", "deleted", REPOSITORY),
        ("sub/.git", "added", REPOSITORY),
        ("sub/file", "added", ""),
    ]
    before = snapshot(bench.root)
    assert ran.changes().rights == Rights(confinement=Confinement.GIT)
    with pytest.raises(ToolError, match="a part of the changes cannot be"):
        apply_changes(ran.copy, ran.changes().digest, nothing_is_held)
    assert snapshot(bench.root) == before


async def test_a_masked_file_reads_empty_and_is_never_applied(bench: Bench) -> None:
    (bench.root / "sub/keys").mkdir(parents=True)
    for name in (".env", "sub/.env", "sub/keys/id", "sub/other"):
        (bench.root / name).write_text("secret\n")
    before = snapshot(bench.root)
    profile = bench.profile(".env", "sub/.env", "sub/keys")
    ran = await bench.run("cat .env sub/.env; ls sub/keys; touch .env; chmod 600 sub/other", profile)
    assert (ran.status, ran.output) == (0, "")
    assert [one[:2] for one in listed(bench, ran.changes())] == [("sub/other", "changed")]
    ran = await bench.run("echo x >> .env; rm sub/.env; echo k > sub/keys/new; rm -r sub; true", profile)
    changes = ran.changes()
    assert {(name, bool(held)) for name, _, held in listed(bench, changes)} == {
        (".env", True),
        ("sub/.env", True),
        ("sub/keys", True),
        ("sub/other", False),
    }
    with pytest.raises(ToolError, match="a part of the changes cannot be"):
        apply_changes(ran.copy, changes.digest, nothing_is_held)
    assert snapshot(bench.root) == before


async def test_a_tracked_masked_file_reads_as_it_is_told_to(bench: Bench) -> None:
    (bench.root / ".env").write_text("secret\n")

    copy = make_copy(bench.profile(".env"), bubblewrap(), bench.data, shown={f"{bench.root}/.env": b"sample\n"})
    command = bench.start("cat .env", copy)
    await command.finish(60)
    assert command.take_output() == "sample\n"
    await command.close()
    assert Ran(copy, 0, "").changes().changes == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("head -c 30000000 /dev/zero > big", "The copy is full"),
        ("python3 -c \"import os; os.rename('folder', 'moved')\"", "cannot be renamed in the copy"),
        ("python3 -c \"raise OSError(75, 'Value too large for defined data type')\"", "another user or group"),
    ],
)
async def test_the_limits_of_a_copy_are_told(bench: Bench, line: str, words: str) -> None:
    (bench.root / "folder").mkdir()
    (bench.root / "folder/file").write_text("x")
    ran = await bench.run(line, size=10_000_000)
    assert ran.status != 0
    assert words in ran.changes().trouble
    assert "`work`" in ran.changes().trouble


async def test_a_long_list_is_summarized_by_folder(bench: Bench) -> None:
    ran = await bench.run("mkdir a b; for n in $(seq 30); do echo > a/$n; done; echo > b/x; mkfifo p")
    changes = ran.changes()
    assert list(changes_of(CopyChanges(changes=changes.changes[1:2]), (str(bench.root),))) == ["A a/1  +1 -0"]
    assert list(changes_of(changes, (str(bench.root),))) == [
        "These changes cannot be applied, because not all of them can:",
        "p: a pipe, socket or device is never applied",
        "a/  30 files  +30 -0",
        "b/  1 file  +1 -0",
    ]


async def test_a_further_root_has_a_copy_of_its_own(bench: Bench) -> None:
    other = bench.folder / "other"
    other.mkdir()
    (other / "file").write_text("text\n")
    await asyncio.sleep(0.02)
    ran = await bench.run(f"echo x > new; echo more >> {other}/file", bench.profile(roots=(str(other),)))
    changes = ran.changes()
    assert [one.path for one in changes.changes] == [f"{other}/file", f"{bench.root}/new"]
    apply_changes(ran.copy, changes.digest, nothing_is_held)
    assert (other / "file").read_text() == "text\nmore\n"
