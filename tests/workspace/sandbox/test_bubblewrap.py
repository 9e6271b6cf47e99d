"""Real commands in bubblewrap: what they cannot do, and that nothing is left of the sandbox afterwards."""

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.workspace.processes import lasting, living, until
from tests.workspace.sandbox.running import Box, bubblewrap

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Right, SandboxDenial
from treadle.workspace.sandbox import allow
from treadle.workspace.sandbox.profile import Profile

READ_ONLY = "Read-only file system\n"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    return Box(tmp_path, bubblewrap())


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def connect(port: int) -> str:
    return f'python3 -c \'import socket; socket.create_connection(("127.0.0.1", {port}), 5); print("through")\''


async def test_a_command_works_in_the_workspace_and_finds_its_tools(box: Box) -> None:
    line = "echo made > sub/new && git --version >/dev/null && python3 -c 'print(1 + 1)' && pwd"
    assert await box.run(line) == (0, f"2\n{box.root}\n")
    assert (box.root / "sub/new").read_text() == "made\n"


async def test_how_the_parts_of_a_pipe_ended_is_known_in_the_sandbox(box: Box) -> None:
    command = box.start("false | cat", box.profile())
    await command.finish(60)
    assert (command.describe(), command.take_output()) == ("Exit status 0 (but in the pipe `false` exited 1).", "")
    await command.close()


