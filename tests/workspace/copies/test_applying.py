"""Applying is all or nothing: beside somebody who works on the same files, and when it is killed at any moment."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workspace.copies import killed_apply
from tests.workspace.copies.copied import Bench, Ran, snapshot
from tests.workspace.sandbox.running import bubblewrap

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Confinement, FileChange, Right, Rights, SandboxDenial
from treadle.workspace.copies import apply_changes, make_copy, nothing_is_held, recover_copies
from treadle.workspace.files.names import hash_of_file
from treadle.workspace.files.private_file import write_private

LINE = (
    "echo theirs >> kept; rm gone; rm -r folder; mkdir -p new/deep; echo n > new/deep/n; "
    "echo x > single; chmod 600 mode"
)


@pytest.fixture
async def ran(bench: Bench) -> Ran:
    """A command that changed a bit of everything."""
    (bench.root / "folder/inner").mkdir(parents=True)
    for name in ("kept", "gone", "mode", "other", "folder/one", "folder/inner/two"):
        (bench.root / name).write_text(f"{name}\n")
    await asyncio.sleep(0.02)
    ran = await bench.run(LINE)
    assert (ran.status, ran.output) == (0, "")
    return ran


def apply(ran: Ran) -> tuple[FileChange, ...]:
    return apply_changes(ran.copy, ran.changes().digest, nothing_is_held)


async def test_every_changed_file_is_reported_with_its_hashes(bench: Bench, ran: Ran) -> None:
    kept = hash_of_file(str(bench.root / "kept"))
    changes = {Path(change.path).name: change for change in apply(ran)}
    assert sorted(changes) == ["gone", "kept", "mode", "n", "one", "single", "two"]
    assert (changes["kept"].before, changes["kept"].after) == (kept, hash_of_file(str(bench.root / "kept")))
    assert (changes["kept"].added, changes["kept"].removed) == (1, 0)
    assert (changes["n"].before, changes["gone"].after) == ("", "")
    assert sorted(path.name for path in bench.root.iterdir()) == ["kept", "mode", "new", "other", "single"]
    assert (bench.root / "mode").stat().st_mode & 0o777 == 0o600
    assert not list(bench.root.rglob(".treadle-*"))


async def test_a_second_yes_to_the_same_changes_finds_them_stale(bench: Bench, ran: Ran) -> None:
    apply(ran)
    with pytest.raises(ToolError, match="was changed while the command ran or after it"):
        apply(ran)


def in_place(root: Path) -> None:
    with (root / "kept").open("a") as file:
        file.write("mine\n")


def atomically(root: Path) -> None:
    (root / "draft").write_text("mine\n")
    (root / "draft").rename(root / "kept")


def back_again(root: Path) -> None:
    (root / "kept").write_text("mine\n")
    (root / "kept").write_text("kept\n")


def deletes(root: Path) -> None:
    (root / "kept").unlink()


def same_new_name(root: Path) -> None:
    (root / "single").write_text("mine\n")


def same_new_folder(root: Path) -> None:
    (root / "new/deep").mkdir(parents=True)


def into_removed_folder(root: Path) -> None:
    (root / "folder/inner/mine").write_text("mine\n")


def edits_removed_file(root: Path) -> None:
    (root / "gone").write_text("mine\n")


def mode(root: Path) -> None:
    (root / "mode").chmod(0o755)


def link_for_file(root: Path) -> None:
    (root / "kept").unlink()
    (root / "kept").symlink_to("../victim")


def link_for_folder(root: Path) -> None:
    (root / "folder").rename(root / "moved")
    (root / "folder").symlink_to("../outside")


def link_for_new_folder(root: Path) -> None:
    (root / "new").symlink_to("../outside")


EDITS = (
    *(in_place, atomically, back_again, deletes, same_new_name, same_new_folder, into_removed_folder),
    *(edits_removed_file, mode, link_for_file, link_for_folder, link_for_new_folder),
)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: str(edit.__name__))
async def test_what_somebody_changed_after_the_run_is_left_and_nothing_else_is_touched(
    bench: Bench, ran: Ran, edit: Callable[[Path], None]
) -> None:
    (bench.folder / "outside").mkdir()
    (bench.folder / "outside/inner").mkdir()
    (bench.folder / "victim").write_text("victim\n")
    digest = ran.changes().digest
    edit(bench.root)
    before = snapshot(bench.folder / "work"), snapshot(bench.folder / "outside"), snapshot(bench.folder / "victim")
    with pytest.raises(ToolError, match="was changed while the command ran or after it"):
        apply_changes(ran.copy, digest, nothing_is_held)
    assert before == (
        snapshot(bench.folder / "work"),
        snapshot(bench.folder / "outside"),
        snapshot(bench.folder / "victim"),
    )


@pytest.mark.parametrize("edit", [in_place, atomically, deletes, edits_removed_file, link_for_file])
async def test_what_somebody_changed_after_everything_was_checked_is_left_too(
    bench: Bench, ran: Ran, edit: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.folder / "victim").write_text("victim\n")
    digest = ran.changes().digest
    edited: list[object] = []

    def write(file: Path, text: bytes) -> None:
        """Write the journal; then somebody edits a file."""
        write_private(file, text)
        if not edited:
            edit(bench.root)
            edited.append((snapshot(bench.root), snapshot(bench.folder / "victim")))

    monkeypatch.setattr("treadle.workspace.copies.applying.write_private", write)
    with pytest.raises(ToolError, match="was changed while the command ran or after it"):
        apply_changes(ran.copy, digest, nothing_is_held)
    assert edited == [(snapshot(bench.root), snapshot(bench.folder / "victim"))]


@pytest.mark.parametrize("edit", [in_place, atomically, same_new_name, into_removed_folder, link_for_file])
async def test_what_somebody_changed_during_the_run_is_left(bench: Bench, edit: Callable[[Path], None]) -> None:
    (bench.root / "folder/inner").mkdir(parents=True)
    for name in ("kept", "gone", "mode", "folder/one"):
        (bench.root / name).write_text(f"{name}\n")
    await asyncio.sleep(0.02)
    # The folder for temporary files is shared with the command.
    line = f"cat kept; ls folder; until test -e /tmp/go; do : >/tmp/ready; sleep 0.01; done; {LINE}"
    copy = make_copy(bench.profile(), bubblewrap(), bench.data)
    command = bench.start(line, copy)
    while not (bench.data / "tmp/ready").exists():
        await asyncio.sleep(0.01)
    edit(bench.root)
    edited = snapshot(bench.root)
    (bench.data / "tmp/go").touch()
    await command.finish(60)
    ran = Ran(copy, command.status, "")
    await command.close()
    with pytest.raises(ToolError, match="was changed while the command ran or after it"):
        apply(ran)
    assert snapshot(bench.root) == edited


async def test_other_files_may_change_meanwhile(bench: Bench, ran: Ran) -> None:
    digest = ran.changes().digest
    (bench.root / "other").write_text("mine\n")
    (bench.root / "another").write_text("mine\n")
    apply_changes(ran.copy, digest, nothing_is_held)
    assert (bench.root / "kept").read_text() == "kept\ntheirs\n"
    assert ((bench.root / "other").read_text(), (bench.root / "another").read_text()) == ("mine\n", "mine\n")


async def test_a_yes_is_bound_to_the_list_that_was_shown(bench: Bench, ran: Ran) -> None:
    before = snapshot(bench.root)
    digest = ran.changes().digest
    for wrong, hold in (("", nothing_is_held), (digest, lambda path, **_: "no" if path.endswith("/single") else "")):
        with pytest.raises(ToolError, match="not those that were shown"):
            apply_changes(ran.copy, wrong, hold)
    assert snapshot(bench.root) == before


async def test_kept_bytes_that_were_damaged_are_not_applied(bench: Bench, ran: Ran) -> None:
    before = snapshot(bench.root)
    digest = ran.changes().digest
    contents = ran.copy.folder / "contents"
    contents.write_bytes(contents.read_bytes().replace(b"theirs", b"evil!!"))
    with pytest.raises(ToolError, match="is damaged"):
        apply_changes(ran.copy, digest, nothing_is_held)
    assert snapshot(bench.root) == before


async def test_every_change_is_shown_and_what_is_too_large_is_named(bench: Bench) -> None:
    (bench.root / "text").write_text("one\ntwo\n")
    await asyncio.sleep(0.02)
    ran = await bench.run(
        "sed -i s/two/2/ text; head -c 100 /dev/zero > zeros; seq 100000 > long; chmod 755 text; ln -s text link"
    )
    changes = ran.changes()
    assert [(Path(one.path).name, one.about, one.first, one.unshown) for one in changes.changes] == [
        ("link", "link to text", True, False),
        ("text", "mode 644 -> 755", True, False),
        ("long", "too large to show", False, True),
        ("zeros", "binary, 100 bytes", False, False),
    ]
    assert changes.unshown == (changes.changes[2],)
    assert changes.diff == (
        "link: link to text\n"
        "text: mode 644 -> 755\n--- a/text\n+++ b/text\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        "long: too large to show\n"
        "zeros: binary, 100 bytes\n"
    )


async def test_nothing_is_applied_where_a_part_of_it_cannot_be(bench: Bench, ran: Ran) -> None:
    before = snapshot(bench.root)

    def hold(path: str, /, *, made: bool = False) -> str:
        return "a reason" if path.endswith("/single") else ""

    changes = ran.changes(hold)
    assert [(Path(one.path).name, one.held) for one in changes.changes if one.held] == [("single", "a reason")]
    assert not changes.whole
    right = SandboxDenial(right=Right.WRITE, target=str(bench.root / "single"))
    assert changes.rights == Rights(confinement=Confinement.WORK, granted=(right,))
    with pytest.raises(ToolError, match="a part of the changes cannot be"):
        apply_changes(ran.copy, changes.digest, hold)
    assert snapshot(bench.root) == before


async def kill_at(ran: Ran, step: int) -> bool:
    """Apply in a process of its own that is killed before the given change of the disk; whether it was."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, killed_apply.__file__, str(ran.copy.folder), str(step), *ran.copy.roots),
        stderr=subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), said.decode()
    return process.returncode != 0


