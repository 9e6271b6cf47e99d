"""A copy comes and goes with its command: nothing of it stays, whatever is killed, and nobody else sees it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.small_disk import fill, small_disk
from tests.workspace.copies import killed_owner
from tests.workspace.copies.copied import Bench, snapshot
from tests.workspace.processes import lasting, living, until
from tests.workspace.sandbox.running import bubblewrap

from treadle.protocol.tools import CopyChanges
from treadle.workspace.copies import (
    apply_changes,
    make_copy,
    making,
    nothing_is_held,
    probing,
    recover_copies,
    throw_away,
    why_no_copy,
)
from treadle.workspace.copies.staging import read_manifest
from treadle.workspace.diagnostics.tether import tethered
from treadle.workspace.sandbox import Backend, SandboxState

REPOSITORY = Path(__file__).parents[3]


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


def mentioned(text: str) -> bool:
    """Whether a process has a text in its command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append(text.encode() in (process / "cmdline").read_bytes())
    return any(found)


def private_files(bench: Bench) -> list[Path]:
    return list((bench.data / "copies").iterdir())


async def test_the_real_files_stay_as_they_are_and_nothing_is_left(bench: Bench) -> None:
    (bench.root / "folder").mkdir()
    (bench.root / "folder/file").write_text("text\n")
    before, mounted = snapshot(bench.root), mounts()
    marker = lasting()
    ran = await bench.run(f"rm -rf * && mkdir folder && echo other > folder/file && ({marker} & {marker} &)")
    assert ran.status == 0
    assert (snapshot(bench.root), mounts()) == (before, mounted)
    assert living(marker) == 0
    modes = {path.name: path.stat().st_mode & 0o777 for path in ran.copy.folder.iterdir() if path.name != "mount"}
    assert modes == {"job": 0o600, "manifest": 0o600, "contents": 0o600}
    assert ran.copy.folder.stat().st_mode & 0o777 == 0o700
    throw_away(ran.copy)
    assert private_files(bench) == []


async def test_a_command_sees_neither_the_staging_folder_nor_the_layers(bench: Bench) -> None:
    copy = make_copy(bench.profile(), bubblewrap(), bench.data)
    line = f"ls -A {bench.data}; echo x > {copy.folder}/manifest; ls {copy.folder}/mount"
    command = bench.start(line, copy)
    await command.finish(60)
    output = command.take_output()
    await command.close()
    assert output.count("No such file or directory") == len(output.splitlines()) >= 2, output
    manifest = read_manifest(copy.folder)
    assert manifest is not None
    assert manifest.changes == ()


async def test_a_command_that_is_stopped_leaves_no_changes_that_count(bench: Bench) -> None:
    copy = make_copy(bench.profile(), bubblewrap(), bench.data)
    command = bench.start("echo x > new; trap '' TERM; while :; do sleep 0.1; done", copy)
    assert not await command.ended(1)
    await command.stop("a test", grace=0.1)
    await command.close()
    assert read_manifest(copy.folder) is None
    assert not (bench.root / "new").exists()


@pytest.mark.parametrize("moment", ["running", "ended"])
async def test_a_killed_treadle_leaves_no_process_no_mount_and_no_copy_that_is_taken_for_whole(
    bench: Bench, moment: str
) -> None:
    marker = lasting()
    line = f"echo x > new; echo started; {marker}" if moment == "running" else "echo x > new; echo started"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, killed_owner.__file__, str(bench.folder), line),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"started\n"
    if moment == "ended":
        assert await process.stdout.readline() == b"ended\n"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert await until(marker, 0) == 0
    while mentioned(str(bench.root)):
        await asyncio.sleep(0.02)
    assert not (bench.root / "new").exists()
    assert len(private_files(bench)) == 1
    recover_copies(bench.data)
    assert private_files(bench) == []


async def test_a_frame_whose_parent_is_killed_ends_what_its_own_kill_would_leave(bench: Bench) -> None:
    """A sandbox that is killed while it makes its namespaces leaves its first process, which waits for it."""
    words = make_copy(bench.profile(), bubblewrap(), bench.data).wrapping.around(("true",))
    gone, left = lasting(), lasting()
    program = (*words[: words.index("--") + 1], "/bin/sh", "-c", f"{left} & exec {gone}")
    tied = f"import subprocess, sys; from {tethered.__module__} import tethered; subprocess.run(tethered(sys.argv[1:]))"
    parent = subprocess.Popen((sys.executable, "-c", tied, *program))
    assert await until(left, 1) == 1
    parent.kill()
    parent.wait()
    assert (await until(gone, 0), await until(left, 0)) == (0, 0)


async def test_copies_of_living_processes_are_not_swept(bench: Bench) -> None:
    ran = await bench.run("echo x > new")
    recover_copies(bench.data)
    apply_changes(ran.copy, ran.changes().digest, nothing_is_held)
    assert (bench.root / "new").read_text() == "x\n"