async def test_nothing_outside_of_the_workspace_can_be_changed(box: Box, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")
    for target in (Path.home() / "x", Path("/etc/x"), Path("/usr/bin/x"), Path("/dev/x/y")):
        status, output = await box.run(f"echo x > {target}")
        assert (status, target.exists()) == (1, False)
        assert output.endswith((READ_ONLY, "No such file or directory\n"))
    await box.run(f"echo x > {tmp_path}/file")
    assert (tmp_path / "file").read_text() == "before"


async def test_a_workspace_that_must_not_change_does_not(box: Box) -> None:
    profile = replace(box.profile("AGENTS.md"), change_root=False)
    assert await box.run("echo x > new", profile) == (1, "/bin/bash: line 1: new: Read-only file system\n")
    assert box.tree() == ["sub"]


async def test_protected_paths_stay_as_they_are(box: Box) -> None:
    (box.root / ".git").mkdir()
    (box.root / ".git/config").write_text("[core]")
    (box.root / "AGENTS.md").write_text("rules")
    profile = box.profile(".git", "AGENTS.md")
    for line in ("echo x > .git/config", "touch .git/hooks", "echo x > AGENTS.md", "chmod 777 AGENTS.md"):
        status, output = await box.run(line, profile)
        assert (status, output.endswith(READ_ONLY)) == (1, True)
    for line in ("mv .git g", "rm AGENTS.md", "mv sub AGENTS.md", "rm -rf .git", "ln -f /etc/passwd AGENTS.md"):
        assert (await box.run(line, profile))[0] == 1
    assert (box.root / ".git/config").read_text() == "[core]"
    assert (box.root / "AGENTS.md").read_text() == "rules"


async def test_links_made_in_the_sandbox_lead_nowhere_forbidden(box: Box, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("before")
    (box.root / ".env").write_text("SECRET=1")
    await box.run(f"ln -s {tmp_path}/outside sub/o && echo x > sub/o")
    profile = box.profile(".git", masked=(".env",))
    for line in (
        "ln -s /etc/passwd sub/l && echo x >> sub/l",
        "ln -s ../.env sub/e && cat sub/e",
        "ln .env sub/h && cat sub/h",
        "ln -s ../.git sub/g && touch sub/g/config",
        "mv .env moved && cat moved",
    ):
        assert (await box.run(line, profile))[0] != 0, line
    assert (tmp_path / "outside").read_text() == "before"


async def test_masked_files_and_folders_cannot_be_read(box: Box) -> None:
    (box.root / "keys").mkdir()
    (box.root / "keys/id").write_text("secret")
    (box.root / ".env").write_text("SECRET=1")
    profile = box.profile(masked=(".env", "keys", "missing"))
    assert await box.run("cat .env", profile) == (1, "cat: .env: Permission denied\n")
    empty = replace(profile, empty=str(box.root / "sub/empty"))
    (box.root / "sub/empty").touch(mode=0o400)
    assert await box.run("cat .env", empty) == (0, "")
    assert await box.run("ls keys; echo x > keys/id", profile) == (
        1,
        "/bin/bash: line 1: keys/id: Read-only file system\n",
    )
    assert (await box.run("cat keys/id", allow(profile, SandboxDenial(right=Right.READ, target=f"{box.root}/keys"))))[
        1
    ] == "secret"


async def test_there_is_no_network_and_loopback_is_private(box: Box, listener: int) -> None:
    assert (await box.run(connect(listener)))[0] == 1
    assert "unreachable" in (await box.run(connect(listener).replace("127.0.0.1", "192.0.2.1")))[1]
    assert await box.run("ls /sys/class/net /proc/net/dev >/dev/null; grep -c : /proc/net/dev") == (0, "1\n")


async def test_the_network_is_there_when_the_profile_has_it(box: Box, listener: int) -> None:
    profile = allow(box.profile(), SandboxDenial(right=Right.NETWORK))
    assert await box.run(connect(listener), profile) == (0, "through\n")


async def test_sockets_of_other_programs_cannot_be_reached(box: Box, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        line = f"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{path}\")'"
        assert (await box.run(line))[0] == 1
        assert (await box.run(line, allow(box.profile(), SandboxDenial(right=Right.NETWORK))))[0] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees what is in closed folders of others")
@pytest.mark.parametrize("beside", ["a file as programs leave it", ""])
async def test_sockets_in_closed_folders_of_others_never_keep_a_command_of_root_from_starting(
    box: Box, beside: str
) -> None:
    with tempfile.TemporaryDirectory(dir="/opt") as made, socket.socket(socket.AF_UNIX) as server:
        within = Path(made) / "spool" / "private"
        within.mkdir(parents=True)
        (within / "notes").write_text(beside * 20)
        server.bind(f"{within}/s")
        server.listen()
        os.chown(within.parent, 1234, 1234)
        within.parent.chmod(0o700)
        Path(made).chmod(0o755)
        line = f"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{within}/s\")'"
        status, output = await box.run(line)
        assert (status, "PermissionError" in output) == (1, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="of others the whole folder is covered: it cannot be listed")
async def test_what_a_command_of_root_closed_itself_stays_hidden(box: Box) -> None:
    (box.root / "sec").mkdir()
    (box.root / "sec" / ".env").write_text("secret")
    profile = box.profile(masked=("sec/.env",))
    assert (await box.run("chmod 0 sec", profile))[0] == 0
    try:
        assert "secret" not in (await box.run("chmod 700 sec; cat sec/.env", profile))[1]
    finally:
        (box.root / "sec").chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root works in closed folders of others")
async def test_root_is_told_of_a_workspace_in_a_closed_folder_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "home" / "work").mkdir(parents=True)
    inside = Box(tmp_path / "home", bubblewrap())
    os.chown(tmp_path / "home", 1234, 1234)
    (tmp_path / "home").chmod(0o700)
    with pytest.raises(ToolError, match=f"chmod o\\+x {tmp_path}/home"):
        await inside.run("true")


@pytest.fixture(scope="session")
def folder_of_sockets() -> Iterator[str]:
    """A folder that stays until all tests are done: commands of others cover it, and cannot where it has just gone."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as made:
        yield made


async def test_sockets_that_come_and_go_never_keep_a_command_from_starting(box: Box, folder_of_sockets: str) -> None:
    """Outside of all that a sandbox hides, as a socket that goes away while the mounts are made cannot be covered."""
    made, ends = folder_of_sockets, threading.Event()

    def come_and_go() -> None:
        while not ends.is_set():
            for number in range(4):
                (Path(made) / f"{number}.key").write_text("k" * 64)
                with socket.socket(socket.AF_UNIX) as server:
                    server.bind(f"{made}/{number}.sock")
                    time.sleep(0.001)
                    (Path(made) / f"{number}.sock").unlink()

    coming = threading.Thread(target=come_and_go)
    coming.start()
    try:
        shown = replace(box.profile(), hidden=())
        assert [await box.run("true", shown) for _ in range(20)] == [(0, "")] * 20
    finally:
        ends.set()
        coming.join()


async def test_a_command_gains_no_rights(box: Box) -> None:
    line = "grep -E '^(NoNewPrivs|CapEff|CapBnd|Seccomp):' /proc/self/status"
    expected = "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
    assert await box.run(line) == (0, expected)
    assert (await box.run("unshare -Ur true"))[0] == 1


@pytest.mark.parametrize(
    "call",
    [
        "ptrace(0, 0, 0, 0)",
        "syscall(425, 8, 0)",
        "syscall(250, 0, 0)" if os.uname().machine == "x86_64" else "ptrace(0)",
    ],
)
async def test_calls_that_no_build_needs_are_refused(box: Box, call: str) -> None:
    program = f"import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.{call}, ctypes.get_errno())"
    status, output = await box.run(f"python3 -c '{program}'")
    assert (status, output in ("-1 1\n", "-1 38\n")) == (0, True)


async def test_other_processes_are_neither_seen_nor_reached_through_proc(box: Box) -> None:
    line = f"test -e /proc/{os.getpid()}/root && echo seen; ls /proc | grep -c '^[0-9]'"
    status, output = await box.run(line)
    assert (status, int(output) < 8) == (0, True)
    assert (await box.run("echo x > /proc/1/root/etc/treadle-test"))[0] == 1
    assert not Path("/etc/treadle-test").exists()


async def test_settings_of_the_system_cannot_be_changed(box: Box) -> None:
    named = "/proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sysrq-trigger /sys/kernel/uevent_helper"
    line = f"for path in {named} /sys/fs/cgroup; do test -w $path && echo $path; done; true"
    assert await box.run(line) == (0, "")


async def test_temporary_files_are_private_and_stay_for_the_next_command(box: Box) -> None:
    status, output = await box.run("mktemp; echo kept > /tmp/kept; ls /tmp | grep -c pytest")
    assert (status is not None, output.startswith("/tmp/")) == (True, True)
    assert await box.run("cat /tmp/kept") == (0, "kept\n")
    assert not Path("/tmp/kept").exists()


async def test_a_command_over_its_time_may_tidy_up_and_ends_with_all_its_children(box: Box) -> None:
    sleep = lasting()
    command = box.start(f"trap 'echo tidy; exit' TERM; setsid {sleep} & {sleep} & wait", box.profile())
    assert await until(sleep, 2) == 2
    await command.stop("it ran too long")
    assert (command.take_output(), living(sleep), command.alive) == ("tidy\n", 0, False)
    await command.close()
    assert box.tree() == ["sub"]


async def test_a_command_that_ignores_the_request_to_end_is_killed_with_its_children(box: Box) -> None:
    sleep = lasting()
    command = box.start(f"trap '' TERM; setsid {sleep} & {sleep}; {sleep}", box.profile())
    assert await until(sleep, 2) == 2
    await command.stop("it ran too long", grace=0.2)
    assert (living(sleep), command.alive) == (0, False)
    await command.close()
    assert box.tree() == ["sub"]


async def test_a_sandbox_that_cannot_be_set_up_runs_nothing(box: Box) -> None:
    profile = replace(
        box.profile(), readable=(str(box.folder / "spool"),), scratch=(("/proc/x", str(box.folder / "s")),)
    )
    status, output = await box.run("echo ran", profile)
    assert (status, output.startswith("bwrap: ")) == (1, True)


async def test_one_more_path_can_be_written_when_allowed(box: Box, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    profile: Profile = allow(box.profile("AGENTS.md"), SandboxDenial(right=Right.WRITE, target=str(tmp_path / "other")))
    assert (await box.run(f"echo x > {tmp_path}/other/new", profile))[0] == 0
    await box.run(f"echo x > {tmp_path}/new", profile)
    assert (sorted(each.name for each in (tmp_path / "other").iterdir()), (tmp_path / "new").exists()) == (
        ["new"],
        False,
    )
    (box.root / "AGENTS.md").write_text("before")
    agents = allow(profile, SandboxDenial(right=Right.WRITE, target=f"{box.root}/AGENTS.md"))
    assert (await box.run("echo x > AGENTS.md", agents))[0] == 0
    assert (box.root / "AGENTS.md").read_text() == "x\n"


async def test_a_further_folder_is_free_but_for_what_is_protected(box: Box) -> None:
    other = box.folder / "other"
    (other / ".git").mkdir(parents=True)
    (other / ".envrc").write_text("x")
    profile = replace(box.profile(), roots=(str(other),), protected=(f"{other}/.git", f"{other}/.envrc"))
    assert await box.run(f"mkdir {other}/a && echo x > {other}/a/new && mv {other}/a {other}/b", profile) == (0, "")
    for line in (f"echo x > {other}/.envrc", f"touch {other}/.git/x", f"mv {other}/.git {other}/g"):
        assert (await box.run(line, profile))[0] == 1, line
    assert sorted(path.name for path in other.iterdir()) == [".envrc", ".git", "b"]
    assert (await box.run(f"echo x > {other}/late", replace(profile, change_root=False)))[0] == 1