def abandon(ran: Ran, data: Path) -> None:
    """Give the copy to a process that is gone."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    ran.copy.folder.rename(data / "copies" / f"{ended.pid}-1-{'0' * 12}")


async def check_kill(bench: Bench, ran: Ran, step: int) -> bool:
    before = snapshot(bench.root)
    killed = await kill_at(ran, step)
    applied = snapshot(bench.root)
    abandon(ran, bench.data)
    recover_copies(bench.data)
    assert not killed or snapshot(bench.root) == before, f"killed at step {step}"
    assert killed or snapshot(bench.root) == applied != before
    assert list((bench.data / "copies").iterdir()) == []
    return killed


@pytest.mark.parametrize("step", [1, 7, 16, 27])
async def test_an_apply_that_was_killed_is_taken_back(bench: Bench, ran: Ran, step: int) -> None:
    await check_kill(bench, ran, step)


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_an_apply_that_was_killed_at_any_step_is_taken_back(bench: Bench) -> None:
    step, killed = 0, True
    while killed:
        step += 1
        subprocess.run(["rm", "-rf", bench.root], check=True)
        (bench.root / "folder/inner").mkdir(parents=True)
        for name in ("kept", "gone", "mode", "other", "folder/one", "folder/inner/two"):
            (bench.root / name).write_text(f"{name}\n")
        await asyncio.sleep(0.02)
        killed = await check_kill(bench, await bench.run(LINE), step)
    assert step > 20


async def test_what_somebody_changed_after_a_kill_is_left_and_named(bench: Bench, ran: Ran) -> None:
    before = snapshot(bench.root)
    step = 0
    while not (bench.root / "single").exists():
        step += 3
        assert await kill_at(ran, step)
        if not (bench.root / "single").exists():
            abandon(ran, bench.data)
            recover_copies(bench.data)
            assert snapshot(bench.root) == before
            await asyncio.sleep(0.02)
            ran = await bench.run(LINE)
    (bench.root / "single").write_text("mine\n")
    abandon(ran, bench.data)
    (found,) = recover_copies(bench.data)
    assert found.left == ("single",)
    assert found.text.endswith("What it had applied was undone. Changed since by somebody, so left as it is: 'single'.")
    assert (bench.root / "single").read_text() == "mine\n"
    (bench.root / "single").unlink()
    assert snapshot(bench.root) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
async def test_folders_and_files_with_narrow_rights_are_worked_with_and_get_them_back(bench: Bench) -> None:
    (bench.root / "closed").mkdir()
    (bench.root / "closed/file").write_text("old\n")
    (bench.root / "closed/file").chmod(0)
    (bench.root / "closed").chmod(0o500)
    await asyncio.sleep(0.02)
    ran = await bench.run("chmod 700 closed && chmod 600 closed/file && echo new > closed/file && chmod 500 closed")
    apply(ran)
    assert (bench.root / "closed").stat().st_mode & 0o777 == 0o500
    assert (bench.root / "closed/file").read_text() == "new\n"
    (bench.root / "closed").chmod(0o700)