async def test_a_torn_manifest_is_no_manifest(bench: Bench) -> None:
    ran = await bench.run("echo x > new")
    manifest = ran.copy.folder / "manifest"
    manifest.write_bytes(manifest.read_bytes()[:-5])
    assert ran.changes() == CopyChanges(
        trouble="What it changed in its copy is lost: it was stopped before that was read. "
        "It needs `work`, where commands run in the workspace itself."
    )


@pytest.mark.soak
async def test_twenty_thousand_new_files_are_read_and_applied_in_bounded_time(bench: Bench) -> None:
    ran = await bench.run("for d in $(seq 20); do mkdir $d; for f in $(seq 1000); do echo $d$f > $d/$f; done; done")
    start = time.monotonic()
    changes = ran.changes()
    read = time.monotonic()
    apply_changes(ran.copy, changes.digest, nothing_is_held)
    applied = time.monotonic()
    print(f"\nread in {read - start:.2f} s, applied in {applied - read:.2f} s")
    assert len(changes.changes) == 20_000
    assert sum(1 for path in bench.root.rglob("*") if path.is_file()) == 20_000


async def test_too_many_changes_are_refused_as_a_whole(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "_MOST_CHANGES", 10)
    ran = await bench.run("for f in $(seq 11); do echo > $f; done")
    assert ran.changes() == CopyChanges(
        trouble="It changed more than 10 files. It needs `work`, where commands run in the workspace itself."
    )


def test_what_hinders_copies_is_named(bench: Bench, tmp_path: Path) -> None:
    landlock = SandboxState(backend=Backend.LANDLOCK)
    assert why_no_copy(bench.profile(), landlock, bench.data) == "copies need bubblewrap, which does not work here"
    inside = why_no_copy(bench.profile(), bubblewrap(), bench.root / "data")
    assert inside == f"Treadle's own data is in {bench.root}"
    broken = SandboxState(backend=Backend.BUBBLEWRAP, program="/bin/false")
    probing._tried.cache_clear()
    assert why_no_copy(bench.profile(), broken, bench.data).startswith("overlays do not work here")
    probing._tried.cache_clear()
    assert private_files(bench) == []


def test_on_a_busy_machine_copies_are_tried_once_more(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "_PATIENCE", (1.5, 90.0))  # a busy machine comes as far as the program in that
    program = tmp_path / "slow"
    line = f'test -e {tmp_path}/tried && exec {bubblewrap().program} "$@"; : >{tmp_path}/tried; exec sleep 60'
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
    state = SandboxState(backend=Backend.BUBBLEWRAP, program=str(program))
    probing._tried.cache_clear()
    assert why_no_copy(bench.profile(), state, bench.data) == ""
    assert (tmp_path / "tried").exists()


def test_a_disk_that_is_full_hinders_copies_only_as_long_as_it_is(bench: Bench, tmp_path: Path) -> None:
    probing._tried.cache_clear()
    with small_disk(tmp_path / "small", 1) as data:
        full = fill(data)
        said = why_no_copy(bench.profile(), bubblewrap(), data / "data")
        assert said.startswith("trying it out failed: ")
        assert "No space left on device" in said
        full.unlink()
        assert why_no_copy(bench.profile(), bubblewrap(), data / "data") == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_files_of_others_hinder_copies(bench: Bench) -> None:
    (bench.root / "theirs").mkdir()
    os.chown(bench.root / "theirs", 1, 1)
    found = why_no_copy(bench.profile(), bubblewrap(), bench.data)
    assert found == f"{bench.root}/theirs belongs to another user or group: a copy cannot change it"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts something")
def test_a_mount_in_the_workspace_hinders_copies(bench: Bench) -> None:
    (bench.root / "a b").mkdir()
    program = (
        "import sys; from pathlib import Path; from tests.workspace.copies.copied import Bench;"
        "from tests.workspace.sandbox.running import bubblewrap; from treadle.workspace.copies import why_no_copy;"
        "bench = Bench(Path(sys.argv[1])); print(why_no_copy(bench.profile(), bubblewrap(), bench.data))"
    )
    line = 'mount -t tmpfs none "$1/work/a b" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ("unshare", "-m", "sh", "-c", line, "sh", str(bench.folder), sys.executable, program),
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr}")
    assert done.stdout == f"something else is mounted in the workspace, at {bench.root}/a b\n"


def test_what_another_program_removed_since_the_look_hinders_copies_once(bench: Bench, tmp_path: Path) -> None:
    state = bubblewrap()
    late = tmp_path / "bwrap"
    late.write_text(
        f"""#!/bin/sh
[ -e {tmp_path}/tried ] && exec {state.program} "$@"
: > {tmp_path}/tried
echo "bwrap: Can't mkdir parents for /gone/socket: Read-only file system" >&2
exit 1
"""
    )
    late.chmod(0o755)
    probing._tried.cache_clear()
    assert why_no_copy(bench.profile(), replace(state, program=str(late)), bench.data) == ""
    probing._tried.cache_clear()
